"""Asynchronous accesses in flight: find the accesses that conflict with them.

An asynchronous operation (cp.async, a bulk copy, TMA, wgmma) reads and writes memory at any time between the
instruction that issues it and the wait that covers it. In that span, no thread may write what it reads, and no thread
may read or write what it writes, not even the thread that issued it.

    issue          runtime.asynchronous: `begin`, for each access of the operation; compares it with the others in
                   flight and, in shared memory, with the ordinary accesses before it
    any access     SharedShadow and hooks: `check_shared`, `check_global`
    wait           runtime.asynchronous: `end`, for the lanes that the wait covers

From the wait on, an access to shared memory counts as an ordinary one by the thread that issued it, made at the time of
the wait: if another thread uses the result without a barrier after the wait, SharedShadow finds a race as between any
two threads.

This module does not know how an operation completes: `simt.async_access.CommitGroups` keeps operations that complete by
groups. Code that keeps others, such as those that complete with the phase of an mbarrier, calls `begin` and `end` in
the same way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from ..errors import AsyncRace
from ..memory.device_memory import Allocation
from ..simt.async_access import AsyncAccess
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..simt.site import Site
from . import hooks, proxies, races
from .faults import place

CELL = 4  # bytes; asynchronous accesses are multiples of it
PAIR = 8  # bytes of two cells
_NOWHERE = np.zeros((1, 1), np.bool_)


class InFlight:
    """The asynchronous accesses of a batch that are in flight; raises AsyncRace for those that conflict with them."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._shared: list[AsyncAccess] = []
        self._global: dict[int, tuple[int, int, AsyncAccess]] = {}  # by id: first byte, end, access
        self._global_writes = 0
        self._written, self._read = (_Marks(batch.blocks, batch.shared_bytes) for _ in range(2))
        self._sorted: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # by id of an access in flight, see `_sorted_keys`

    def begin(self, access: AsyncAccess) -> None:
        """Enter an operation that starts to access memory.

        Raises AsyncRace for a conflict with another operation in flight. For shared memory of the lanes' own blocks,
        raises Race for an ordinary access that is not ordered before it, LateLoad for one that may still be on its way,
        and Uninitialised.
        """
        if access.site.space != "shared":
            if access.writes or self._global_writes:  # reads do not conflict with each other
                low, end = _bounds(access)
                near = (one for first, last, one in self._global.values() if first < end and last > low)
                self._compare(access, [one for one in near if one.writes or access.writes])
            self._enter_global(access)
            if access.writes:
                self._check_start(access)
            return
        cells = (access.block, access.site, access.address)
        written, read = self._written.hit(*cells).any(), self._read.hit(*cells).any()
        if written or (read and access.writes):
            self._compare(access, self._shared)
        where = () if access.home is None else (access.home,)
        group = Group(self._batch, access.lanes, {})
        self._batch.shared_shadow.begins(group, access.site, access.address, *where)
        if access.writes and self._batch.late_loads is not None and proxies.asynchronous(access.site):
            self._batch.late_loads.begins(group, access.site, access.address, *where)
        self._shared.append(access)
        self._marks(access).add(access, 1)

    def end(self, access: AsyncAccess, done: AsyncAccess, left: AsyncAccess | None = None) -> None:
        """Handle a wait that covers the lanes `done` of an access, whose bytes have been moved, and not the lanes
        `left`.

        Raises Race if lanes of the access have written different values to one place.
        """
        self._sorted.pop(id(access), None)
        if access.site.space != "shared":
            del self._global[id(access)]
            self._global_writes -= access.writes
            if left is not None:
                self._enter_global(left)
            if not done.writes:  # code that carries out a write enters it as well
                self._read_until_now(done)
            return
        self._shared.remove(access)
        self._marks(access).add(access, -1)
        if left is not None:
            self._shared.append(left)
            self._marks(left).add(left, 1)
        if done.collective:
            group = Group(self._batch, done.lanes, {})
            self._batch.shared_shadow.products_end(group, done.site, done.address, done.number)
        else:
            self._settle(done)

    def divide(self, access: AsyncAccess, parts: list[AsyncAccess]) -> None:
        """Replace an access in flight by `parts`, which make it up and may end one by one."""
        self._sorted.pop(id(access), None)
        if access.site.space == "shared":
            self._shared.remove(access)
            self._shared += parts
            for each, count in ((access, -1), *((part, 1) for part in parts)):
                self._marks(each).add(each, count)
            return
        del self._global[id(access)]
        self._global_writes -= access.writes
        for part in parts:
            self._enter_global(part)

    def check_shared(self, group: Group, site: Site, address: np.ndarray, home: np.ndarray | None = None) -> None:
        """Check an ordinary access to shared memory, of the lanes' own blocks or of the blocks `home`. Raises
        AsyncRace."""
        if not self._shared:
            return
        lanes, writes = group.lanes, site.action != "load"
        block = lanes.block if home is None else home
        bad = self._written.hit(block, site, address)
        if writes:
            bad = bad | self._read.hit(block, site, address)
        if bad.any():
            self._find(site, lanes, self._keys("shared", site, lanes, block, address), None, self._shared)

    def check_global(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Check an ordinary access to global memory. Raises AsyncRace."""
        writes = site.action != "load"
        if not self._global or not (writes or self._global_writes):
            return
        near = [one for low, end, one in self._global.values() if low < allocation.end and end > allocation.address]
        if near:
            lanes = group.lanes
            self._find(site, lanes, self._keys("global", site, lanes, lanes.block, address), None, near)

    def _marks(self, access: AsyncAccess) -> _Marks:
        return self._written if access.writes else self._read

    def _enter_global(self, access: AsyncAccess) -> None:
        self._global[id(access)] = (*_bounds(access), access)
        self._global_writes += access.writes

    def _check_start(self, access: AsyncAccess) -> None:
        """Raise Race for accesses to global memory that are not ordered before a write that starts now."""
        shadow, group = self._batch.global_shadow, Group(self._batch, access.lanes, {})
        if shadow is not None:
            for allocation, part, address in self._by_allocation(group, access):
                shadow.begins(part, access.site, allocation, address)

    def _read_until_now(self, done: AsyncAccess) -> None:
        """Enter a read of global memory as one made now: a later write must be ordered after the wait."""
        shadow, group = self._batch.global_shadow, Group(self._batch, done.lanes, {})
        if shadow is not None and shadow.thorough:
            for allocation, part, address in self._by_allocation(group, done):
                if allocation.address in shadow.thorough:
                    shadow.load(part, done.site, allocation, address)

    def _by_allocation(self, group: Group, access: AsyncAccess) -> Iterator[tuple[Allocation, Group, np.ndarray]]:
        """Yield the allocations that an access reaches, each with the lanes and their addresses."""
        address, site = np.broadcast_to(access.address, access.lanes.shape), access.site
        left = np.ones(address.shape, np.bool_) if access.some is None else np.broadcast_to(access.some, address.shape)
        while left.any():
            allocation = self._batch.find(int(address[left][0]) + site.offset, site.width)
            inside = left & (address + site.offset >= allocation.address) & (address + site.offset < allocation.end)
            if inside.all():
                yield allocation, group, address
                return
            flat = np.flatnonzero(inside)
            block, thread = (np.broadcast_to(each, address.shape).ravel()[flat].reshape(1, -1)
                             for each in (access.lanes.block, access.lanes.thread))  # fmt: skip
            lanes = Lanes(block, thread, access.lanes.threads, True)
            yield allocation, Group(self._batch, lanes, {}), address.ravel()[flat].reshape(1, -1)
            left = left & ~inside

    def _settle(self, done: AsyncAccess) -> None:
        """Enter an access that is complete as an ordinary access of its lanes, made now."""
        batch, site, group = self._batch, done.site, Group(self._batch, done.lanes, {})
        if not done.writes:
            batch.shared_shadow.enter_read(group, site, done.address)
            return
        where = () if done.home is None else (done.home,)
        if done.value is None:
            batch.shared_shadow.enter_write(group, site, done.address, lambda: np.zeros((1, 1), np.bool_), *where)
            return
        data, shift = batch.shared_view(site.container), site.container.itemsize.bit_length() - 1
        start = done.block * (batch.shared.shape[1] >> shift)
        index = np.broadcast_to((done.address + site.offset >> shift) + start, done.lanes.shape)
        lost = batch.shared_shadow.enter_write(
            group, site, done.address, lambda: hooks.differ(data, index, done.value), *where
        )
        if lost.any():
            lost = lost & hooks.differ(data, index, done.value)
            if lost.any():
                races.write_conflict(group, site, done.address, lost, "shared", None)

    def _compare(self, access: AsyncAccess, others: list[AsyncAccess]) -> None:
        """Raise AsyncRace if an operation that starts conflicts with one of `others`."""
        self._find(access.site, access.lanes, self._keys_of(access), access, others)

    def _find(
        self, site: Site, lanes: Lanes, keys: np.ndarray, access: AsyncAccess | None, others: list[AsyncAccess]
    ) -> None:
        """Raise AsyncRace for the first lane that conflicts with one of `others`, if there is one.

        `keys`: the places that the lanes access, see `_keys`; `access`: the operation that accesses them, None for an
        ordinary access.
        """
        for other in others:
            if not (other.writes or site.action != "load") or {site.action, other.site.action} == {"atomic"}:
                continue
            theirs, order = self._sorted_keys(other)
            at = np.searchsorted(theirs, keys - other.site.width, side="right")
            at_most = np.minimum(at, theirs.size - 1)
            bad = (at < theirs.size) & (theirs[at_most] < keys + site.width)
            if access is not None and access.value is not None and other.value is not None:
                bad &= ~((theirs[at_most] == keys) & _same(access, other, order[at_most]))
            if bad.any():
                first = int(np.flatnonzero(bad)[0])
                index = int(order[at[first]])
                self._raise(site, lanes, access, other, bad, index, max(int(keys[first]), int(theirs[at[first]])))

    def _keys(self, space: str, site: Site, lanes: Lanes, block: np.ndarray, address: np.ndarray) -> np.ndarray:
        """Return the place that each lane accesses, int64 (lanes,): an address; in shared memory it counts on from
        block to block."""
        full = address + site.offset
        if space == "shared":
            full = full + block * self._batch.shared.shape[1]
        return np.broadcast_to(full, lanes.shape).reshape(-1)

    def _sorted_keys(self, access: AsyncAccess) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys of an access in flight in ascending order, and the lanes in that order."""
        found = self._sorted.get(id(access))
        if found is None:
            keys = self._keys_of(access)
            order = np.argsort(keys, kind="stable")
            found = self._sorted[id(access)] = (keys[order], order)
        return found

    def _keys_of(self, access: AsyncAccess) -> np.ndarray:
        return self._keys(access.site.space, access.site, access.lanes, access.block, access.address)

    def _raise(
        self, site: Site, lanes: Lanes, access: AsyncAccess | None, other: AsyncAccess, bad: np.ndarray, index: int,
        key: int,
    ) -> NoReturn:  # fmt: skip
        """Raise AsyncRace: the lanes where `bad` holds, flat, conflict with `other`, first with its lane `index`."""
        batch, space = self._batch, other.site.space
        first = int(np.flatnonzero(bad)[0])
        where = place(batch, site.location, *lanes.at(first), int(np.count_nonzero(bad)))
        block, thread = other.lanes.at(index)
        there = place(batch, other.site.location, block, thread, 1)
        allocation = batch.find(key, 1) if space == "global" else None
        at = key if space == "global" else key % batch.shared.shape[1]
        name, offset = races.name_of(batch.kernel, space, at, allocation)
        what, another = f"this {races.NOUNS[site.action]} of", "an"
        if access is not None:
            what, another = f"this asynchronous {site.asynchronous} {_verb(access)}", "another"
        file = there.file.rsplit("/", 1)[-1]
        raise AsyncRace(
            f"race in {space} memory: {what} byte {offset} of {name}, which {another} asynchronous "
            f"{other.site.asynchronous} of {races.thread_text(there, where)} {_verb(other)}, issued at "
            f"{file}:{there.line}: {there.text.rstrip('; ')}; it is still in flight, because "
            f"{other.why(block, thread, int(other.number[index]))}",
            where,
            space=space,
            address=at,
            allocation=allocation,
            name=name,
            offset=offset,
            other=there,
            same_warp=there.block == where.block and thread // 32 == lanes.at(first)[1] // 32,
        )


def _bounds(access: AsyncAccess) -> tuple[int, int]:
    """Return the first byte of an access to global memory, and the end of its last."""
    site = access.site
    return int(access.address.min()) + site.offset, int(access.address.max()) + site.offset + site.width


class _Marks:
    """The number of accesses in flight that use each cell of shared memory. One row of cells stands for all blocks
    while every access is the same in all of them."""

    def __init__(self, blocks: int, nbytes: int) -> None:
        self._blocks, self._row = blocks, -(-nbytes // PAIR) * (PAIR // CELL)
        self._cells = np.zeros(self._row, np.int32)
        self._expanded = blocks == 1
        self._accesses = 0

    def hit(self, block: np.ndarray, site: Site, address: np.ndarray) -> np.ndarray:
        """Return the lanes that access a cell in use in shared memory of `block`: bool, broadcasting to the lanes'
        shape."""
        if not self._accesses:
            return _NOWHERE
        # Every load comes here while a copy is in flight. Two cells at once take half the time.
        unit, cells = (PAIR, self._cells.view(np.int64)) if site.width >= PAIR else (CELL, self._cells)
        found = cells.take(self._index(block, site, address, unit)) != 0
        return found[:, :, 0] if found.shape[2] == 1 else found.any(axis=2)

    def add(self, access: AsyncAccess, count: int) -> None:
        """Add to the number of each cell that an access uses."""
        lanes, address = access.lanes, access.address
        everywhere = not lanes.ragged and lanes.shape[0] == self._blocks and address.shape[0] == 1
        if not self._expanded and not (everywhere and access.home is None):
            self._cells = np.tile(self._cells, self._blocks)
            self._expanded = True
        # A cell that several lanes use counts once: NumPy adds to each indexed cell once.
        self._cells[self._index(access.block, access.site, address, CELL)] += count
        self._accesses += count

    def _index(self, block: np.ndarray, site: Site, address: np.ndarray, unit: int) -> np.ndarray:
        """Return the pieces of `unit` bytes that lanes access, (blocks, threads, pieces)."""
        index = ((address + site.offset) >> unit.bit_length() - 1)[:, :, None]
        if site.width > unit:
            index = index + np.arange(site.width // unit)
        if self._expanded and self._blocks > 1:
            index = index + (block * (self._row * CELL // unit))[:, :, None]
        return index


def _same(access: AsyncAccess, other: AsyncAccess, index: np.ndarray) -> np.ndarray:
    """Return whether each lane of an access writes the same bytes as lane `index` of another: bool (lanes,)."""
    if access.site.width != other.site.width:
        return np.zeros(index.shape, np.bool_)
    ours, theirs = (
        np.ascontiguousarray(np.broadcast_to(one.value, one.lanes.shape)).view(np.uint8).reshape(-1, one.site.width)
        for one in (access, other)
    )
    return (ours == theirs[index]).all(axis=1)


def _verb(access: AsyncAccess) -> str:
    return "writes" if access.writes else "reads"
