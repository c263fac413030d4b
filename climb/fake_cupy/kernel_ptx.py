"""The declarations in a kernel's PTX: its shared memory and its launch bound."""

from __future__ import annotations

import functools
import re

from climb.fake_cupy.limits import SHARED_BYTES
from climb.toolchain import Compiled


@functools.lru_cache(maxsize=1024)
def static_shared(compiled: Compiled, lowered: str) -> int:
    """Return the bytes of shared memory per block that kernel `lowered` declares. Raises CompileError if they are too
    many."""
    variables, total = _variables(compiled.ptx), 0
    named = set(_NAME.findall(_entry(compiled.ptx, lowered))) if variables else ()
    for name, align, size in variables:
        if name in named:
            total = -(-total // align) * align + size
    if total > SHARED_BYTES:
        compiled.cubin  # noqa: B018 (the error of ptxas names the kernel and the limit)
    return total


_SHARED = re.compile(
    r"^[^\S\n]*(?:\.visible\s+|\.weak\s+)?\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<kind>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?\s*;",
    re.MULTILINE,
)
_WIDTH = re.compile(r"(\d+)$")
_NAME = re.compile(r"[\w$]+")


@functools.lru_cache(maxsize=256)
def _variables(ptx: str) -> list[tuple[str, int, int]]:
    """Return the shared variables declared anywhere in `ptx`: name, alignment, bytes. Each of its kernels allocates
    them."""
    found = []
    for one in _SHARED.finditer(ptx):
        width = int(_WIDTH.search(one["kind"])[1]) // 8  # type: ignore[index]
        found.append((one["name"], int(one["align"] or 1), width * int(one["count"] or 1)))
    return found


@functools.lru_cache(maxsize=1024)
def thread_bound(ptx: str, lowered: str) -> int:
    """Return the threads per block that the ``__launch_bounds__`` of kernel `lowered` allow; 0 if it has none."""
    bound = re.search(r"^\.maxntid\s+([\d, ]+)", _entry(ptx, lowered), re.MULTILINE)
    return functools.reduce(lambda a, b: a * int(b), bound[1].split(","), 1) if bound else 0


def _entry(ptx: str, lowered: str) -> str:
    """Return the text of kernel `lowered` in `ptx`; "" if there is no such kernel."""
    start = re.search(rf"\.entry\s+{re.escape(lowered)}\s*\(", ptx)
    if start is None:
        return ""
    end = re.compile(r"^\}", re.MULTILINE).search(ptx, start.end())
    return ptx[start.end() : end.start() if end else len(ptx)]
