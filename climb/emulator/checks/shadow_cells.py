"""Shadow memory: for each cell of a memory, stamps of its last write, its reads and its atomics.

A cell is as wide as the narrowest access to the memory so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..simt.lanes import Lanes
from .happens_before import KIND, Clock, combine_stamps


class Cells:
    """Stamps of `count` cells: of the last write, of all reads, and of all atomics together; 0 if there was none."""

    def __init__(self, count: int) -> None:
        self.writes = np.zeros(count, np.int64)
        self.reads = np.zeros(count, np.int64)
        self.atomics = np.zeros(count, np.int64)

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace each of the three arrays by `function` of it."""
        self.writes, self.reads, self.atomics = map(function, (self.writes, self.reads, self.atomics))

    @staticmethod
    def enter(
        into: np.ndarray, index: np.ndarray, stamps: np.ndarray, clock: Clock, lanes: Lanes, launch_wide: bool
    ) -> None:
        """Add accesses to `reads` or `atomics`. `index` and `stamps` have the same shape (blocks, threads, cells)."""
        threads, old = clock.shape[1], into.take(index)
        apart = clock.unordered(old, lanes, stamps & ~(-1 << KIND), launch_wide)
        if apart.shape[0] > index.shape[0]:
            apart = apart.all(axis=0, keepdims=True)
        new = combine_stamps(old, stamps, apart, threads, launch_wide)
        into[index] = new
        # If lanes of this access share a cell, only the last one is entered so far; add the others one by one.
        left = np.flatnonzero((into.take(index) != new).ravel())
        index, stamps, apart = index.ravel(), stamps.ravel(), np.ones((), np.bool_)
        while left.size:
            into[index[left]] = combine_stamps(into[index[left]], stamps[left], apart, threads, launch_wide)
            now = into[index[left]]
            # A combined stamp of several warps or blocks covers every lane; of one warp, the lanes of that warp.
            joined = combine_stamps(now, stamps[left], apart, threads, launch_wide)
            left = left[joined >> KIND & 3 != now >> KIND & 3]
