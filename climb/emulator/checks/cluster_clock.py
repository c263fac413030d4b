"""The happens-before relation in a launch of clusters.

To the clock, a cluster is one large block: its threads are numbered by rank, with whole warps for each block. A barrier
of one block is then a barrier of some warps, and the barrier of the cluster is one of all. The shadow of global memory
keeps the numbers of the launch.
"""

from __future__ import annotations

import numpy as np

from ..ptx.barriers import BARRIERS
from ..simt.batch import Batch
from ..simt.lanes import WARP, Lanes, broadcast_to
from .happens_before import Clock
from .mbarrier_order import MbarrierOrder
from .stamps import ID, Events

WHOLE = 1 << 21  # the number of the barrier of one block, at which all threads wait; see `Clock.arrive_at`


class ClusterLanes(Lanes):
    """Lanes of a cluster: `block` is the cluster within the batch, `thread` the thread within the cluster.

    `at` gives their block and thread in the launch.
    """

    __slots__ = ("per_block_threads", "size")

    def __init__(self, lanes: Lanes, size: int, padded: int) -> None:
        block, thread = (broadcast_to(each, lanes.shape).reshape(1, -1) for each in (lanes.block, lanes.thread))
        super().__init__(block // size, block % size * padded + thread, size * padded, True)
        self.size, self.per_block_threads = size, padded

    def locate(self, block: int, thread: int) -> tuple[int, int]:
        """Return the block of the batch, and the thread in it, for `thread` of cluster `block`."""
        return block * self.size + thread // self.per_block_threads, thread % self.per_block_threads


class ClusterClock:
    """The clock of a batch of clusters; see `Clock`. `shape`: (blocks, threads) of the batch."""

    def __init__(self, events: Events, batch: Batch) -> None:
        self.events, self.start, self.shape = events, batch.start, (batch.blocks, batch.threads)
        self.size = batch.order.size
        self.padded = -(-batch.threads // WARP) * WARP
        self.inner = Clock(
            events, batch.start // self.size, batch.blocks // self.size, self.size * self.padded, self.size
        )
        self.proxy_fences: np.ndarray | None = None

    def lanes(self, lanes: Lanes) -> ClusterLanes:
        """Return the same lanes, numbered within their clusters."""
        return ClusterLanes(lanes, self.size, self.padded)

    @property
    def floor(self) -> int:
        """The earliest time that the last barrier of any thread can have."""
        return self.inner.floor

    def unordered(
        self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, launch_wide: bool, reads: bool = False
    ) -> np.ndarray:
        """Like `Clock.unordered`, for stamps with the thread numbers of the launch."""
        threads, shape = self.shape[1], np.broadcast_shapes(before.shape, (*lanes.shape, 1))

        def renumber(stamps: np.ndarray) -> np.ndarray:
            number = stamps & ID
            block, thread = number // threads, number % threads
            return stamps - number + block * self.padded + thread

        flat = (1, shape[0] * shape[1], shape[2])
        before = np.where(before == 0, 0, renumber(before))
        before, ids = (np.broadcast_to(each, shape).reshape(flat) for each in (before, renumber(ids)))
        return self.inner.unordered(before, self.lanes(lanes), ids, launch_wide, reads).reshape(shape)

    def synchronize(self, gate: str, lanes: Lanes) -> bool:
        """Record that all of `lanes` have waited for each other, in their own blocks; see `Clock.synchronize`."""
        inner, mine = self.inner, self.lanes(lanes)
        inner.synchronize("warp", mine)
        if gate == "barrier":
            waiting = np.zeros((self.shape[0], inner.warps_in_block), np.bool_)
            waiting[lanes.block, (mine.thread // WARP).reshape(lanes.shape)] = True
            here = np.flatnonzero(waiting.any(axis=1))
            nobody = np.zeros((here.size, waiting.shape[1]), np.bool_)
            inner.synchronize_warps(here // self.size, waiting[here], nobody, np.full(here.size, WHOLE))
        return False

    def synchronize_masks(self, lanes: Lanes, mask: np.ndarray, writes: bool) -> None:
        """See `Clock.synchronize_masks`."""
        self.inner.synchronize_masks(self.lanes(lanes), np.broadcast_to(mask, lanes.shape).reshape(1, -1), writes)

    def arrive_at(self, lanes: Lanes, barriers: np.ndarray) -> None:
        """See `Clock.arrive_at`; the barriers are those of the lanes' own blocks."""
        rank = np.broadcast_to(lanes.block % self.size, lanes.shape).ravel()
        self.inner.arrive_at(self.lanes(lanes), rank * BARRIERS + barriers)

    def synchronize_warps(
        self, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray, barriers: np.ndarray
    ) -> None:
        """See `Clock.synchronize_warps`."""
        warps = self.padded // WARP
        rows = np.arange(blocks.size).reshape(-1, 1)
        columns = (blocks % self.size * warps).reshape(-1, 1) + np.arange(warps)
        wide = [np.zeros((blocks.size, self.size * warps), each.dtype) for each in (waiting, arrived)]
        for into, each in zip(wide, (waiting, arrived), strict=True):
            into[rows, columns] = each
        self.inner.synchronize_warps(blocks // self.size, *wide, blocks % self.size * BARRIERS + barriers)

    def arrive_at_cluster(self, lanes: Lanes, phase: np.ndarray) -> None:
        """See `Clock.arrive_at_cluster`."""
        self.inner.arrive_at_cluster(self.lanes(lanes), phase)

    def synchronize_cluster(self, lanes: Lanes, when: np.ndarray, phase: np.ndarray) -> None:
        """See `Clock.synchronize_cluster`."""
        wide = np.full((self.shape[0], self.padded), np.iinfo(np.int64).max)
        wide[:, : self.shape[1]] = when
        self.inner.synchronize_cluster(
            self.lanes(lanes),
            wide.reshape(self.inner.shape),
            phase[:: self.size],
            lanes.count == self.shape[0] * self.shape[1],
        )

    def exchange(self, lanes: Lanes) -> None:
        """See `Clock.exchange`."""
        self.inner.exchange(self.lanes(lanes))

    def fence(self, lanes: Lanes, wide: bool = True) -> None:
        """See `Clock.fence`."""
        self.inner.fence(self.lanes(lanes), wide)

    def order(self) -> MbarrierOrder:
        """See `Clock.order`."""
        return self.inner.order()

    def arrive(self, lanes: Lanes, words: np.ndarray, wide: bool = False) -> None:
        """See `Clock.arrive`."""
        self.inner.arrive(self.lanes(lanes), words, wide)

    def see_phase_end(self, lanes: Lanes, words: np.ndarray) -> None:
        """See `Clock.see_phase_end`."""
        self.inner.see_phase_end(self.lanes(lanes), words)

    def acquire(self, lanes: Lanes) -> None:
        """Record that lanes execute an acquiring access."""
        self.inner.acquire(self.lanes(lanes))

    def complete_relaxed_loads(self, lanes: Lanes, wide: bool) -> None:
        """See `Clock.complete_relaxed_loads`."""
        self.inner.complete_relaxed_loads(self.lanes(lanes), wide)

    def load_relaxed(self, lanes: Lanes) -> None:
        """Record that lanes execute a relaxed or volatile load."""
        self.inner.load_relaxed(self.lanes(lanes))

    def hand_over(self, lanes: Lanes, address: np.ndarray, gives: bool, takes: bool, acquires: bool = True) -> None:
        """See `Clock.hand_over`."""
        places = np.broadcast_to(address, lanes.shape).reshape(1, -1)
        self.inner.hand_over(self.lanes(lanes), places, gives, takes, acquires)

    def known_since(self, lanes: Lanes) -> np.ndarray:
        """See `Clock.known_since`; barriers of a block count as well as those of the cluster."""
        return np.full(lanes.shape, self.events.now)
