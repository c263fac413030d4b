"""Common parts of memory accesses: count them, find the allocation, and split a group by where its lanes access."""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..counters.access_cost import AccessCost
from ..memory.device_memory import BLOCK_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Allocation
from ..memory.layout import Extents
from ..simt.groups import Group
from ..simt.lanes import Selection
from ..simt.site import Site

#: The spaces of generic addresses: name, first address, end, and the number to subtract for an address in the space.
SPACES = (
    ("shared", SHARED_WINDOW, SHARED_WINDOW + BLOCK_WINDOW, SHARED_WINDOW),
    ("cluster", SHARED_WINDOW + BLOCK_WINDOW, SHARED_WINDOW + WINDOW, SHARED_WINDOW),
    ("local", LOCAL_WINDOW, LOCAL_WINDOW + WINDOW, LOCAL_WINDOW),
    ("param", PARAM_WINDOW, PARAM_WINDOW + WINDOW, PARAM_WINDOW),
)
#: In a launch of clusters, any address of the shared window may be another block's.
IN_CLUSTER = (("cluster", *SPACES[0][1:2], *SPACES[1][2:]), *SPACES[2:])


def count_access(group: Group, site: Site, cost: AccessCost, address: np.ndarray, space: str, allocation: str) -> None:
    """Count an access to `space` and trace it. `allocation` is the name that a trace shows."""
    if site.part:
        return
    counts = group.batch.counts[space, site.index]
    lanes = group.lanes
    counts[0] += lanes.warps
    counts[1] += lanes.count
    counts[2] += cost.achieved
    counts[3] += cost.ideal
    if group.batch.trace is not None:
        group.batch.trace.record(group, site, space, address + site.offset, allocation)


def unpack(value: np.ndarray, site: Site) -> np.ndarray:
    """Return containers (blocks, threads) as elements (blocks, threads, count)."""
    return np.ascontiguousarray(value).reshape(*value.shape, 1).view(site.element)


def pack(value: np.ndarray | tuple[np.ndarray, ...], site: Site) -> np.ndarray:
    """Return the value to store, as containers (blocks, threads)."""
    if site.count == 1:
        return value
    shape = np.broadcast_shapes(*(part.shape for part in value))
    out = np.empty((*shape, site.count), site.element)
    for index, part in enumerate(value):
        out[:, :, index] = part
    return out.view(site.container)[:, :, 0]


def find_allocation(group: Group, site: Site, cost: AccessCost) -> Allocation | None:
    """Return the allocation that holds the whole access, or None."""
    batch = group.batch
    recent = batch.recent.get(site.index)
    width = site.width
    if recent is not None and recent.address <= cost.lowest and cost.highest + width <= recent.end:
        return recent
    recent = batch.find(cost.lowest, cost.highest - cost.lowest + width)
    if recent is not None:
        batch.recent[site.index] = recent
    return recent


def split_by_allocation(
    group: Group, site: Site, address: np.ndarray
) -> list[tuple[Allocation, np.ndarray, np.ndarray]]:
    """Yield the allocations that an access reaches, each with a mask of its lanes and their element indices.

    Raises OutOfBounds if a lane's access is in no allocation.
    """
    full = address + site.offset
    left = np.ones(full.shape, np.bool_)
    parts = []
    while left.any():
        allocation = group.batch.find(int(full[left][0]), site.width)
        if allocation is None:
            faults.out_of_bounds(group, site, address)
        where = left & (full >= allocation.address) & (full <= allocation.end - site.width)
        parts.append((allocation, where, (full[where] - allocation.address) // site.width))
        left &= ~where
    return parts


def split_by_space(group: Group, address: np.ndarray, offset: int) -> list[tuple[str, int, np.ndarray]]:
    """Yield the spaces that a generic access reaches: for each, its name, the number to subtract from addresses, and a
    mask of the lanes."""
    full = address + offset
    left = np.ones(full.shape, np.bool_)
    out = []
    for name, start, end, window in SPACES if group.batch.order.size == 1 else IN_CLUSTER:
        where = (full >= start) & (full < end)
        if where.any():
            out.append((name, window, where))
            left &= ~where
    if left.any():
        out.append(("global", 0, left))
    return out


def subgroup(group: Group, where: np.ndarray) -> tuple[Group, Selection]:
    """Return the lanes for which `where` holds, as a group for one access, and as a selection of the original group."""
    flat = np.flatnonzero(np.broadcast_to(where, group.lanes.shape))
    selection = Selection(columns=flat) if group.lanes.ragged else Selection(flat=flat)
    return type(group)(group.batch, selection.lanes(group.lanes), {}), selection


def check_extents(extents: Extents, group: Group, site: Site, address: np.ndarray, space: str) -> None:
    """Raise OutOfBounds unless each lane's access is within one variable."""
    full = np.broadcast_to(address, group.lanes.shape) + site.offset
    if extents.outside(full, site.width).any():
        faults.out_of_bounds(group, site, address, space)
