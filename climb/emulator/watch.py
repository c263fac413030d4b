"""Where loads, stores, atomics and fences tell the checks of a launch what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import checks, races
from .clock import FEW, MAX_THREADS, Clock, Events
from .shadow import SharedShadow
from .shadow_global import GlobalShadow, mark_written, read_written

if TYPE_CHECKING:
    from .access import Site
    from .groups import Group
    from .memory import Allocation
    from .schedule import Batch


class Watch:
    """What the batches of a launch share: the checks chosen, the accesses so far, the shadow of global memory.

    Stamps cannot tell more than 2^28 threads apart: larger launches are not checked for races in global memory.
    """

    def __init__(self, chosen: frozenset[str], blocks: int, threads: int, thorough: set[int]) -> None:
        self.chosen = chosen
        self.events = Events(blocks)
        whole = checks.GLOBAL in chosen and blocks * threads <= MAX_THREADS
        self.globals = GlobalShadow(thorough) if whole else None

    def attach(self, batch: Batch) -> None:
        """Give a batch its clock and its shadow of shared memory."""
        shared = checks.SHARED in self.chosen and batch.shared_bytes > 0
        batch.uninitialised = checks.UNINITIALISED in self.chosen
        if batch.uninitialised and batch.local_bytes:
            batch.local_written = np.zeros_like(batch.local)
        batch.globals = self.globals
        if shared or self.globals is not None:
            self.events.known.clear()  # the blocks before have ended
            batch.clock = Clock(self.events, batch.start, batch.blocks, batch.threads)
        if shared:
            batch.shadow = SharedShadow(batch.clock, batch.shared_bytes)


def ordered(group: Group, site: Site) -> None:
    """An atomic, volatile or ordered access: it hands over what fences have made visible."""
    clock = group.batch.clock
    if clock is not None and (site.strong or site.action == "atomic"):
        if site.releases:
            clock.fence(group.lanes)
        clock.acquire(group.lanes)


def handed_over(group: Group, site: Site, address: np.ndarray, gives: bool, takes: bool) -> None:
    """As `ordered`, for a place in global memory at which blocks hand over what they did."""
    ordered(group, site)
    clock = group.batch.clock
    if group.batch.globals is not None and (site.strong or site.action == "atomic"):
        clock.hand_over(group.lanes, address + site.offset, gives, takes)


def load(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """A load from global memory."""
    batch = group.batch
    if allocation.written is not None and batch.uninitialised:
        read_written(group, site, allocation, address)
    if batch.clock is not None:
        handed_over(group, site, address, gives=False, takes=True)
        if batch.globals is not None and not site.strong:
            batch.globals.load(group, site, allocation, address)


def store(
    group: Group, site: Site, allocation: Allocation, address: np.ndarray, value: np.ndarray, index: np.ndarray
) -> None:
    """A store to global memory: `value` to the elements `index` of the allocation. It does the store itself."""
    batch, clash = group.batch, None
    data = allocation.view(site.container)
    if batch.clock is not None:
        handed_over(group, site, address, gives=True, takes=False)
        if batch.globals is not None:
            batch.globals.keep(allocation)
            if not site.strong:
                if group.lanes.count <= FEW:  # it may be a flag
                    batch.clock.hand_over(group.lanes, address + site.offset, gives=True, takes=False)
                clash = batch.globals.store(group, site, allocation, address, lambda: differ(data, index, value))
    data[index] = value
    if clash is not None and clash.any():
        clash = clash & differ(data, index, value)
        if clash.any():
            races.clash(group, site, address, clash, "global", allocation)
    if allocation.written is not None:
        mark_written(site, allocation, address)


def atomic(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """An atomic operation on global memory."""
    batch = group.batch
    if allocation.written is not None:
        if batch.uninitialised and site.operation != "exch":
            read_written(group, site, allocation, address)
        if allocation.written is not None:
            mark_written(site, allocation, address)
    if batch.clock is not None:
        handed_over(group, site, address, gives=True, takes=True)
        if batch.globals is not None:
            batch.globals.keep(allocation)
            batch.globals.atomic(group, site, allocation, address)


def differ(data: np.ndarray, index: np.ndarray, value: np.ndarray) -> np.ndarray:
    """bool, the shape of `index`: where an element has other bits than the value to be stored."""
    kind = f"u{min(data.itemsize, 8)}"
    there = np.ascontiguousarray(data.take(index)).view(kind)
    value = np.ascontiguousarray(np.broadcast_to(value, index.shape)).view(kind)
    unequal = there != value
    return unequal.reshape(*index.shape, -1).any(axis=2)


def memory_fence(group: Group) -> None:
    """membar and fence: accesses take effect at once here, so a fence only matters for who races with whom."""
    if group.batch.clock is not None:
        group.batch.clock.fence(group.lanes)


RUNTIME = {"memory_fence": memory_fence}
