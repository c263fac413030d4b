"""The accesses to global memory of a launch that lets the next one start early."""

from __future__ import annotations

import math

import numpy as np

from ..errors import Where
from ..memory.device_memory import Allocation
from ..simt.block_order import BlockOrder
from ..simt.code import TranslatedKernel
from ..simt.groups import Group
from ..simt.site import Site

_NUMBER = 40  # a stamp packs an access: number of its site, from 1 on, << _NUMBER | thread of the launch
_CONFLICTS = {"load": ("store", "atomic"), "store": ("load", "store", "atomic"), "atomic": ("load", "store")}


class _Cells:
    """The last access of each kind to each `granule` bytes of an allocation, as stamps; 0 for none."""

    def __init__(self, nbytes: int, granule: int) -> None:
        self._nbytes, self._granule = nbytes, granule
        self._kinds: dict[str, np.ndarray] = {}

    def enter(self, kind: str, start: np.ndarray, width: int, stamps: np.ndarray) -> None:
        """Enter accesses of `width` bytes at the offsets `start`, (blocks, threads), of threads with these stamps."""
        if width < self._granule:
            factor = self._granule // width
            self._kinds = {name: each.repeat(factor) for name, each in self._kinds.items()}
            self._granule = width
        cells = self._kinds.get(kind)
        if cells is None:
            cells = self._kinds[kind] = np.zeros(-(-self._nbytes // self._granule), np.int64)
        cells[self._index(start, width)] = stamps[:, :, None]

    def find(self, kind: str, start: np.ndarray, width: int) -> np.ndarray | None:
        """Return the stamps of accesses of a kind to the same bytes: (blocks, threads, cells); None if there are
        none."""
        cells = self._kinds.get(kind)
        found = None if cells is None else cells.take(self._index(start, width))
        return found if found is not None and found.any() else None

    def _index(self, start: np.ndarray, width: int) -> np.ndarray:
        first = (start // self._granule)[:, :, None]
        return first if width <= self._granule else first + np.arange(width // self._granule)


class EarlierLaunch:
    """A launch that has let the next one start early, and its accesses to global memory."""

    def __init__(self, kernel: TranslatedKernel, order: BlockOrder, block: tuple[int, int, int]) -> None:
        self.kernel, self._order, self._block = kernel, order, block
        self._sites: list[Site] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._held: dict[int, _Cells] = {}

    def note(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
        """Note one of its accesses."""
        key = site.index, site.action
        if key not in self._numbers:
            self._sites.append(site)
            self._numbers[key] = len(self._sites)
        cells = self._held.get(allocation.address)
        if cells is None:
            cells = self._held[allocation.address] = _Cells(allocation.nbytes, site.width)
        start = np.broadcast_to(address + (site.offset - allocation.address), group.lanes.shape)
        cells.enter(site.action, start, site.width, numbers(group) | self._numbers[key] << _NUMBER)

    def conflicts(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> np.ndarray | None:
        """Return the stamp of an access that conflicts with each lane's, (blocks, threads); 0 for none, None if all are
        0."""
        held = self._held.get(allocation.address)
        if held is None:
            return None
        start = np.broadcast_to(address + (site.offset - allocation.address), group.lanes.shape)
        out = None
        for kind in _CONFLICTS[site.action]:
            found = held.find(kind, start, site.width)
            if found is None:
                continue
            for number in np.unique(found >> _NUMBER).tolist():
                if number and strong(self._sites[number - 1]) and strong(site):
                    found = np.where(found >> _NUMBER == number, 0, found)
            worst = found.max(axis=2)
            out = worst if out is None else np.maximum(out, worst)
        return out if out is not None and out.any() else None

    def flags(self, group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> np.ndarray | None:
        """Return the lanes that read a value written by volatile, ordered or atomic accesses: bool (blocks, threads);
        None for none."""
        held = self._held.get(allocation.address)
        if held is None:
            return None
        start = np.broadcast_to(address + (site.offset - allocation.address), group.lanes.shape)
        flags = [number for number, one in enumerate(self._sites, 1) if strong(one)]
        found = [held.find(kind, start, site.width) for kind in ("store", "atomic")]
        hits = [np.isin(each >> _NUMBER, flags).any(axis=2) for each in found if each is not None]
        return np.logical_or.reduce(hits) if hits else None

    def place(self, stamp: int) -> tuple[Site, Where]:
        """Return the instruction and the thread of a stamp."""
        site = self._sites[(stamp >> _NUMBER) - 1]
        width, height, _ = self._block
        block, thread = divmod(stamp & (1 << _NUMBER) - 1, math.prod(self._block))
        index = thread % width, thread // width % height, thread // (width * height)
        text = self.kernel.line_text(site.location)
        where = self._order.index(block)
        return site, Where(self.kernel.name, site.location.file, site.location.line, text, where, index, 1)


def numbers(group: Group) -> np.ndarray:
    """Return the number in the launch of each lane's thread: int64 (blocks, threads)."""
    batch, lanes = group.batch, group.lanes
    return np.broadcast_to((batch.start + lanes.block) * batch.threads + lanes.thread, lanes.shape)


def strong(site: Site) -> bool:
    """Return whether an access is volatile, ordered or atomic: two such accesses of one place do not race."""
    return site.strong or site.action == "atomic"
