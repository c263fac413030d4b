"""Align arrays while they are measured: each begins on a boundary that is the same in every run.

A memory pool puts an array wherever it has room, so the allocations before it decide its address. That can cost a
factor of two: 256 counts in one slice of the L2 cache take twice as long to add to as the same counts spread over two
slices (ladder ``histogram_place``).
"""

from __future__ import annotations

from typing import Any

#: In bytes: more than any cache line, sector group or row of atomics that the speed could depend on.
BOUNDARY = 4096


def aligned(array: Any) -> Any:
    """Return the CuPy array itself if it begins on the boundary, otherwise a copy that does."""
    import cupy

    if array.nbytes == 0 or array.data.ptr % BOUNDARY == 0:
        return array
    room = cupy.empty(array.nbytes + BOUNDARY, dtype=cupy.uint8)
    start = -room.data.ptr % BOUNDARY
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
