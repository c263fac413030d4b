"""Shadow memory of global memory: find races between the accesses of a launch.

In most launches, each allocation is only read, only written, or only used by atomics. At first only writes are entered.
When an allocation turns out to be used in two ways, the launch restarts from copies made before the first write, and
then follows every access to that allocation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..memory.device_memory import Allocation
from ..simt.groups import Group
from ..simt.site import Site
from . import races
from .shadow_cells import Cells


class RestartLaunch(Exception):
    """The launch must restart and follow all accesses to an allocation that is used in two ways."""


class _Followed:
    """An allocation whose accesses are followed: its cells, and their width in bytes."""

    def __init__(self, allocation: Allocation, width: int) -> None:
        self.granule = width
        self.cells = Cells(-(-allocation.nbytes // width))

    def index(self, allocation: Allocation, site: Site, address: np.ndarray) -> np.ndarray:
        """Return the cells of an access, with axes block, thread, cell."""
        if site.width < self.granule:
            factor = self.granule // site.width
            self.cells.map(lambda each: np.repeat(each, factor))
            self.granule = site.width
        index = ((address + (site.offset - allocation.address)) >> self.granule.bit_length() - 1)[:, :, None]
        return index if site.width == self.granule else index + np.arange(site.width // self.granule)


class GlobalShadow:
    """The accesses to global memory in a launch; its batches share it.

    `thorough` holds the addresses of the allocations whose accesses are all followed.
    """

    def __init__(self, thorough: set[int]) -> None:
        self.thorough = thorough
        self.followed: dict[int, _Followed] = {}
        self.seen: dict[int, set[str]] = {}
        self.copies: dict[int, tuple[Allocation, np.ndarray, np.ndarray | None]] = {}

    def restore(self) -> None:
        """Restore the contents of the allocations from before the launch."""
        for allocation, data, written in self.copies.values():
            allocation.data[:] = data
            allocation.written = written

    def keep(self, allocation: Allocation) -> None:
        """Copy the contents of an allocation before the launch first changes it."""
        if allocation.address not in self.copies:
            written = None if allocation.written is None else allocation.written.copy()
            self.copies[allocation.address] = (allocation, allocation.data.copy(), written)

    def _enter(self, site: Site, allocation: Allocation) -> _Followed | None:
        """Return the followed allocation, or None if this access need not be entered. Raises RestartLaunch."""
        kinds = self.seen.setdefault(allocation.address, set())
        if site.action not in kinds:
            kinds.add(site.action)
            if len(kinds) > 1 and allocation.address not in self.thorough:
                self.thorough.add(allocation.address)
                raise RestartLaunch
        if site.action != "store" and allocation.address not in self.thorough:
            return None
        found = self.followed.get(allocation.address)
        if found is None:
            found = self.followed[allocation.address] = _Followed(allocation, site.width)
        return found

    def load(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter a load that is neither volatile nor ordered. Raises Race and RestartLaunch."""
        followed = self._enter(site, allocation)
        if followed is None:
            return
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        for which in ("writes", "atomics"):
            self._check(which, followed, index, ids, group, site, allocation, address)
        if site.read_only:
            self._check_read_only(followed, index, group, site, allocation, address)
        self._join(followed.cells.reads, index, stamp | ids, group)

    def see_atomics(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter a volatile or ordered load, which sees the atomics before it."""
        followed = self.followed.get(allocation.address)
        if followed is not None and followed.cells.last_atomics is not None:
            index, ids, stamp = self._begin(followed, group, site, allocation, address)
            stamps = stamp | ids
            shape = np.broadcast_shapes(index.shape, stamps.shape)
            followed.cells.see_atomics(np.broadcast_to(index, shape), np.broadcast_to(stamps, shape))

    def store(
        self,
        group: Group,
        site: Site,
        allocation: Allocation,
        address: np.ndarray,
        changed: Callable[[], np.ndarray],
    ) -> np.ndarray:
        """Enter a store that is neither volatile nor ordered; see `SharedShadow.write`. Raises Race and
        RestartLaunch."""
        followed = self._enter(site, allocation)
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        if allocation.address in self.thorough:
            for which in ("reads", "atomics"):
                self._check(which, followed, index, ids, group, site, allocation, address)
        self._check("writes", followed, index, ids, group, site, allocation, address, changed)
        stamps = stamp | ids
        index = np.broadcast_to(index, np.broadcast_shapes(index.shape, stamps.shape))
        followed.cells.writes[index] = stamps
        return (followed.cells.writes.take(index) != stamps).any(axis=2)

    def begins(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter the start of an asynchronous write, which counts as made when its thread waits for it. Raises Race."""
        followed = self.followed.get(allocation.address)
        if followed is None:
            return
        index, ids, _ = self._begin(followed, group, site, allocation, address)
        for which in ("reads", "atomics", "writes") if allocation.address in self.thorough else ("writes",):
            self._check(which, followed, index, ids, group, site, allocation, address)

    def atomic(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Enter an atomic operation. Raises Race and RestartLaunch."""
        if site.operation in races.SWAPS:
            return
        followed = self._enter(site, allocation)
        if followed is None:
            return
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        self._check("writes", followed, index, ids, group, site, allocation, address)
        if site.operation in races.SUMS:
            self._check("reads", followed, index, ids, group, site, allocation, address)
        stamps = stamp | ids
        shape = np.broadcast_shapes(index.shape, stamps.shape)
        index, stamps = np.broadcast_to(index, shape), np.broadcast_to(stamps, shape)
        followed.cells.enter_atomics(index, stamps, group.batch.clock, group.lanes, True)

    def _begin(
        self, followed: _Followed, group: Group, site: Site, allocation: Allocation, address: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Return the cells of an access, the thread of each lane in the launch, and the stamp of the access."""
        batch, lanes = group.batch, group.lanes
        index = followed.index(allocation, site, address)
        ids = ((batch.start + lanes.block) * batch.threads + lanes.thread)[:, :, None]
        return index, ids, batch.clock.events.next(site)

    def _check(
        self,
        which: str,
        followed: _Followed,
        index: np.ndarray,
        ids: np.ndarray,
        group: Group,
        site: Site,
        allocation: Allocation,
        address: np.ndarray,
        where: Callable[[], np.ndarray] | None = None,
    ) -> None:
        before = getattr(followed.cells, which).take(index)
        if not before.any():
            return
        clock = group.batch.clock
        found = clock.unordered(before, group.lanes, ids, True, which == "reads")
        if which == "atomics" and found.any():
            found = found & ~followed.cells.after_the_last_atomic(index, group.lanes, ids, clock, True)
        if where is not None and found.any():
            found = found & where()[:, :, None]
        if found.any():
            races.check_race(group, site, address, before, found, clock, "global", allocation)

    def _check_read_only(
        self,
        followed: _Followed,
        index: np.ndarray,
        group: Group,
        site: Site,
        allocation: Allocation,
        address: np.ndarray,
    ) -> None:
        """Raise Race for an ld.global.nc of what the launch has stored, also where the two are ordered."""
        before = followed.cells.writes.take(index)
        if not before.any():
            return
        before = np.broadcast_to(before, (*group.lanes.shape, before.shape[2]))
        bad = before.any(axis=2)
        at = np.broadcast_to(address + site.offset, bad.shape)[bad][0]
        stamp = int(before[before != 0][0])
        races.report(group, site, bad, int(at), stamp, False, "global", allocation, races.READ_ONLY)

    def _join(self, into: np.ndarray, index: np.ndarray, stamps: np.ndarray, group: Group) -> None:
        shape = np.broadcast_shapes(index.shape, stamps.shape)
        index, stamps = np.broadcast_to(index, shape), np.broadcast_to(stamps, shape)
        Cells.enter(into, index, stamps, group.batch.clock, group.lanes, True)
