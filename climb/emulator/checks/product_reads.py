"""The shared memory read by matrix products of warpgroups (wgmma), compared with later writes.

A read is in flight until its warpgroup waits for it; `in_flight` checks those. From then on, a thread that writes there
must know of the wait: it waited itself, or another thread of the warpgroup did and synchronised with it by a barrier or
through an mbarrier. Any thread of the warpgroup may wait, since products belong to the whole warpgroup. See
`MbarrierOrder.products`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..simt.groups import Group
from ..simt.lanes import WARP, Lanes
from ..simt.site import Site
from .happens_before import Clock
from .races import report
from .stamps import KIND, ONE

WHY = (
    "this thread cannot know that the product is complete: no __syncthreads, no barrier of the cluster and no mbarrier "
    "at which the warpgroup arrives after its wait lies between; release the slot at the mbarrier that this thread "
    "waits for"
)


class ProductReads:
    """The last product of each warpgroup that has read a cell of shared memory, of a block or of a cluster.

    Arrays by number of the warpgroup in its block hold, for each cell, the commit group plus 1 (0: none), and the stamp
    of its wait.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.numbers: dict[int, np.ndarray] = {}
        self.stamps: dict[int, np.ndarray] = {}

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        """Replace each array by the result of `function` on it."""
        for arrays in (self.numbers, self.stamps):
            arrays.update({key: function(each) for key, each in arrays.items()})

    def enter(self, site: Site, lanes: Lanes, index: np.ndarray, number: np.ndarray, cells: int) -> None:
        """Record that warps of `lanes` have waited for products of the commit groups `number`, (lanes,), which had read
        the cells `index`, (blocks, threads, cells), of `cells`."""
        order = self.clock.order()
        warp = np.broadcast_to(lanes.thread, lanes.shape).ravel() // WARP
        order.complete_products(lanes, number + 1)
        stamp = self.clock.events.next(site)
        index = np.broadcast_to(index, (*lanes.shape, index.shape[2])).reshape(warp.size, -1)
        group = order.warpgroup(warp)
        for each in np.unique(group).tolist():
            if each not in self.numbers:
                self.numbers[each], self.stamps[each] = np.zeros((2, cells), np.int64)
            mine = group == each
            self.numbers[each][index[mine]] = number[mine, None] + 1
            self.stamps[each][index[mine]] = stamp | WARP * order.first_of_group(warp[mine, None])

    def check(self, group: Group, site: Site, address: np.ndarray, index: np.ndarray, row: int) -> None:
        """Raise Race for lanes that write cells which a product has read, if they cannot know that it is complete.

        `index`: (blocks, threads, cells); `row`: the cells of one block.
        """
        lanes, order = group.lanes, self.clock.order()
        for each, numbers in self.numbers.items():
            last = numbers.take(index)
            if not last.any():
                continue
            rank = index // row % (order.warps // order.warps_of_block)
            known = order.products(lanes.block[:, :, None], lanes.thread[:, :, None] // WARP, rank, each)
            late = np.broadcast_to(last > known, (*lanes.shape, index.shape[2]))
            if late.any():
                at = tuple(int(one[0]) for one in np.nonzero(late))
                stamp = int(np.broadcast_to(self.stamps[each].take(index), late.shape)[at])
                place = int(np.broadcast_to(address + site.offset, lanes.shape)[at[:2]])
                report(group, site, late.any(axis=2), place, stamp | ONE << KIND, False, "shared", None, WHY)
