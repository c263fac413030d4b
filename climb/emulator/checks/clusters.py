"""The search for races in a launch of clusters.

To the clock and the shadow of shared memory, a cluster is one large block: its threads are numbered by rank, with whole
warps for each block, and the shared memories of its blocks lie one after the other. A barrier of one block is then a
barrier of some warps, and the barrier of the cluster is one of all. The shadow of global memory keeps the numbers of
the launch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import Race
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import WARP, Lanes
from ..simt.site import Site
from .faults import place
from .happens_before import Clock
from .mbarrier_order import MbarrierOrder
from .shared_shadow import SharedShadow
from .stamps import ID, Events


class ClusterLanes(Lanes):
    """Lanes of a cluster: `block` is the cluster within the batch, `thread` the thread within the cluster.

    `at` gives the block and thread that they are in the launch.
    """

    __slots__ = ("per_block_threads", "size")

    def __init__(self, lanes: Lanes, size: int, padded: int) -> None:
        block, thread = (np.broadcast_to(each, lanes.shape).reshape(1, -1) for each in (lanes.block, lanes.thread))
        super().__init__(block // size, block % size * padded + thread, size * padded, True)
        self.size, self.per_block_threads = size, padded

    def locate(self, block: int, thread: int) -> tuple[int, int]:
        """The block of the batch, and the thread in it, that are `thread` of cluster `block`."""
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
        """The same lanes, numbered within their clusters."""
        return ClusterLanes(lanes, self.size, self.padded)

    @property
    def floor(self) -> int:
        """No thread's last barrier is earlier."""
        return self.inner.floor

    def unordered(
        self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, launch_wide: bool, reads: bool = False
    ) -> np.ndarray:
        """As `Clock.unordered`, for stamps with the numbers of the launch."""
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
        """All of `lanes` have waited for each other, in their own blocks; see `Clock.synchronize`."""
        inner, mine = self.inner, self.lanes(lanes)
        inner.synchronize("warp", mine)
        if gate == "barrier":
            waiting = np.zeros((self.shape[0], inner.warps_in_block), np.bool_)
            waiting[lanes.block, (mine.thread // WARP).reshape(lanes.shape)] = True
            here = np.flatnonzero(waiting.any(axis=1))
            inner.synchronize_warps(here // self.size, waiting[here], np.zeros((here.size, waiting.shape[1]), np.int64))
        return False

    def synchronize_masks(self, lanes: Lanes, mask: np.ndarray, writes: bool) -> None:
        """See `Clock.synchronize_masks`."""
        self.inner.synchronize_masks(self.lanes(lanes), np.broadcast_to(mask, lanes.shape).reshape(1, -1), writes)

    def synchronize_warps(self, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray) -> None:
        """See `Clock.synchronize_warps`."""
        warps = self.padded // WARP
        rows = np.arange(blocks.size).reshape(-1, 1)
        columns = (blocks % self.size * warps).reshape(-1, 1) + np.arange(warps)
        wide = [np.zeros((blocks.size, self.size * warps), each.dtype) for each in (waiting, arrived)]
        for into, each in zip(wide, (waiting, arrived), strict=True):
            into[rows, columns] = each
        self.inner.synchronize_warps(blocks // self.size, *wide)

    def synchronize_cluster(self, lanes: Lanes, when: np.ndarray) -> None:
        """See `Clock.synchronize_cluster`."""
        wide = np.full((self.shape[0], self.padded), np.iinfo(np.int64).max)
        wide[:, : self.shape[1]] = when
        self.inner.synchronize_cluster(
            self.lanes(lanes), wide.reshape(self.inner.shape), lanes.count == self.shape[0] * self.shape[1]
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
        """Lanes execute an acquiring access."""
        self.inner.acquire(self.lanes(lanes))

    def complete_relaxed_loads(self, lanes: Lanes, wide: bool) -> None:
        """See `Clock.complete_relaxed_loads`."""
        self.inner.complete_relaxed_loads(self.lanes(lanes), wide)

    def load_relaxed(self, lanes: Lanes) -> None:
        """Lanes execute a relaxed or volatile load."""
        self.inner.load_relaxed(self.lanes(lanes))

    def hand_over(self, lanes: Lanes, address: np.ndarray, gives: bool, takes: bool, acquires: bool = True) -> None:
        """See `Clock.hand_over`."""
        places = np.broadcast_to(address, lanes.shape).reshape(1, -1)
        self.inner.hand_over(self.lanes(lanes), places, gives, takes, acquires)

    def known_since(self, lanes: Lanes) -> np.ndarray:
        """See `Clock.known_since`; barriers of a block count as well as those of the cluster."""
        return np.full(lanes.shape, self.events.now)


class ClusterShadow:
    """The shadow of the shared memory of a batch of clusters; see `SharedShadow`.

    `used`: by (block whose memory it is, cluster, thread), the stamp of the last access from another block, which must
    happen before the block leaves.
    """

    def __init__(self, clock: ClusterClock, batch: Batch) -> None:
        self.clock, self.row = clock, batch.shared.shape[1]
        self.inner = SharedShadow(clock.inner, clock.size * self.row, clock.size)
        self.used: dict[tuple[int, int, int], int] = {}

    def _place(self, group: Group, site: Site, home: np.ndarray, address: np.ndarray) -> tuple[Group, np.ndarray]:
        lanes = group.lanes
        rank = np.broadcast_to(home % self.clock.size, lanes.shape)
        place = np.broadcast_to(address, lanes.shape) + rank * self.row
        return Group(group.batch, self.clock.lanes(lanes), {}), place.reshape(1, -1)

    def synchronize(self, gate: str, lanes: Lanes) -> None:
        """All of `lanes` have waited for each other."""
        self.clock.synchronize(gate, lanes)

    def read(self, group: Group, site: Site, address: np.ndarray) -> None:
        """See `SharedShadow.read`."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        self.enter_read(group, site, address)

    def enter_read(self, group: Group, site: Site, address: np.ndarray) -> None:
        """See `SharedShadow.enter_read`."""
        inside, place = self._place(group, site, group.lanes.block, address)
        self.inner.enter_read(inside, site, place)

    def write(self, group: Group, site: Site, address: np.ndarray, changed: Callable[[], np.ndarray]) -> np.ndarray:
        """See `SharedShadow.write`."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        return self.enter_write(group, site, address, changed)

    def enter_write(
        self,
        group: Group,
        site: Site,
        address: np.ndarray,
        changed: Callable[[], np.ndarray],
        home: np.ndarray | None = None,
    ) -> np.ndarray:
        """See `SharedShadow.enter_write`. `home`: the block whose memory it is, if it is not the lane's own."""
        shape = group.lanes.shape
        inside, place = self._place(group, site, group.lanes.block if home is None else home, address)
        lost = self.inner.enter_write(inside, site, place, lambda: np.broadcast_to(changed(), shape).reshape(1, -1))
        return np.broadcast_to(lost, (1, shape[0] * shape[1])).reshape(shape)

    def begins(self, group: Group, site: Site, address: np.ndarray, home: np.ndarray | None = None) -> None:
        """See `SharedShadow.begins`. `home`: the block whose memory it is, if it is not the lane's own."""
        inside, place = self._place(group, site, group.lanes.block if home is None else home, address)
        self.inner.begins(inside, site, place)

    def atomic(self, group: Group, site: Site, address: np.ndarray) -> None:
        """See `SharedShadow.atomic`."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        inside, place = self._place(group, site, group.lanes.block, address)
        self.inner.enter_atomic(inside, site, place)

    def products_end(self, group: Group, site: Site, address: np.ndarray, number: np.ndarray) -> None:
        """See `SharedShadow.products_end`."""
        inside, place = self._place(group, site, group.lanes.block, address)
        self.inner.products_end(inside, site, place, number)

    def last_writes(self, lanes: Lanes, site: Site, address: np.ndarray) -> np.ndarray:
        """See `SharedShadow.last_writes`; the stamps hold thread numbers of the blocks."""
        rank = np.broadcast_to(lanes.block % self.clock.size, lanes.shape)
        place = (np.broadcast_to(address, lanes.shape) + rank * self.row).reshape(1, -1)
        found = self.inner.last_writes(self.clock.lanes(lanes), site, place)
        number = found & ID
        return (found - number + number % self.clock.padded).reshape(*lanes.shape, -1)

    def remote(self, group: Group, site: Site, home: np.ndarray, local: np.ndarray) -> None:
        """An access to shared memory of the cluster at `local`, offset included, in block `home` of the batch."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, local - site.offset, home)
        inside, place = self._place(group, site, home, local - site.offset)
        if site.action == "load":
            self.inner.enter_read(inside, site, place)
        elif site.action == "store":
            self.inner.enter_write(inside, site, place, lambda: np.ones((1, 1), np.bool_))
        else:
            self.inner.enter_atomic(inside, site, place)
        self._uses(inside.lanes, home)

    def _uses(self, lanes: ClusterLanes, home: np.ndarray) -> None:
        stamp = self.clock.events.now - (1 << 30)
        homes = np.broadcast_to(home, home.shape).ravel().tolist()
        clusters, threads = lanes.block.ravel().tolist(), lanes.thread.ravel().tolist()
        for where in zip(homes, clusters, threads, strict=True):
            self.used[where] = stamp | where[2]

    def is_written(self, start: int, nbytes: int) -> None:
        """See `SharedShadow.is_written`; in every block."""
        for rank in range(self.clock.size):
            self.inner.is_written(rank * self.row + start, nbytes)

    def check_left(self, batch: Batch) -> None:
        """When all blocks have ended: raise Race if a block may have left before another one accessed its memory."""
        clock, inner = self.clock, self.clock.inner
        for home in sorted({where[0] for where in self.used}):
            cluster, rank = divmod(home, clock.size)
            stamps = np.array(sorted(stamp for where, stamp in self.used.items() if where[0] == home))
            thread = np.arange(batch.threads).reshape(1, -1) + rank * clock.padded
            lanes = Lanes(np.full(thread.shape, cluster), thread, inner.shape[1], True)
            shape = (1, batch.threads, stamps.size)
            before = np.broadcast_to(stamps, shape)
            late = inner.unordered(before, lanes, thread[:, :, None], False).all(axis=(0, 1))
            if late.any():
                self._raise(batch, home, int(stamps[late][0]))

    def _raise(self, batch: Batch, home: int, stamp: int) -> None:
        site = self.clock.events.site(stamp)
        rank, thread = divmod(stamp & ID, self.clock.padded)
        block = home // self.clock.size * self.clock.size + rank
        left = ",".join(map(str, batch.block_index(home)))
        raise Race(
            f"race in shared memory: this access to the shared memory of block ({left}), which may have left the "
            "kernel by then; the barrier of the cluster must lie between the access and the end of that block",
            place(batch, site.location, block, thread, 1),
            space="shared",
            address=0,
            allocation=None,
            name="",
            offset=0,
            other=None,
            same_warp=False,
        )
