"""What each warp knows of the others: through which mbarriers, and by what else they wait for each other.

`Clock` takes any fence of one thread and any later acquiring access of another one of its block for order. For
mbarriers that is too little: whoever arrives at one publishes what it has done at that mbarrier alone, and only those
who see its phase end know of it. So once a launch uses mbarriers, `Clock` also asks here whether the later warp knows
of the earlier one.

Everything that is no mbarrier (flags, atomics, fences) goes through one pool for each block, so that nothing is missed
there. Knowledge is kept by warps, not by threads: which lanes of a warp have waited for each other is `Clock`'s part.

Matrix products of warpgroups (wgmma) are read from here alone. When their warpgroup has waited for them, any of its
threads may hand on the memory that they have read, so a warp need only know of one that has waited.
"""

from __future__ import annotations

import numpy as np

from ..simt.lanes import WARP, Lanes
from .partial_synchronization import Arrivals, turns

GROUP = 4  # warps of a warpgroup


class MbarrierOrder:
    """What the warps of each block, or of each cluster of `size` blocks, know of each other.

    `known`, int64 (blocks, warps, warps + warpgroups): the time up to which a warp knows what each warp has done; after
    those, how many commit groups of each warpgroup it knows to be complete. `open` and `over`, (mbarriers, warps +
    warpgroups): what has been published at each mbarrier, and what of that those know who have seen its last phase end.
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
        """The number of each warp's warpgroup in its own block."""
        return warp % self.warps_of_block // GROUP

    def first_of_group(self, warp: np.ndarray) -> np.ndarray:
        """The first warp of each warp's warpgroup."""
        return warp - warp % self.warps_of_block % GROUP

    def arrive(self, lanes: Lanes, words: np.ndarray, now: int) -> None:
        """Lanes arrive at the mbarriers `words`, (lanes,): they publish what they have done and what they know."""
        number, word = _pairs(self._numbers(lanes), words)
        slots = self._slots_of(word)
        np.maximum.at(self.open, slots, self._published(number, now))

    def phases_end(self, words: np.ndarray) -> None:
        """The current phase of each of these mbarriers ends."""
        slots = self._slots_of(words)
        self.over[slots] = self.open[slots]

    def see(self, lanes: Lanes, words: np.ndarray) -> None:
        """Lanes see that a phase of the mbarriers `words`, (lanes,), has ended."""
        number, word = _pairs(self._numbers(lanes), words)
        slots = self._slots_of(word)
        np.maximum.at(self.known.reshape(-1, self.known.shape[2]), number, self.over[slots])

    def fence(self, lanes: Lanes, now: int) -> None:
        """Lanes publish what they have done by other means than an mbarrier."""
        number = np.unique(self._numbers(lanes))
        np.maximum.at(self.pool, number // self.warps, self._published(number, now))

    def acquire(self, lanes: Lanes) -> None:
        """Lanes may see what others have published by other means than an mbarrier."""
        number = np.unique(self._numbers(lanes))
        flat = self.known.reshape(-1, self.known.shape[2])
        flat[number] = np.maximum(flat[number], self.pool[number // self.warps])

    def meet(self, blocks: np.ndarray, now: int) -> None:
        """All threads of these blocks have waited for each other."""
        blocks = np.unique(blocks)
        self.known[blocks, :, self.warps :] = self.known[blocks, :, self.warps :].max(axis=1, keepdims=True)
        self.known[blocks, :, : self.warps] = now

    def arrive_at(self, lanes: Lanes, barriers: np.ndarray, now: int) -> None:
        """Lanes arrive at barriers without waiting; see `Clock.arrive_at`."""
        number, each = _pairs(self._numbers(lanes), barriers)
        self._arrivals.add(each, number // self.warps, self._published(number, now), len(self.known))

    def meet_in_part(self, blocks: np.ndarray, waiting: np.ndarray, barriers: np.ndarray, now: int) -> None:
        """In each of `blocks` (n,), ascending, warps have met at a barrier; see `Clock.synchronize_warps`."""
        handed = self._arrivals.at(barriers, blocks, self.known.shape[2], True)
        for one in turns(blocks):
            rows, here = self.known[blocks[one]], waiting[one][:, :, None]
            joint = np.maximum(np.where(here, rows, 0).max(axis=1), handed[one])
            joint[:, : self.warps] = np.where(waiting[one], now, joint[:, : self.warps])
            self.known[blocks[one]] = np.where(here, np.maximum(rows, joint[:, None, :]), rows)

    def learn(self, waiting: np.ndarray, barriers: np.ndarray) -> None:
        """Warps for which `waiting`, bool (blocks, warps), holds have seen that all had arrived at `barriers`,
        (blocks,)."""
        handed = self._arrivals.at(barriers, np.arange(len(waiting)), self.known.shape[2], False)
        self.known = np.where(waiting[:, :, None], np.maximum(self.known, handed[:, None, :]), self.known)

    def knows(
        self, block: np.ndarray, warp: np.ndarray, of: np.ndarray, one: np.ndarray, time: np.ndarray
    ) -> np.ndarray:
        """Whether each `warp` knows what the warp `of` did at a time; or any warp, where `one` does not hold."""
        since = self.known[block, warp, of]
        if not one.all():
            since = np.where(one, since, self.known[:, :, : self.warps].max(axis=2)[block, warp])
        return (since > time) | (one & (warp == of))

    def complete_products(self, lanes: Lanes, groups: np.ndarray) -> None:
        """Lanes have waited for the first `groups`, (lanes,), commit groups of their warpgroups."""
        number = self._numbers(lanes)
        block, warp = np.divmod(number, self.warps)
        column = self._column(warp // self.warps_of_block, self.warpgroup(warp))
        np.maximum.at(self.known, (block, warp, column), groups)

    def products(self, block: np.ndarray, warp: np.ndarray, rank: np.ndarray, group: int) -> np.ndarray:
        """How many commit groups of warpgroup `group` of the block `rank` each warp knows to be complete."""
        return self.known[block, warp, self._column(rank, group)]

    def _column(self, rank: np.ndarray, group: np.ndarray | int) -> np.ndarray:
        return self.warps + rank * self.groups_of_block + group

    def _numbers(self, lanes: Lanes) -> np.ndarray:
        """The warp of each lane, counted on from block to block: (lanes,), ascending."""
        return np.broadcast_to(lanes.block * self.warps + lanes.thread // WARP, lanes.shape).ravel()

    def _published(self, number: np.ndarray, now: int) -> np.ndarray:
        """What each warp publishes: (warps, ...)."""
        rows = self.known.reshape(-1, self.known.shape[2])[number]
        rows[np.arange(number.size), number % self.warps] = now
        return rows

    def _slots_of(self, words: np.ndarray) -> np.ndarray:
        """Where `open` and `over` have each mbarrier."""
        found = np.array([self._slots.setdefault(word, len(self._slots)) for word in words.tolist()], np.int64)
        while len(self._slots) > len(self.open):
            self.open, self.over = (np.concatenate((each, np.zeros_like(each))) for each in (self.open, self.over))
        return found


def _pairs(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of two arrays."""
    span = int(other.max()) + 1
    return np.divmod(np.unique(one * span + other), span)
