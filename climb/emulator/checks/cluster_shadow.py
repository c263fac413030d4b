"""The search for races in the shared memories of a launch of clusters.

To the shadow of shared memory, a cluster is one large block, as it is to its clock: the shared memories of its blocks
lie one after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import Uninitialised
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes, broadcast_to
from ..simt.site import Site
from .cluster_clock import ClusterClock
from .cluster_lifetimes import ClusterLifetimes
from .shared_shadow import SharedShadow
from .stamps import ID


class ClusterShadow:
    """The shadow of the shared memory of a batch of clusters; see `SharedShadow`."""

    def __init__(self, clock: ClusterClock, batch: Batch) -> None:
        self.clock, self.row = clock, batch.shared.shape[1]
        narrowest = batch.kernel.code.narrowest_shared_write
        self.inner = SharedShadow(clock.inner, clock.size * self.row, clock.size, True, narrowest)
        self.lifetimes = ClusterLifetimes(clock, batch)

    def _place(self, group: Group, site: Site, home: np.ndarray, address: np.ndarray) -> tuple[Group, np.ndarray]:
        lanes = group.lanes
        rank = broadcast_to(home % self.clock.size, lanes.shape)
        place = broadcast_to(address, lanes.shape) + rank * self.row
        return Group(group.batch, self.clock.lanes(lanes), {}), place.reshape(1, -1)

    def synchronize(self, gate: str, lanes: Lanes) -> None:
        """Record that all of `lanes` have waited for each other."""
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

    def atomic(self, group: Group, site: Site, address: np.ndarray, known: bool = False) -> None:
        """See `SharedShadow.atomic`."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        inside, place = self._place(group, site, group.lanes.block, address)
        self.inner.enter_atomic(inside, site, place, known)

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

    def remote(
        self,
        group: Group,
        site: Site,
        home: np.ndarray,
        local: np.ndarray,
        changed: Callable[[], np.ndarray] = lambda: np.ones((1, 1), np.bool_),
        known: bool = False,
    ) -> np.ndarray:
        """Check an access to shared memory of the cluster at `local`, offset included, in block `home` of the batch.

        `changed`, and the result for stores, as for `SharedShadow.write`; `known` as for `SharedShadow.atomic`.
        """
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, local - site.offset, home)
        inside, place = self._place(group, site, home, local - site.offset)
        lost = np.zeros((1, 1), np.bool_)
        try:
            if site.action == "load":
                self.inner.enter_read(inside, site, place)
            elif site.action == "store":
                lost = self.enter_write(group, site, local - site.offset, changed, home)
            else:
                self.inner.enter_atomic(inside, site, place, known)
        except Uninitialised:
            self.lifetimes.access(group, site, home)  # a block that has not begun has written nothing: check first
            raise
        self.lifetimes.access(group, site, home)
        return lost

    def is_written(self, start: int, nbytes: int) -> None:
        """See `SharedShadow.is_written`; in every block."""
        for rank in range(self.clock.size):
            self.inner.is_written(rank * self.row + start, nbytes)

    def check_left(self, batch: Batch) -> None:
        """When all blocks have ended, raise ClusterLifetime if one may have left before an access to its memory."""
        self.lifetimes.check_left(batch)
