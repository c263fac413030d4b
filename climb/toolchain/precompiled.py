"""Precompiled headers: CUDA's large C++ headers are parsed once per process, not once per source.

NVRTC takes 0.6 s to parse `cooperative_groups.h` or a large header of libcu++, and 0.02 s for all else in a small
kernel. From version 12.8 on it can keep what it has parsed, for the sources of one process that begin with the same
directives. That takes 0.4 s more at first, so a source is compiled the plain way until another one begins in the same
way. The PTX is the same either way.
"""

from __future__ import annotations

import functools
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from climb.toolchain.nvrtc import nvrtc_version

if TYPE_CHECKING:
    import tempfile

_LARGE = re.compile(r"#[ \t]*include[ \t]*<(?:cooperative_groups|cuda/|cub/|thrust/)")
#: Comments, blank lines and directives before the first declaration.
_HEAD = re.compile(r"(?:[ \t]*(?://[^\n]*|#(?:[^\\\n]|\\.|\\\n)*)?\n)*", re.DOTALL)

#: NVRTC writes a precompiled header while it compiles, so one compilation with these flags runs at a time.
lock = threading.Lock()
_seen: Counter[tuple[str, ...]] = Counter()


def flags(source: str, others: Sequence[str]) -> list[str]:
    """The flags that make NVRTC keep the headers at the head of `source`, or use those that it has kept.

    Empty if no header is large, if no source with the same head and the flags `others` was compiled before in this
    process, or if NVRTC is too old.
    """
    head = _HEAD.match(source)[0]  # type: ignore[index] (it matches the empty text)
    if not _LARGE.search(head) or nvrtc_version() < (12, 8):
        return []
    key = (head, *others)
    _seen[key] += 1
    if _seen[key] == 1:
        return []
    folder = Path(_root().name, str(list(_seen).index(key)))
    folder.mkdir(exist_ok=True)
    return ["--pch", f"--pch-dir={folder}", "--pch-messages=false", "--pch-verbose=false"]


@functools.cache
def _root() -> tempfile.TemporaryDirectory[str]:
    """A folder for this process alone: a precompiled header is of no use to another."""
    import tempfile  # only when a header is kept, so that importing the toolchain is quick

    return tempfile.TemporaryDirectory(prefix="climb-headers-")
