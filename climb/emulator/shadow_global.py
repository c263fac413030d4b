"""What is known of global memory during a launch: which bytes have been written ever, and who races with whom.

Most allocations of a launch are only read, or only written, or only worked on by atomics. Only writes are entered at
once; when an allocation turns out to be used in two ways the launch starts over, from copies made before the first
write, and follows every access to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from . import races
from .shadow import Cells

if TYPE_CHECKING:
    from .access import Site
    from .groups import Group
    from .memory import Allocation

_ONES = {width: int.from_bytes(b"\1" * width, "little") for width in (1, 2, 4, 8)}


class StartOver(Exception):
    """The launch must run again, and follow all accesses to an allocation."""


def view_of(valid: np.ndarray, width: int) -> tuple[np.ndarray, int]:
    """The marks of bytes as marks of elements of `width` bytes, and how many of them make one element."""
    each = min(width, 8)
    whole = valid.size // each * each
    return valid[:whole].view(f"u{each}"), width // each


def read_written(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Raise Uninitialised where an access reads bytes that nothing has written. `allocation.written` is not None."""
    if allocation.written.all():
        allocation.written = None
        return
    marks, parts = view_of(allocation.written, site.width)
    index = (address + (site.offset - allocation.address)) // (site.width // parts)
    bad = np.zeros(index.shape, np.bool_)
    for part in range(parts):
        bad |= marks.take(index + part) != _ONES[site.width // parts]
    if bad.any():
        races.uninitialised(group, site, address, bad, "global", allocation)


def mark_written(site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """The bytes of a store or atomic hold a value from now on."""
    marks, parts = view_of(allocation.written, site.width)
    index = (address + (site.offset - allocation.address)) // (site.width // parts)
    for part in range(parts):
        marks[index + part] = _ONES[site.width // parts]


class _Followed:
    """An allocation whose accesses are entered: its cells and their width."""

    def __init__(self, allocation: Allocation, width: int) -> None:
        self.granule = width
        self.cells = Cells(-(-allocation.nbytes // width))

    def index(self, allocation: Allocation, site: Site, address: np.ndarray) -> np.ndarray:
        """Cells of an access, with axes block, thread, cell."""
        if site.width < self.granule:
            factor = self.granule // site.width
            self.cells.each(lambda each: np.repeat(each, factor))
            self.granule = site.width
        index = ((address + (site.offset - allocation.address)) >> self.granule.bit_length() - 1)[:, :, None]
        return index if site.width == self.granule else index + np.arange(site.width // self.granule)


class GlobalShadow:
    """The global memory of a launch, shared by its batches. `thorough` are the addresses of allocations to follow."""

    def __init__(self, thorough: set[int]) -> None:
        self.thorough = thorough
        self.followed: dict[int, _Followed] = {}
        self.seen: dict[int, set[str]] = {}
        self.copies: dict[int, tuple[Allocation, np.ndarray, np.ndarray | None]] = {}

    def restore(self) -> None:
        """Put back what the allocations held before the launch."""
        for allocation, data, written in self.copies.values():
            allocation.data[:] = data
            allocation.written = written

    def keep(self, allocation: Allocation) -> None:
        """Copy what an allocation holds before the launch first changes it."""
        if allocation.address not in self.copies:
            written = None if allocation.written is None else allocation.written.copy()
            self.copies[allocation.address] = (allocation, allocation.data.copy(), written)

    def _enter(self, site: Site, allocation: Allocation) -> _Followed | None:
        """The allocation's cells if this access needs them. Raises StartOver."""
        kinds = self.seen.setdefault(allocation.address, set())
        if site.action not in kinds:
            kinds.add(site.action)
            if len(kinds) > 1 and allocation.address not in self.thorough:
                self.thorough.add(allocation.address)
                raise StartOver
        if site.action != "store" and allocation.address not in self.thorough:
            return None
        found = self.followed.get(allocation.address)
        if found is None:
            found = self.followed[allocation.address] = _Followed(allocation, site.width)
        return found

    def load(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """A load that is not volatile. Raises Race and StartOver."""
        followed = self._enter(site, allocation)
        if followed is None:
            return
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        for which in ("writes", "atomics"):
            self._meet(which, followed, index, ids, group, site, allocation, address)
        self._join(followed.cells.reads, index, stamp | ids, group)

    def store(
        self,
        group: Group,
        site: Site,
        allocation: Allocation,
        address: np.ndarray,
        changed: Callable[[], np.ndarray],
    ) -> np.ndarray:
        """A store that is not volatile; as `SharedShadow.write`. Raises Race and StartOver."""
        followed = self._enter(site, allocation)
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        if allocation.address in self.thorough:
            for which in ("reads", "atomics"):
                self._meet(which, followed, index, ids, group, site, allocation, address)
        self._meet("writes", followed, index, ids, group, site, allocation, address, changed)
        stamps = stamp | ids
        index = np.broadcast_to(index, np.broadcast_shapes(index.shape, stamps.shape))
        followed.cells.writes[index] = stamps
        return (followed.cells.writes.take(index) != stamps).any(axis=2)

    def atomic(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """An atomic operation. Raises Race and StartOver."""
        if site.operation in races.SWAPS:
            return
        followed = self._enter(site, allocation)
        if followed is None:
            return
        index, ids, stamp = self._begin(followed, group, site, allocation, address)
        self._meet("writes", followed, index, ids, group, site, allocation, address)
        if site.operation in races.SUMS:
            self._meet("reads", followed, index, ids, group, site, allocation, address)
        self._join(followed.cells.atomics, index, stamp | ids, group)

    # Inside

    def _begin(
        self, followed: _Followed, group: Group, site: Site, allocation: Allocation, address: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, int]:
        batch, lanes = group.batch, group.lanes
        index = followed.index(allocation, site, address)
        ids = ((batch.start + lanes.block) * batch.threads + lanes.thread)[:, :, None]
        return index, ids, batch.clock.events.next(site)

    def _meet(
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
        found = clock.unordered(before, group.lanes, ids, True)
        if where is not None and found.any():
            found = found & where()[:, :, None]
        if found.any():
            races.judge(group, site, address, before, found, clock, "global", allocation)

    def _join(self, into: np.ndarray, index: np.ndarray, stamps: np.ndarray, group: Group) -> None:
        shape = np.broadcast_shapes(index.shape, stamps.shape)
        index, stamps = np.broadcast_to(index, shape), np.broadcast_to(stamps, shape)
        Cells.enter(into, index, stamps, group.batch.clock, group.lanes, True)
