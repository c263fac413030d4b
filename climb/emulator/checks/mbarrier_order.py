"""The knowledge of each warp about other warps' accesses, through mbarriers and through other ways of waiting.

`Clock` treats any fence of one thread as ordered before any later acquiring access of another thread of its block. For
mbarriers that is too generous: a thread that arrives at an mbarrier publishes its accesses only there, and only threads
that see that phase end learn of them. So once a launch uses mbarriers, `Clock` also asks here whether the later warp
knows of the earlier one.

Everything except mbarriers (flags, atomics, fences) goes through one pool for each block, so that no order is missed.
Knowledge is kept per warp, not per thread: `Clock` keeps which lanes of a warp have waited for each other.

For matrix products of warpgroups (wgmma), this module alone decides. When their warpgroup has waited for them, any of
its threads may hand on the memory that they have read, so a warp need only know of one thread that has waited.
"""

from __future__ import annotations

import numpy as np

from ..simt.lanes import WARP, Lanes, broadcast_to
from .partial_synchronization import Arrivals, turns

GROUP = 4  # warps of a warpgroup


class MbarrierOrder:
    """The knowledge that the warps of each block, or of each cluster of `size` blocks, have of each other.

    `known`, int64 (blocks, warps, warps + warpgroups): the time up to which a warp knows the accesses of each other
    warp; the last columns hold the number of commit groups of each warpgroup that it knows to be complete. `open` and
    `over`, (mbarriers, warps + warpgroups): the knowledge published at each mbarrier, and the part known to threads
    that have seen its last phase end.
    """

    def __init__(self, blocks: int, warps: int, size: int, now: int) -> None:
        self.warps, self.now = warps, now
        self.warps_of_block = warps // size
        self.groups_of_block = -(-self.warps_of_block // GROUP)
        self.known = np.zeros((blocks, warps, warps + size * self.groups_of_block), np.int64)
        self.known[:, :, :warps] = now
        self.pool = np.zeros((blocks, self.known.shape[2]), np.int64)
        self._slots: dict[int, int] = {}
        self._arrivals = Arrivals()
        self.open, self.over = np.zeros((2, 16, self.known.shape[2]), np.int64)

    def warpgroup(self, warp: np.ndarray) -> np.ndarray:
        """Return the number of each warp's warpgroup in its own block."""
        return warp % self.warps_of_block // GROUP

    def first_of_group(self, warp: np.ndarray) -> np.ndarray:
        """Return the first warp of each warp's warpgroup."""
        return warp - warp % self.warps_of_block % GROUP

    def arrive(self, lanes: Lanes, words: np.ndarray, now: int) -> None:
        """Record that lanes arrive at the mbarriers `words`, (lanes,): they publish their accesses and their
        knowledge."""
        number, word = _pairs(self._numbers(lanes), words)
        slots = self._slots_of(word)
        np.maximum.at(self.open, slots, self._published(number, now))

    def phases_end(self, words: np.ndarray) -> None:
        """Record that the current phase of each of these mbarriers ends."""
        slots = self._slots_of(words)
        self.over[slots] = self.open[slots]

    def see(self, lanes: Lanes, words: np.ndarray) -> None:
        """Record that lanes see the end of a phase of the mbarriers `words`, (lanes,)."""
        number, word = _pairs(self._numbers(lanes), words)
        slots = self._slots_of(word)
        np.maximum.at(self.known.reshape(-1, self.known.shape[2]), number, self.over[slots])

    def fence(self, lanes: Lanes, now: int) -> None:
        """Record that lanes publish their accesses by other means than an mbarrier."""
        number = np.unique(self._numbers(lanes))
        np.maximum.at(self.pool, number // self.warps, self._published(number, now))

    def acquire(self, lanes: Lanes) -> None:
        """Record that lanes may see what others have published by other means than an mbarrier."""
        number = np.unique(self._numbers(lanes))
        flat = self.known.reshape(-1, self.known.shape[2])
        flat[number] = np.maximum(flat[number], self.pool[number // self.warps])

    def meet(self, blocks: np.ndarray, now: int) -> None:
        """Record that all threads of these blocks have waited for each other."""
        blocks = np.unique(blocks)
        self.known[blocks, :, self.warps :] = self.known[blocks, :, self.warps :].max(axis=1, keepdims=True)
        self.known[blocks, :, : self.warps] = now

    def arrive_at(self, lanes: Lanes, barriers: np.ndarray, now: int) -> None:
        """Record that lanes arrive at barriers without waiting; see `Clock.arrive_at`."""
        number, each = _pairs(self._numbers(lanes), barriers)
        self._arrivals.add(each, number // self.warps, self._published(number, now), len(self.known))

    def meet_in_part(self, blocks: np.ndarray, waiting: np.ndarray, barriers: np.ndarray, now: int) -> None:
        """Record that in each of `blocks` (n,), ascending, warps have met at a barrier; see
        `Clock.synchronize_warps`."""
        handed = self._arrivals.at(barriers, blocks, self.known.shape[2], True)
        for one in turns(blocks):
            rows, here = self.known[blocks[one]], waiting[one][:, :, None]
            joint = np.maximum(np.where(here, rows, 0).max(axis=1), handed[one])
            joint[:, : self.warps] = np.where(waiting[one], now, joint[:, : self.warps])
            self.known[blocks[one]] = np.where(here, np.maximum(rows, joint[:, None, :]), rows)

    def learn(self, waiting: np.ndarray, barriers: np.ndarray) -> None:
        """Record that warps for which `waiting`, bool (blocks, warps), holds have seen that all had arrived at
        `barriers`, (blocks,)."""
        handed = self._arrivals.at(barriers, np.arange(len(waiting)), self.known.shape[2], False)
        self.known = np.where(waiting[:, :, None], np.maximum(self.known, handed[:, None, :]), self.known)

    def knows(
        self, block: np.ndarray, warp: np.ndarray, of: np.ndarray, one: np.ndarray, time: np.ndarray
    ) -> np.ndarray:
        """Return whether each `warp` knows what the warp `of` did at a time; where `one` is False, whether it knows
        that of any warp."""
        since = self.known[block, warp, of]
        if not one.all():
            since = np.where(one, since, self.known[:, :, : self.warps].max(axis=2)[block, warp])
        return (since > time) | (one & (warp == of))

    def complete_products(self, lanes: Lanes, groups: np.ndarray) -> None:
        """Record that lanes have waited for the first `groups`, (lanes,), commit groups of their warpgroups."""
        number = self._numbers(lanes)
        block, warp = np.divmod(number, self.warps)
        column = self._column(warp // self.warps_of_block, self.warpgroup(warp))
        np.maximum.at(self.known, (block, warp, column), groups)

    def products(self, block: np.ndarray, warp: np.ndarray, rank: np.ndarray, group: int) -> np.ndarray:
        """Return how many commit groups of warpgroup `group` of the block `rank` each warp knows to be complete."""
        return self.known[block, warp, self._column(rank, group)]

    def _column(self, rank: np.ndarray, group: np.ndarray | int) -> np.ndarray:
        return self.warps + rank * self.groups_of_block + group

    def _numbers(self, lanes: Lanes) -> np.ndarray:
        """Return the warp of each lane, counted on from block to block: (lanes,), ascending."""
        return broadcast_to(lanes.block * self.warps + lanes.thread // WARP, lanes.shape).ravel()

    def _published(self, number: np.ndarray, now: int) -> np.ndarray:
        """Return the knowledge that each warp publishes: (warps, ...)."""
        rows = self.known.reshape(-1, self.known.shape[2])[number]
        rows[np.arange(number.size), number % self.warps] = now
        return rows

    def _slots_of(self, words: np.ndarray) -> np.ndarray:
        """Return the indices of mbarriers in `open` and `over`, which grow as needed."""
        found = np.array([self._slots.setdefault(word, len(self._slots)) for word in words.tolist()], np.int64)
        while len(self._slots) > len(self.open):
            self.open, self.over = (np.concatenate((each, np.zeros_like(each))) for each in (self.open, self.over))
        return found


def _pairs(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the different pairs of two arrays."""
    span = int(other.max()) + 1
    return np.divmod(np.unique(one * span + other), span)
