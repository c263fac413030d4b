"""Sources of rungs as a whole; PTX compared with the PTX that machine code carries."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from climb.bench.identity import expand_includes
from climb.toolchain import Compiled


@functools.cache
def whole_source(path: Path) -> str:
    """A rung's source with all includes. While tests are collected, several modules ask for that of every rung."""
    return expand_includes(path)


def memory_instructions(compiled: Compiled) -> tuple[list[str], list[str]]:
    """The memory instructions of the PTX, and of the PTX from which the cubin was assembled, which it carries."""
    ours = re.findall(r"\b(?:ld|st|bar)\.[.\w]+", compiled.ptx.split("{", 1)[1])
    lines = re.finditer(rb"\0(?:@!?%?\w+\s+)?((?:ld|st|bar)\.[.\w]+)", compiled.cubin)
    return ours, [line[1].decode() for line in lines]
