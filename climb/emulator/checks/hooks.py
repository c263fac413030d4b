"""Hooks: the calls by which loads, stores, atomics and fences report to the checks of a launch."""

from __future__ import annotations

import numpy as np

from ..memory.device_memory import Allocation, windows
from ..memory.layout import RESERVED, RESERVED_BYTES
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from . import enabled, proxies, races
from .cluster_clock import ClusterClock
from .cluster_shadow import ClusterShadow
from .dependent_launches import BatchDependence, Dependence
from .global_shadow import GlobalShadow
from .happens_before import Clock
from .heap_faults import check_block
from .late_loads import LateLoads
from .shared_shadow import SharedShadow
from .stamps import FEW, MAX_THREADS, Events
from .written_bytes import check_read, mark_written

#: Scopes that do not include other blocks, except those of the same cluster, whose blocks have one clock.
BLOCK_SCOPES = ("cta", "cluster")


class LaunchChecks:
    """The checks of a launch, shared by its batches: which are enabled, the accesses so far, the global shadow memory.

    `dependence`: its relation to the launches before and after it; None if there is none.

    Stamps cannot distinguish more than 2^28 threads: larger launches are not checked for races in global memory.
    """

    def __init__(
        self,
        chosen: frozenset[str],
        blocks: int,
        threads: int,
        thorough: set[int],
        dependence: Dependence | None = None,
    ) -> None:
        self.chosen, self.thorough, self.dependence = chosen, thorough, dependence
        self.events = Events(blocks)
        whole = enabled.GLOBAL in chosen and blocks * threads <= MAX_THREADS
        self.global_shadow = GlobalShadow(thorough) if whole else None

    def attach(self, batch: Batch) -> None:
        """Give a batch its clock and its shadow memories."""
        shared = enabled.SHARED in self.chosen and batch.shared_bytes > 0
        batch.strict_masks = enabled.MASKS in self.chosen
        batch.check_uninitialised = enabled.UNINITIALISED in self.chosen
        if batch.check_uninitialised and batch.local_bytes:
            batch.local_written = np.zeros_like(batch.local)
        batch.global_shadow = self.global_shadow
        batch.check_in_flight = shared
        clusters = batch.order.size > 1
        starts_early = self.dependence is not None and self.dependence.early
        if shared or self.global_shadow is not None or starts_early:
            self.events.handovers.blocks_have_ended()
            place = (batch.start, batch.blocks, batch.threads)
            batch.clock = ClusterClock(self.events, batch) if clusters else Clock(self.events, *place)
        if self.dependence is not None:
            batch.dependence = BatchDependence(self.dependence, batch)
        if shared:
            batch.shared_shadow = _shadow_of(batch)
            if batch.kernel.code.has_late_loads:
                batch.late_loads = LateLoads(batch, _shadow_of(batch))
            _, reserved = batch.kernel.layout.addresses.get(RESERVED, ("shared", None))
            if reserved is not None:
                batch.shared_shadow.is_written(reserved, RESERVED_BYTES)


def _shadow_of(batch: Batch) -> SharedShadow | ClusterShadow:
    """Return an empty shadow of a batch's shared memory."""
    if batch.order.size > 1:
        return ClusterShadow(batch.clock, batch)
    code = batch.kernel.code
    return SharedShadow(
        batch.clock, batch.shared_bytes, in_part=code.orders_in_part, narrowest_write=code.narrowest_shared_write
    )


def ordered(group: Group, site: Site) -> None:
    """Report an atomic, volatile or ordered access, which hands over what fences have published."""
    clock = group.batch.clock
    if clock is not None and (site.strong or site.action == "atomic"):
        if site.releases:
            clock.fence(group.lanes, site.scope not in BLOCK_SCOPES)
        if site.acquires:
            clock.acquire(group.lanes)
        elif site.action == "load":
            clock.load_relaxed(group.lanes)


def handed_over(group: Group, site: Site, address: np.ndarray, gives: bool, takes: bool) -> None:
    """Like `ordered`, for a place in global memory through which blocks can order their accesses."""
    ordered(group, site)
    clock = group.batch.clock
    ordering = (site.strong or site.action == "atomic") and site.scope not in BLOCK_SCOPES
    if group.batch.global_shadow is not None and ordering:
        clock.hand_over(group.lanes, address + site.offset, gives, takes, site.acquires)


def _reach(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Check what every access to global memory must keep to: earlier launches, blocks of the heap, asynchronous
    accesses that are in flight."""
    batch = group.batch
    if batch.dependence is not None:
        batch.dependence.access(group, site, allocation, address)
    if allocation.heap is not None:
        check_block(group, site, allocation, address)
    if batch.in_flight is not None:
        batch.in_flight.check_global(group, site, allocation, address)


def load(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Report a load from global memory."""
    batch = group.batch
    _reach(group, site, allocation, address)
    if allocation.written is not None and batch.check_uninitialised:
        check_read(group, site, allocation, address)
    if batch.clock is not None:
        handed_over(group, site, address, gives=False, takes=True)
        if batch.global_shadow is not None:
            (batch.global_shadow.see_atomics if site.strong else batch.global_shadow.load)(
                group, site, allocation, address
            )


def store(
    group: Group, site: Site, allocation: Allocation, address: np.ndarray, value: np.ndarray, index: np.ndarray
) -> None:
    """Store `value` to the elements `index` of an allocation in global memory, and check the store."""
    batch, clash = group.batch, None
    _reach(group, site, allocation, address)
    data = allocation.view(site.container)
    if batch.clock is not None:
        handed_over(group, site, address, gives=True, takes=False)
        if batch.global_shadow is not None:
            batch.global_shadow.keep(allocation)
            if not site.strong:
                if group.lanes.count <= FEW:  # the store may set a flag
                    batch.clock.hand_over(group.lanes, address + site.offset, gives=True, takes=False)
                clash = batch.global_shadow.store(group, site, allocation, address, lambda: differ(data, index, value))
    if batch.watching and differ(data, index, value).any():
        batch.note_change(data, index)
    if batch.footprint is not None:
        batch.footprint.store(allocation, index, data.itemsize)
    data[index] = value
    if clash is not None and clash.any():
        clash = clash & differ(data, index, value)
        if clash.any():
            races.write_conflict(group, site, address, clash, "global", allocation)
    if allocation.written is not None:
        mark_written(site, allocation, address)


def store_rows(
    group: Group, site: Site, allocation: Allocation, address: np.ndarray, value: np.ndarray, first: np.ndarray
) -> None:
    """Like `store`, for warps that store consecutive elements, starting at `first` (warps,). Requires that no places
    are recorded."""
    batch = group.batch
    _reach(group, site, allocation, address)
    if batch.clock is not None:
        handed_over(group, site, address, gives=True, takes=False)
    if batch.footprint is not None:
        batch.footprint.store_rows(allocation, first, site.width)
    target = windows(allocation.data, site.width, WARP)
    rows = np.ascontiguousarray(np.broadcast_to(value, group.lanes.shape), site.container).reshape(-1, WARP)
    target[first] = rows.view(target.dtype)[:, 0]
    if allocation.written is not None:
        marks = np.ones(target.dtype.itemsize, np.uint8).view(target.dtype)
        windows(allocation.written, site.width, WARP)[first] = marks


def overwrite(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Report a write to global memory whose values the caller stores. Raises Race."""
    batch = group.batch
    if batch.dependence is not None:
        batch.dependence.access(group, site, allocation, address)
    batch.changes += 1
    if batch.places is not None:
        batch.places.note(allocation.data, address - allocation.address)
    if batch.global_shadow is not None:
        batch.global_shadow.keep(allocation)
        everywhere = np.ones(group.lanes.shape, np.bool_)
        batch.global_shadow.store(group, site, allocation, address, lambda: everywhere)
    if allocation.written is not None:
        mark_written(site, allocation, address)


def atomic(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Report an atomic operation on global memory."""
    batch = group.batch
    _reach(group, site, allocation, address)
    if allocation.written is not None:
        if batch.check_uninitialised and site.operation != "exch":
            check_read(group, site, allocation, address)
        if allocation.written is not None:
            mark_written(site, allocation, address)
    if batch.clock is not None:
        handed_over(group, site, address, gives=True, takes=True)
        if batch.global_shadow is not None:
            batch.global_shadow.keep(allocation)
            batch.global_shadow.atomic(group, site, allocation, address)


def differ(data: np.ndarray, index: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return where the bits of an element differ from those of the value to be stored: bool, the shape of `index`."""
    kind = f"u{min(data.itemsize, 8)}"
    there = np.ascontiguousarray(data.take(index)).view(kind)
    value = np.ascontiguousarray(np.broadcast_to(value, index.shape)).view(kind)
    unequal = there != value
    return unequal.reshape(*index.shape, -1).any(axis=2)


def memory_fence(group: Group, scope: str, acquires: bool = True) -> None:
    """Report membar and fence. Accesses take effect at once in the emulator, so only the checks need to know about
    fences. A fence that does not acquire only publishes."""
    clock, wide = group.batch.clock, scope not in BLOCK_SCOPES
    if clock is not None:
        clock.fence(group.lanes, wide)
        if acquires:
            clock.complete_relaxed_loads(group.lanes, wide)


def wait_for_launch(group: Group, site: Site) -> None:
    """Report griddepcontrol.wait: the launch before has ended already, so only the check needs to know."""
    if group.batch.dependence is not None:
        group.batch.dependence.wait(group, site)


def start_next_launch(group: Group, site: Site) -> None:
    """Report griddepcontrol.launch_dependents: the next launch starts when this one has ended, so only the check needs
    to know."""
    if group.batch.dependence is not None:
        group.batch.dependence.trigger(group)


RUNTIME = {
    "memory_fence": memory_fence, "proxy_fence": proxies.fence, "wait_for_launch": wait_for_launch,
    "start_next_launch": start_next_launch,
}  # fmt: skip
