"""Shadow memory of shared memory: find races between its accesses, and reads that no write precedes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes, broadcast_to
from ..simt.site import Site
from . import bulk_accesses, races
from .accessors import Accessors
from .happens_before import Clock
from .product_reads import ProductReads
from .shadow_cells import Cells
from .stamps import TIME
from .thread_times import times_of

LOG_LIMIT = 1 << 22  # cells of accesses that are logged but not yet entered: 32 MiB
WORD = 4  # bytes


class SharedShadow:
    """The accesses to the shared memory of a batch of blocks.

    While all blocks access the same addresses together, one row of cells stands for all of them. A block of the clock
    may be a cluster of `size` blocks, whose shared memories follow each other. `in_part`: the kernel can order some
    threads without the others, so each cell needs the list of its accessors; see `accessors`.

    `narrowest_write`: the bytes of the narrowest write that the kernel may make. Bytes that are always written together
    have the same accesses to compare with, so a narrower load does not divide a word of them: a kernel that reads one
    flag as a byte would otherwise have four times the cells in every other access. Larger cells are divided by any
    access: the lanes of a warp read them in turn, and each set of lanes takes a slot of its cell.
    """

    def __init__(
        self, clock: Clock, nbytes: int, size: int = 1, in_part: bool = False, narrowest_write: int = 1
    ) -> None:
        self.clock, self.nbytes, self.granule = clock, nbytes, 16
        self._whole = min(narrowest_write, WORD)
        self.cells = Cells(-(-nbytes // 16))
        self.rows = 1
        self.last_write = self.last_read = self.last_atomic = 0
        self._reads: list[tuple[np.ndarray, np.ndarray, Lanes]] = []
        self._atomics: list[tuple[np.ndarray, np.ndarray, Lanes]] = []
        self._logged = 0
        self.products: ProductReads | None = None
        self._size = size
        self._in_part = in_part
        #: If `in_part`: the threads that read a cell or used it by atomics; and all but the last of the writes that are
        #: unordered because they store the same value.
        self.accessors = {which: Accessors() for which in (("reads", "atomics") if in_part else ())}

    def is_written(self, start: int, nbytes: int) -> None:
        """Note that the system has written these bytes before the launch. Both numbers are multiples of 16."""
        self.cells.writes[start // 16 : (start + nbytes) // 16] = 1

    def synchronize(self, gate: str, lanes: Lanes) -> None:
        """Record that all of `lanes` have waited for each other at a gate ("barrier" or "warp")."""
        if self.clock.synchronize(gate, lanes):
            self._reads.clear()
            self._atomics.clear()
            self._logged = 0

    def read(self, group: Group, site: Site, address: np.ndarray) -> None:
        """Enter a plain or volatile load. Raises Uninitialised, Race and AsyncRace."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        self.enter_read(group, site, address)

    def enter_read(self, group: Group, site: Site, address: np.ndarray) -> None:
        """Like `read`, without the check against accesses in flight."""
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        self._check_written(group, site, address, index)
        self._check("writes", index, ids, group, site, address)
        if self._atomics:
            self._flush(self._atomics, "atomics")
        self._check("atomics", index, ids, group, site, address)
        self._log(self._reads, index, stamp | ids, lanes)
        self.last_read = stamp

    def write(self, group: Group, site: Site, address: np.ndarray, changed: Callable[[], np.ndarray]) -> np.ndarray:
        """Enter a store; `changed` computes which lanes will change the stored value. Raises Race and AsyncRace.

        Returns the lanes that share a cell with a later lane; if the two store different values, they race.
        """
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        return self.enter_write(group, site, address, changed)

    def enter_write(
        self, group: Group, site: Site, address: np.ndarray, changed: Callable[[], np.ndarray]
    ) -> np.ndarray:
        """Like `write`, without the check against accesses in flight."""
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        if self._reads:
            self._flush(self._reads, "reads")
        if self._atomics:
            self._flush(self._atomics, "atomics")
        self._check_products(group, site, address, index)
        for which in ("reads", "atomics"):
            self._check(which, index, ids, group, site, address)
        self._check("writes", index, ids, group, site, address, changed)
        self._check_each("same", index, ids, group, site, address, changed)
        stamps = stamp | ids
        if index.shape != stamps.shape:
            index, stamps = np.broadcast_arrays(index, stamps)
        self.cells.writes[index] = stamps
        self.last_write = stamp
        others = self.cells.writes.take(index) != stamps
        lost = others.any(axis=2)
        if site.strong:
            return np.zeros_like(lost)
        if lost.any():
            self._keep_writes(index, stamps, others)
        return lost

    def begins(self, group: Group, site: Site, address: np.ndarray) -> None:
        """Enter the start of an asynchronous access, which counts as made when its thread waits for it.

        Raises Race for an access that is not ordered before the start, and Uninitialised.
        """
        index, ids = self._cells(group.lanes, site, address)
        if site.action == "load":
            self._check_written(group, site, address, index)
        else:
            self._flush(self._reads, "reads")
            self._check_products(group, site, address, index)
        self._flush(self._atomics, "atomics")
        for which in ("atomics", "writes") if site.action == "load" else ("reads", "atomics", "writes"):
            self._check(which, index, ids, group, site, address)

    def products_end(self, group: Group, site: Site, address: np.ndarray, number: np.ndarray) -> None:
        """Record that matrix products of warpgroups, of the commit groups `number`, (lanes,), have read shared memory,
        and that the warps of the lanes have waited for them."""
        if self.products is None:
            self.products = ProductReads(self.clock)
        index, _ = self._cells(group.lanes, site, address)
        self.products.enter(site, group.lanes, index, number, self.cells.writes.size)

    def _check_products(self, group: Group, site: Site, address: np.ndarray, index: np.ndarray) -> None:
        if self.products is not None:
            self.products.check(group, site, address, index, self.cells.writes.size // self.rows // self._size)

    def last_writes(self, lanes: Lanes, site: Site, address: np.ndarray) -> np.ndarray:
        """Return the stamps of the last write to each cell of an access: (blocks, threads, cells)."""
        index, _ = self._cells(lanes, site, address)
        return self.cells.writes.take(index)

    def atomic(self, group: Group, site: Site, address: np.ndarray, known: bool = False) -> None:
        """Enter an atomic operation; `known`: one at an mbarrier whose initialisation comes before it. Raises
        Uninitialised, Race and AsyncRace."""
        if group.batch.in_flight is not None:
            group.batch.in_flight.check_shared(group, site, address)
        self.enter_atomic(group, site, address, known)

    def enter_atomic(self, group: Group, site: Site, address: np.ndarray, known: bool = False) -> None:
        """Like `atomic`, without the check against accesses in flight."""
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        if site.operation != "exch":
            self._check_written(group, site, address, index)
        if site.operation in races.SWAPS:
            if site.operation == "exch":
                # Mark the cell as written, at a time at which nothing can race with it.
                self.cells.writes[index] = np.maximum(self.cells.writes.take(index), 1)
            return
        if not known:
            self._check("writes", index, ids, group, site, address)
            self._check_each("same", index, ids, group, site, address)
        if site.operation in races.SUMS:
            if self._reads:
                self._flush(self._reads, "reads")
            self._check("reads", index, ids, group, site, address)
        self._log(self._atomics, index, stamp | ids, lanes)
        self.last_atomic = stamp

    def check_left(self, batch: Batch) -> None:
        """Do nothing when all blocks have ended: only blocks of a cluster access each other's memory."""

    def _cells(self, lanes: Lanes, site: Site, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the cells of an access and the thread of each lane, both with axes block, thread, cell."""
        width = site.width if site.action != "load" else max(site.width, self._whole)
        if width < self.granule:
            self._refine(width)
        base = address + site.offset
        index = (base >> self.granule.bit_length() - 1)[:, :, None]
        if width > self.granule:
            index = index + np.arange(width // self.granule)
        if self.rows == 1 and (lanes.ragged or lanes.shape[0] != self.clock.shape[0] or address.shape[0] != 1):
            self._expand()
        if self.rows > 1:
            index = index + (lanes.block * (self.cells.writes.size // self.rows))[:, :, None]
        return index, lanes.thread[:, :, None]

    def _refine(self, width: int) -> None:
        factor = self.granule // width
        self._flush(self._reads, "reads")
        self._flush(self._atomics, "atomics")
        # np.repeat takes ten times as long to repeat each element.
        self._map(lambda each: np.broadcast_to(each[:, None], (each.size, factor)).flatten())
        self.granule = width

    def _expand(self) -> None:
        blocks = self.clock.shape[0]
        if blocks == 1:
            return
        self._flush(self._reads, "reads")
        self._flush(self._atomics, "atomics")
        self._map(lambda each: np.tile(each, blocks))
        self.rows = blocks

    def _map(self, function: Callable[[np.ndarray], np.ndarray]) -> None:
        self.cells.map(function)
        for each in self.accessors.values():
            each.map(function, self.clock.floor)
        if self.products is not None:
            self.products.map(function)

    def _check_written(self, group: Group, site: Site, address: np.ndarray, index: np.ndarray) -> None:
        if site.location.library:  # CUB reads some elements ahead of the test that discards them
            return
        written = self.cells.writes.take(index)
        if not written.all():
            races.uninitialised(group, site, address, (written == 0).any(axis=2), "shared")

    def _check(
        self,
        which: str,
        index: np.ndarray,
        ids: np.ndarray,
        group: Group,
        site: Site,
        address: np.ndarray,
        where: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Raise Race if an access of the kind `which` to these cells is not ordered before this one.

        `where` computes the lanes to which the check is restricted.
        """
        latest = {"writes": self.last_write, "reads": self.last_read, "atomics": self.last_atomic}[which]
        if latest < self.clock.floor or not latest:
            return
        if which != "writes" and self._in_part:
            self._check_each(which, index, ids, group, site, address)
            return
        before = getattr(self.cells, which).take(index)
        if not (before >= self.clock.floor).any():
            return
        found = bulk_accesses.unordered(self.clock, before, group.lanes, ids, which == "reads")
        if which == "atomics" and found.any():
            found = found & ~self.cells.after_the_last_atomic(index, group.lanes, ids, self.clock, False)
        if where is not None and found.any():
            inside = where()[:, :, None]
            if which == "writes":
                self._keep_writes(index, before, found & ~inside)
            found = found & inside
        if found.any():
            races.check_race(group, site, address, before, found, self.clock, "shared", None)

    def _keep_writes(self, index: np.ndarray, stamps: np.ndarray, which: np.ndarray) -> None:
        """Remember writes replaced by others that are not ordered after them but leave the same value."""
        index, stamps, which = np.broadcast_arrays(index, stamps, which)
        index, stamps = index[which], stamps[which]
        kept = self.accessors.setdefault("same", Accessors())
        for time in np.unique(stamps & TIME).tolist():
            mine = stamps & TIME == time
            kept.enter(index[mine], stamps[mine], self.clock.floor, self.cells.writes.size)

    def _check_each(
        self,
        which: str,
        index: np.ndarray,
        ids: np.ndarray,
        group: Group,
        site: Site,
        address: np.ndarray,
        where: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Like `_check`, for every access of the kind `which` that `accessors` holds, not only for the last."""
        clock, lanes, accessors = self.clock, group.lanes, self.accessors.get(which)
        if accessors is None or not accessors.stamps:
            return
        recent = accessors.since(index, times_of(clock.barriers, lanes))
        if where is not None and recent.any():
            recent = recent & where()[:, :, None]
        if not recent.any():
            return
        shape = (*lanes.shape, index.shape[2])
        at = np.nonzero(broadcast_to(recent, shape))
        block, thread = (broadcast_to(each, lanes.shape)[at[:2]] for each in (lanes.block, lanes.thread))
        stamps, late = accessors.unordered(broadcast_to(index, shape)[at], block, thread, clock, which == "reads")
        if which == "atomics" and late.any():
            after = self.cells.after_the_last_atomic(index, lanes, ids, clock, False)
            late &= ~np.broadcast_to(after, shape)[at][:, None]
        if late.any():
            before, found = np.zeros((*shape, late.shape[1]), np.int64), np.zeros((*shape, late.shape[1]), np.bool_)
            before[at], found[at] = stamps, late
            before, found = (each.reshape(*lanes.shape, -1) for each in (before, found))
            races.check_race(group, site, address, before, found, clock, "shared", None)

    def _log(self, log: list, index: np.ndarray, stamps: np.ndarray, lanes: Lanes) -> None:
        log.append((index, stamps, lanes))
        self._logged += max(index.size, stamps.size)
        if self._logged > LOG_LIMIT:
            self._flush(self._reads, "reads")
            self._flush(self._atomics, "atomics")
            self._logged = 0

    def _flush(self, log: list, which: str) -> None:
        for index, stamps, lanes in log:
            if self._in_part:
                self.accessors[which].enter(index, stamps, self.clock.floor, self.cells.writes.size)
                if which == "atomics":
                    self.cells.note_last_atomics(*np.broadcast_arrays(index, stamps))
                continue
            if which == "reads" and not lanes.ragged and lanes.shape[1] > 2 and _same_in_a_block(index):
                index, (stamps, lanes) = index[:, :1], _of_two_lanes(stamps, lanes)
            if index.shape != stamps.shape:
                index, stamps = np.broadcast_arrays(index, stamps)
            if which == "atomics":
                self.cells.enter_atomics(index, stamps, self.clock, lanes, False)
            else:
                Cells.enter(self.cells.reads, index, stamps, self.clock, lanes, False)
        log.clear()


def _same_in_a_block(index: np.ndarray) -> bool:
    """Return whether all lanes of a block access the same cells."""
    first, last = index[:, :1], index[:, -1:]
    return index.shape[1] == 1 or bool((first == last).all() and (index == first).all())


def _of_two_lanes(stamps: np.ndarray, lanes: Lanes) -> tuple[np.ndarray, Lanes]:
    """Return two lanes of a read of one cell by all lanes of a block, whose stamps combine to that of them all.

    They are the last lane and, before it, the last lane of another warp; for a single warp, the last lane but one.
    """
    thread = lanes.thread[0]
    others = np.flatnonzero(thread >> 5 != thread[-1] >> 5)
    kept = [others[-1] if others.size else thread.size - 2, thread.size - 1]
    return stamps[:, kept], Lanes(lanes.block, lanes.thread[:, kept], lanes.threads, False)
