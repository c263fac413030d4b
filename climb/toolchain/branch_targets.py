"""Branch targets of a kernel's machine code: the labels of its listing."""

from __future__ import annotations

import functools
import re

from climb.toolchain.compilation import Compiled
from climb.toolchain.sass import INSTRUCTION_LINE, SECTION_LINE, listing

_LABEL = re.compile(r"^(\.L_\w+):")


def labels(compiled: Compiled, name: str) -> dict[str, int]:
    """Return the offset in bytes of each label, such as ".L_x_3", of kernel `name`. Raises like `disassemble`."""
    return _all_labels(compiled)[compiled.lowered(name)]


@functools.lru_cache(maxsize=256)
def _all_labels(compiled: Compiled) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    waiting: list[str] = []
    for row in listing(compiled).splitlines():
        if section := SECTION_LINE.match(row):
            current = found.setdefault(section[1], {})
            waiting.clear()
        elif label := _LABEL.match(row):
            waiting.append(label[1])
        elif code := INSTRUCTION_LINE.match(row):
            current.update(dict.fromkeys(waiting, int(code["offset"], 16)))
            waiting.clear()
    return found
