"""Shadow memory: for each cell of a memory who wrote it last, who has read it, who has worked on it atomically.

A cell is as wide as the narrowest access that met the memory so far. `Cells` knows cells only; `SharedShadow` and
`GlobalShadow` (in `shadow_global.py`) say which cells an access meets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from . import races
from .clock import KIND, Clock, together

if TYPE_CHECKING:
    from .access import Site
    from .groups import Group
    from .lanes import Lanes

LOG_LIMIT = 1 << 22  # cells in accesses that are remembered but not yet entered: 32 MiB


class Cells:
    """Stamps of `count` cells: `writes` (the last one), `reads` and `atomics` (all of them together); 0 where none."""

    def __init__(self, count: int) -> None:
        self.writes = np.zeros(count, np.int64)
        self.reads = np.zeros(count, np.int64)
        self.atomics = np.zeros(count, np.int64)

    def each(self, function) -> None:
        """Replace all three arrays by what `function` makes of them."""
        self.writes, self.reads, self.atomics = map(function, (self.writes, self.reads, self.atomics))

    @staticmethod
    def enter(into: np.ndarray, index: np.ndarray, stamps: np.ndarray, clock: Clock, lanes: Lanes, many: bool) -> None:
        """Add accesses to `reads` or `atomics`: `index` and `stamps` are (b, t, cells) of the same shape."""
        threads, old = clock.shape[1], into.take(index)
        apart = clock.unordered(old, lanes, stamps & ~(-1 << KIND), many)
        if apart.shape[0] > index.shape[0]:
            apart = apart.all(axis=0, keepdims=True)
        new = together(old, stamps, apart, threads, many)
        into[index] = new
        # Lanes of this very access that share a cell: the last one is in; the others join it one after the other.
        left = np.flatnonzero((into.take(index) != new).ravel())
        index, stamps, apart = index.ravel(), stamps.ravel(), np.ones((), np.bool_)
        while left.size:
            into[index[left]] = together(into[index[left]], stamps[left], apart, threads, many)
            now = into[index[left]]
            # A joint stamp of several warps or blocks covers every lane; of one warp, those of that warp.
            joined = together(now, stamps[left], apart, threads, many)
            left = left[joined >> KIND & 3 != now >> KIND & 3]


class SharedShadow:
    """The shared memory of a batch of blocks.

    As long as all blocks access the same addresses together one row of cells stands for all of them.
    """

    def __init__(self, clock: Clock, nbytes: int) -> None:
        self.clock, self.nbytes, self.granule = clock, nbytes, 16
        self.cells = Cells(-(-nbytes // 16))
        self.rows = 1
        self.last_write = self.last_read = self.last_atomic = 0
        self._reads: list[tuple[np.ndarray, np.ndarray, Lanes]] = []
        self._atomics: list[tuple[np.ndarray, np.ndarray, Lanes]] = []
        self._logged = 0

    def passed(self, gate: str, lanes: Lanes) -> None:
        """Lanes have waited for each other at a gate."""
        if self.clock.passed(gate, lanes):
            self._reads.clear()
            self._atomics.clear()
            self._logged = 0

    def read(self, group: Group, site: Site, address: np.ndarray) -> None:
        """A plain or volatile load. Raises Uninitialised and Race."""
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        self._written(group, site, address, index)
        self._meet("writes", index, ids, group, site, address)
        if self._atomics:
            self._flush(self._atomics, "atomics")
        self._meet("atomics", index, ids, group, site, address)
        self._log(self._reads, index, stamp | ids, lanes)
        self.last_read = stamp

    def write(self, group: Group, site: Site, address: np.ndarray, changed: Callable[[], np.ndarray]) -> np.ndarray:
        """A store. `changed` tells which lanes will change what is there.

        Which lanes share a cell with another one: where they write different values it is a race. Raises Race.
        """
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        if self._reads:
            self._flush(self._reads, "reads")
        if self._atomics:
            self._flush(self._atomics, "atomics")
        for which in ("reads", "atomics"):
            self._meet(which, index, ids, group, site, address)
        self._meet("writes", index, ids, group, site, address, changed)
        stamps = np.broadcast_to(stamp | ids, np.broadcast_shapes(index.shape, ids.shape))
        index = np.broadcast_to(index, stamps.shape)
        self.cells.writes[index] = stamps
        self.last_write = stamp
        lost = (self.cells.writes.take(index) != stamps).any(axis=2)
        return lost & (not site.strong)

    def overwrites(self, group: Group, site: Site, address: np.ndarray) -> None:
        """A copy begins that will write here once its thread has waited for it. Raises Race."""
        index, ids = self._cells(group.lanes, site, address)
        self._flush(self._reads, "reads")
        self._flush(self._atomics, "atomics")
        for which in ("reads", "atomics", "writes"):
            self._meet(which, index, ids, group, site, address)

    def atomic(self, group: Group, site: Site, address: np.ndarray) -> None:
        """An atomic operation. Raises Uninitialised and Race."""
        lanes, stamp = group.lanes, self.clock.events.next(site)
        index, ids = self._cells(lanes, site, address)
        if site.operation != "exch":
            self._written(group, site, address, index)
        if site.operation in races.SWAPS:
            if site.operation == "exch":
                # Written, but at no time at which it could race.
                self.cells.writes[index] = np.maximum(self.cells.writes.take(index), 1)
            return
        self._meet("writes", index, ids, group, site, address)
        if site.operation in races.SUMS:
            if self._reads:
                self._flush(self._reads, "reads")
            self._meet("reads", index, ids, group, site, address)
        self._log(self._atomics, index, stamp | ids, lanes)
        self.last_atomic = stamp

    # Inside

    def _cells(self, lanes: Lanes, site: Site, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(cells, thread of each lane), with axes block, thread, cell."""
        width = site.width
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
        self.cells.each(lambda each: np.repeat(each, factor))
        self.granule = width

    def _expand(self) -> None:
        blocks = self.clock.shape[0]
        if blocks == 1:
            return
        self._flush(self._reads, "reads")
        self._flush(self._atomics, "atomics")
        self.cells.each(lambda each: np.tile(each, blocks))
        self.rows = blocks

    def _written(self, group: Group, site: Site, address: np.ndarray, index: np.ndarray) -> None:
        written = self.cells.writes.take(index)
        if not written.all():
            races.uninitialised(group, site, address, (written == 0).any(axis=2), "shared")

    def _meet(
        self,
        which: str,
        index: np.ndarray,
        ids: np.ndarray,
        group: Group,
        site: Site,
        address: np.ndarray,
        where: Callable[[], np.ndarray] | None = None,
    ) -> None:
        """Raise Race where an access of the kind `which` to these cells is not ordered before this one."""
        latest = {"writes": self.last_write, "reads": self.last_read, "atomics": self.last_atomic}[which]
        if latest < self.clock.floor or not latest:
            return
        before = getattr(self.cells, which).take(index)
        if not (before >= self.clock.floor).any():
            return
        found = self.clock.unordered(before, group.lanes, ids, False)
        if where is not None and found.any():
            found = found & where()[:, :, None]
        if found.any():
            races.judge(group, site, address, before, found, self.clock, "shared", None)

    def _log(self, log: list, index: np.ndarray, stamps: np.ndarray, lanes: Lanes) -> None:
        log.append((index, stamps, lanes))
        self._logged += max(index.size, stamps.size)
        if self._logged > LOG_LIMIT:
            self._flush(self._reads, "reads")
            self._flush(self._atomics, "atomics")
            self._logged = 0

    def _flush(self, log: list, which: str) -> None:
        into = getattr(self.cells, which)
        for index, stamps, lanes in log:
            shape = np.broadcast_shapes(index.shape, stamps.shape)
            Cells.enter(into, np.broadcast_to(index, shape), np.broadcast_to(stamps, shape), self.clock, lanes, False)
        log.clear()
