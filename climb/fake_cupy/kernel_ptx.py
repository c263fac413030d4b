"""What the PTX of a kernel declares: its shared memory and its launch bound."""

from __future__ import annotations

import functools
import re

from climb.fake_cupy.limits import SHARED_BYTES
from climb.toolchain import Compiled


@functools.lru_cache(maxsize=1024)
def static_shared(compiled: Compiled, lowered: str) -> int:
    """Bytes of shared memory per block that kernel `lowered` declares. Raises CompileError if they are too many."""
    body, total = _entry(compiled.ptx, lowered), 0
    for variable in _SHARED.finditer(compiled.ptx):
        if re.search(rf"\b{re.escape(variable['name'])}\b", body):
            align = int(variable["align"] or 1)
            size = int(_WIDTH.search(variable["kind"])[1]) // 8 * int(variable["count"] or 1)  # type: ignore[index]
            total = -(-total // align) * align + size
    if total > SHARED_BYTES:
        compiled.cubin  # noqa: B018 (the error of ptxas names the kernel and the limit)
    return total


_SHARED = re.compile(
    r"^\s*(?:\.visible\s+|\.weak\s+)?\.shared\s+(?:\.align\s+(?P<align>\d+)\s+)?\.(?P<kind>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<count>\d+)\])?\s*;",
    re.MULTILINE,
)
_WIDTH = re.compile(r"(\d+)$")


@functools.lru_cache(maxsize=1024)
def thread_bound(ptx: str, lowered: str) -> int:
    """The threads per block that the ``__launch_bounds__`` of kernel `lowered` allow; 0 if it has none."""
    bound = re.search(r"^\.maxntid\s+([\d, ]+)", _entry(ptx, lowered), re.MULTILINE)
    return functools.reduce(lambda a, b: a * int(b), bound[1].split(","), 1) if bound else 0


def _entry(ptx: str, lowered: str) -> str:
    """The text of kernel `lowered` in `ptx`; "" if there is no such kernel."""
    start = re.search(rf"\.entry\s+{re.escape(lowered)}\s*\(", ptx)
    if start is None:
        return ""
    end = re.compile(r"^\}", re.MULTILINE).search(ptx, start.end())
    return ptx[start.end() : end.start() if end else len(ptx)]
