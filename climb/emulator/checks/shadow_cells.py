"""Shadow memory: for each cell of a memory, stamps of its last write, its reads and its atomics.

A cell is as wide as the narrowest access to the memory so far.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..simt.lanes import Lanes
from .happens_before import Clock
from .stamps import BLOCK_THREADS, BLOCKS, ID, KIND, ONE, WARP_LANES


class Cells:
    """Stamps of `count` cells: of the last write, of all reads, of all atomics together, and of the last atomic (the
    last of the lanes that execute it together); 0 if there was none. `last_seen`: of the last strong load, which has
    seen all atomics before it."""

    def __init__(self, count: int) -> None:
        self.writes = np.zeros(count, np.int64)
        self.reads = np.zeros(count, np.int64)
        self.atomics = np.zeros(count, np.int64)
        self.last_atomics: np.ndarray | None = None  # made by the first atomic
        self.last_seen: np.ndarray | None = None

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace each of the arrays by the result of `function` on it."""
        self.writes, self.reads, self.atomics = map(function, (self.writes, self.reads, self.atomics))
        if self.last_atomics is not None:
            self.last_atomics = function(self.last_atomics)
        if self.last_seen is not None:
            self.last_seen = function(self.last_seen)

    def enter_atomics(self, index: np.ndarray, stamps: np.ndarray, clock: Clock, lanes: Lanes, wide: bool) -> None:
        """Add atomics, like `enter`."""
        self.enter(self.atomics, index, stamps, clock, lanes, wide, reads=False)
        self.note_last_atomics(index, stamps)

    def note_last_atomics(self, index: np.ndarray, stamps: np.ndarray) -> None:
        """Note atomics on cells; the last lane on a cell made its last atomic."""
        if self.last_atomics is None:
            self.last_atomics = np.zeros_like(self.atomics)
        self.last_atomics[index] = stamps
        if self.last_seen is not None:
            self.last_seen[index] = 0

    def see_atomics(self, index: np.ndarray, stamps: np.ndarray) -> None:
        """Note that a strong load has seen the atomics on cells, if there were any."""
        if self.last_atomics is not None:
            if self.last_seen is None:
                self.last_seen = np.zeros_like(self.atomics)
            self.last_seen[index] = stamps

    def after_the_last_atomic(
        self, index: np.ndarray, lanes: Lanes, ids: np.ndarray, clock: Clock, wide: bool
    ) -> np.ndarray | bool:
        """Return where the last atomic on a cell is ordered before an access. All atomics on the cell then are, because
        atomics on one place happen one after the other, so the block that counts last may reset the counter. The same
        holds if a strong load that has seen the atomics is ordered before the access: PTX's causality order follows
        what was observed."""
        if self.last_atomics is None:
            return False
        after = ~clock.unordered(self.last_atomics.take(index), lanes, ids, wide)
        if self.last_seen is not None:
            seen = self.last_seen.take(index)
            after = after | ((seen != 0) & ~clock.unordered(seen, lanes, ids, wide))
        return after

    @staticmethod
    def enter(
        into: np.ndarray,
        index: np.ndarray,
        stamps: np.ndarray,
        clock: Clock,
        lanes: Lanes,
        launch_wide: bool,
        reads: bool = True,
    ) -> None:
        """Add accesses to `reads`, or to `atomics` if they are not `reads`.

        `index` and `stamps` have the same shape (blocks, threads, cells).
        """
        threads, old = clock.shape[1], into.take(index)
        apart = clock.unordered(old, lanes, stamps & ~(-1 << KIND), launch_wide, reads)
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


def combine_stamps(old: np.ndarray, new: np.ndarray, apart: np.ndarray, threads: int, launch_wide: bool) -> np.ndarray:
    """Combine the stamps of two accesses to a cell into one, with the time of the newer access.

    Unless they are `apart`, the older access (0: none) is ordered before the newer one. Everything ordered after the
    newer access is then ordered after the older one too, so the older one is dropped.
    """
    if not apart.any():
        return new
    a, b, kind, other = old & ID, new & ID, old >> KIND & 3, new >> KIND & 3
    block_a, block_b = (a // threads, b // threads) if launch_wide else (a * 0, b * 0)
    warp_a, warp_b = (a % threads) >> 5, (b % threads) >> 5
    same = (kind == ONE) & (other == ONE) & (a == b)
    in_block = (block_a == block_b) & (kind < BLOCKS) & (other < BLOCKS)
    in_warp = in_block & (warp_a == warp_b) & (kind <= WARP_LANES) & (other <= WARP_LANES)
    joint = np.where(in_warp, WARP_LANES, np.where(in_block, BLOCK_THREADS, BLOCKS))
    return np.where(apart & ~same, (new & ~(3 << KIND)) | joint << KIND, new)
