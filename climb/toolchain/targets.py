"""Where the machine code of a kernel jumps to: the labels of its listing."""

from __future__ import annotations

import functools
import re

from climb.toolchain.nvrtc import Compiled
from climb.toolchain.sass import _CODE, _SECTION, _run

_LABEL = re.compile(r"^(\.L_\w+):")


def labels(compiled: Compiled, name: str) -> dict[str, int]:
    """The offset in bytes of every label of kernel ``name``, such as ".L_x_3". Raises as ``disassemble`` does."""
    return _all_labels(compiled)[compiled.lowered(name)]


@functools.lru_cache(maxsize=256)
def _all_labels(compiled: Compiled) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    waiting: list[str] = []
    for row in _run("nvdisasm", ("--print-code",), compiled.cubin).splitlines():
        if section := _SECTION.match(row):
            current = found.setdefault(section[1], {})
            waiting.clear()
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif code := _CODE.match(row):
            current.update(dict.fromkeys(waiting, int(code["offset"], 16)))
            waiting.clear()
    return found
