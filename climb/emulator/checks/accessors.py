"""The threads that have accessed each cell of shared memory: a write must be ordered after every reader.

If lanes only ever wait for their whole warp, and warps for their whole block, one stamp for all readers of a cell is
enough (`Cells.reads`): a thread that has waited has waited for all of them. If a kernel can order some threads without
the others (`Code.orders_in_part`), the readers must be kept one by one. A write is then ordered only if it is ordered
after the last read of every thread. Each read may be ordered by a different means: a barrier of the block, a named
barrier that both threads took part in, an mbarrier, a flag, a barrier of the cluster, or one thread's own sequence. The
same holds for atomics, and for writes of the same value, which may come in any order.

So a cell has slots. A slot keeps one warp's last access to the cell, and the lanes that made it. An access replaces an
earlier one of the same warp if it includes all of that access's lanes: each of them is ordered after its own access
before. It also replaces accesses from before the last barrier of all blocks. Otherwise it takes a free slot, so a warp
that has read with different sets of lanes has several slots.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..simt.lanes import WARP, Lanes, broadcast_to
from ..simt.warps import BITS, LANE
from .bulk_accesses import LONG, one_thread, runs
from .happens_before import Clock
from .stamps import ID, KIND, ONE, TIME, WARP_LANES

SHIFT = 15  # bits of a thread's number in its block or cluster


class Accessors:
    """The last accesses of each warp to each cell.

    `stamps`, a list of int64 (cells,), one array for each slot: the stamp of the access, which names the last of the
    lanes `masks`, uint32 (cells,), that made it; 0 for a free slot. `newest`: the latest time in each slot, so that
    slots in which nothing is recent are not looked at.
    """

    def __init__(self) -> None:
        self.stamps: list[np.ndarray] = []
        self.masks: list[np.ndarray] = []
        self.newest: list[int] = []

    def map(self, function: Callable[[np.ndarray], np.ndarray], floor: int) -> None:
        """Replace each array by the result of `function` on it, and drop slots without an access since `floor`."""
        kept = self._slots_since(floor)
        self.stamps, self.masks = [[function(each[slot]) for slot in kept] for each in (self.stamps, self.masks)]
        self.newest = [self.newest[slot] for slot in kept]

    def _slots_since(self, time: int) -> list[int]:
        """Return the slots with an access at `time` or later."""
        return [slot for slot, newest in enumerate(self.newest) if newest >= time]

    def enter(self, index: np.ndarray, stamps: np.ndarray, floor: int, cells: int) -> None:
        """Add one access to the cells `index`, of `cells` in all; both arrays broadcast.

        `floor`: the time before which every access is ordered before all later ones.
        """
        time = int(stamps.flat[0]) & TIME
        if time < floor:
            return
        index, threads = np.broadcast_arrays(index, stamps & ID)
        keys = np.sort((index << SHIFT | threads).ravel())
        warps = keys // WARP
        first = np.flatnonzero(np.concatenate(([True], warps[1:] != warps[:-1])))
        masks = np.bitwise_or.reduceat(BITS[keys % WARP], first)
        last = keys[np.append(first[1:], keys.size) - 1]
        kinds = np.where(masks & masks - np.uint32(1), WARP_LANES, ONE)
        self._place(last >> SHIFT, time | kinds << KIND | last & (1 << SHIFT) - 1, masks, time, floor, cells)

    def _place(
        self, cells: np.ndarray, stamps: np.ndarray, masks: np.ndarray, time: int, floor: int, count: int
    ) -> None:
        """Put each of these accesses, all made at `time`, into the first slot of its cell that it may take."""
        slot = 0
        while cells.size:
            if slot == len(self.stamps):
                self.stamps.append(np.zeros(count, np.int64))
                self.masks.append(np.zeros(count, np.uint32))
                self.newest.append(0)
            there, lanes = self.stamps[slot], self.masks[slot]
            if self.newest[slot] < floor:
                takes = np.ones(cells.size, np.bool_)
            else:
                old = there.take(cells)
                own = ((old ^ stamps) & ID) // WARP == 0
                takes = (old < floor) | own & (lanes.take(cells) & ~masks == 0)
            mine = cells[takes]
            there[mine] = stamps[takes]
            # If several warps take a slot of one cell at once, the last one gets it.
            takes[takes] = there.take(mine) == stamps[takes]
            lanes[cells[takes]] = masks[takes]
            self.newest[slot] = max(self.newest[slot], time)
            left = ~takes
            cells, stamps, masks = cells[left], stamps[left], masks[left]
            slot += 1

    def since(self, index: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the cells that were accessed at `times` or later: bool; both arrays broadcast."""
        latest = np.zeros(index.shape, np.int64)
        for slot in self._slots_since(int(times.min())):
            np.maximum(latest, self.stamps[slot].take(index), out=latest)
        return latest >= np.maximum(times, 1)

    def unordered(
        self, cells: np.ndarray, block: np.ndarray, thread: np.ndarray, clock: Clock, reads: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the accesses that are not ordered before one of cell `cells[i]` by thread `thread[i]` of `block[i]`,
        (n,).

        Returns stamps, int64 (n, k), the latest first, each of the last lane that is not ordered, and bool (n, k),
        which marks the stamps that are such accesses; k is 0 if there are none. `reads` as for `Clock.unordered`.
        """
        slots = self._slots_since(clock.floor)
        none = np.zeros((cells.size, 0), np.int64), np.zeros((cells.size, 0), np.bool_)
        if not slots:
            return none
        before = np.stack([self.stamps[slot].take(cells) for slot in slots])
        # Most are older than the barrier that all threads have waited for since; only the others need a comparison.
        slot, row = np.nonzero(before >= max(clock.floor, 1))
        stamps, found = before[slot, row], np.zeros(before.shape, np.bool_)
        if stamps.size >= LONG and one_thread(block, thread):
            # If each access was ordered even if all lanes of its warp had made it, this needs no closer look.
            first, _ = runs(stamps & ~(3 << KIND | WARP - 1) | WARP_LANES << KIND)
            own = np.zeros(first.size, np.int64)
            if not _unordered(first, block[own], thread[own], clock, reads, True).any():
                return none
        late = _unordered(stamps, block[row], thread[row], clock, reads, True)
        if not late.any():
            return none
        slot, row, stamps = slot[late], row[late], stamps[late]
        before[slot, row], found[slot, row] = stamps, True
        some = np.flatnonzero(stamps >> KIND & 3 == WARP_LANES)
        if some.size:  # which of the lanes?
            slot, row, stamps = slot[some], row[some], stamps[some] & ~(3 << KIND | WARP - 1)
            masks = np.stack([self.masks[each].take(cells[row]) for each in slots])[slot, np.arange(row.size)]
            lanes = np.where(masks[:, None] & BITS != 0, stamps[:, None] | LANE, 0)
            late = _unordered(lanes, block[row], thread[row], clock, reads, False)
            several = np.where(np.count_nonzero(late, axis=1) > 1, WARP_LANES, ONE)
            before[slot, row] = np.where(late, lanes, 0).max(axis=1) | several << KIND
            found[slot, row] = late.any(axis=1)
        order = np.argsort(-np.where(found, before, 0), axis=0, kind="stable")
        return np.take_along_axis(before, order, axis=0).T, np.take_along_axis(found, order, axis=0).T


def _unordered(
    before: np.ndarray, block: np.ndarray, thread: np.ndarray, clock: Clock, reads: bool, every: bool
) -> np.ndarray:
    """Apply `Clock.unordered` to the accesses `before`, (n,) or (n, k), each with one thread."""
    lanes = Lanes(block[None], thread[None], clock.shape[1], True)
    found = clock.unordered(before.reshape(1, len(before), -1), lanes, thread[None, :, None], False, reads, every)
    return broadcast_to(found, (1, len(before), before.size // max(len(before), 1))).reshape(before.shape).copy()
