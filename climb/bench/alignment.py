"""Where arrays begin in memory while they are measured: on a boundary that is the same in every run.

A memory pool puts an array wherever there is room, so that what ran before decides where it begins. That can be a
factor of two: 256 counts that all lie in one slice of the L2 cache take twice as long to add to as the same counts with
one half in another (ladder ``histogram_place``).
"""

from __future__ import annotations

from typing import Any

#: In bytes. Larger than any cache line, sector group or row of atomics that a place could depend on.
BOUNDARY = 4096


def placed(array: Any) -> Any:
    """The CuPy array itself where it begins on the boundary, or a copy of it that does."""
    import cupy

    if array.nbytes == 0 or array.data.ptr % BOUNDARY == 0:
        return array
    room = cupy.empty(array.nbytes + BOUNDARY, dtype=cupy.uint8)
    start = -room.data.ptr % BOUNDARY
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
