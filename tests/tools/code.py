"""What PTX and machine code say of each other."""

from __future__ import annotations

import re

from climb.toolchain import Compiled


def memory_instructions(compiled: Compiled) -> tuple[list[str], list[str]]:
    """Those of the PTX, and of the PTX that the cubin was assembled from, which it carries line by line."""
    ours = re.findall(r"(?:ld|st|bar)\.[.\w]+", compiled.ptx.split("{", 1)[1])
    return ours, [match[0].decode() for match in re.finditer(rb"(?<=\0)(?:ld|st|bar)\.[.\w]+", compiled.cubin)]
