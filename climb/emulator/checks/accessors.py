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

from ..simt.lanes import WARP, Lanes
from ..simt.warps import BITS, LANE
from .happens_before import Clock
from .stamps import ID, KIND, ONE, TIME, WARP_LANES

SHIFT = 15  # bits of a thread's number in its block or cluster


class Accessors:
    """The last accesses of each warp to each cell.

    `stamps`, a list of int64 (cells,), one array for each slot: the stamp of the access, which names the last of the
    lanes `masks`, uint32 (cells,), that made it; 0 for a free slot.
    """

    def __init__(self) -> None:
        self.stamps: list[np.ndarray] = []
        self.masks: list[np.ndarray] = []

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace each array by the result of `function` on it."""
        self.stamps, self.masks = [[function(one) for one in each] for each in (self.stamps, self.masks)]

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
        self._place(last >> SHIFT, time | kinds << KIND | last & (1 << SHIFT) - 1, masks, floor, cells)

    def _place(self, cells: np.ndarray, stamps: np.ndarray, masks: np.ndarray, floor: int, count: int) -> None:
        """Put each of these accesses into the first slot of its cell that it may take."""
        slot = 0
        while cells.size:
            if slot == len(self.stamps):
                self.stamps.append(np.zeros(count, np.int64))
                self.masks.append(np.zeros(count, np.uint32))
            there, lanes = self.stamps[slot], self.masks[slot]
            old = there.take(cells)
            own = ((old ^ stamps) & ID) // WARP == 0
            takes = (old < floor) | own & (lanes.take(cells) & ~masks == 0)
            mine = cells[takes]
            there[mine] = stamps[takes]
            # If several warps take a slot of one cell at once, the last one gets it.
            takes[takes] = there.take(mine) == stamps[takes]
            lanes[cells[takes]] = masks[takes]
            left = ~takes
            cells, stamps, masks = cells[left], stamps[left], masks[left]
            slot += 1

    def since(self, index: np.ndarray, times: np.ndarray) -> np.ndarray:
        """Return the cells that were accessed at `times` or later: bool; both arrays broadcast."""
        latest = np.zeros(index.shape, np.int64)
        for each in self.stamps:
            np.maximum(latest, each.take(index), out=latest)
        return latest >= np.maximum(times, 1)

    def unordered(
        self, cells: np.ndarray, block: np.ndarray, thread: np.ndarray, clock: Clock, reads: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the accesses that are not ordered before one of cell `cells[i]` by thread `thread[i]` of `block[i]`,
        (n,).

        Returns stamps, int64 (n, slots), the latest first, each of the last lane that is not ordered, and bool (n,
        slots), which marks the stamps that are such accesses. `reads` as for `Clock.unordered`.
        """
        before = np.stack([each.take(cells) for each in self.stamps], axis=1)
        found = _unordered(before, block, thread, clock, reads, True)
        some = found & (before >> KIND & 3 == WARP_LANES)
        if some.any():  # which of the lanes?
            row, slot = np.nonzero(some)
            masks = np.stack([each.take(cells[row]) for each in self.masks], axis=1)[np.arange(row.size), slot]
            stamps = before[some] & ~(3 << KIND | WARP - 1)
            lanes = np.where(masks[:, None] & BITS != 0, stamps[:, None] | LANE, 0)
            late = _unordered(lanes, block[row], thread[row], clock, reads, False)
            several = np.where(np.count_nonzero(late, axis=1) > 1, WARP_LANES, ONE)
            before[some] = np.where(late, lanes, 0).max(axis=1) | several << KIND
            found[some] = late.any(axis=1)
        order = np.argsort(-np.where(found, before, 0), axis=1, kind="stable")
        return np.take_along_axis(before, order, axis=1), np.take_along_axis(found, order, axis=1)


def _unordered(
    before: np.ndarray, block: np.ndarray, thread: np.ndarray, clock: Clock, reads: bool, every: bool
) -> np.ndarray:
    """Apply `Clock.unordered` to the accesses `before`, (n, ...), each with one thread."""
    lanes = Lanes(block[None], thread[None], clock.shape[1], True)
    found = clock.unordered(before[None], lanes, thread[None, :, None], False, reads, every)
    return np.broadcast_to(found, (1, *before.shape))[0].copy()
