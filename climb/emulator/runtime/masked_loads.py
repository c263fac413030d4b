"""Loads by lanes that a mask marks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..counters.access_cost import AccessCost, whole_pattern
from ..counters.address_patterns import Part
from ..counters.masked_cost import masked_sectors
from ..memory.device_memory import Allocation, windows
from ..simt.groups import Group
from ..simt.lanes import WARP, Selection, take
from ..simt.masks import MaskedLanes
from ..simt.site import Site
from .accesses import count_access, find_allocation, unpack

Load = Callable[[Group, Site, np.ndarray], np.ndarray]


def load_densely(load: Load, group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Return the result of `load` for the marked lanes alone; zeros for the others."""
    lanes = group.lanes
    part = Group(group.batch, lanes.dense, {})
    value = load(part, site, take(address, Selection(flat=lanes.flat), lanes.shape))
    if value.shape[:2] == (1, 1):
        return value
    out = np.zeros((*lanes.shape, *value.shape[2:]), value.dtype)
    out.reshape(-1, *value.shape[2:])[lanes.flat] = value[0]
    return out


def load_masked(group: Group, site: Site, address: np.ndarray) -> np.ndarray | None:
    """Load from global memory without looking at most lanes; return None if a check or a fault needs all of them.

    Unmarked lanes get neighbouring or arbitrary values.
    """
    batch, lanes = group.batch, group.lanes
    found = whole_pattern(lanes.of, address) if address.shape == lanes.shape else None
    if found is None or batch.watching or batch.global_shadow is not None or site.strong:
        return None
    if batch.dependence is not None or batch.in_flight is not None:
        return None
    part, moved = found
    offset = moved + site.offset
    if part.misaligned(offset, site.width):
        return None
    sectors = masked_sectors(part, lanes, offset, site.width)
    if sectors is None:
        return None
    cost, allocation = _find(group, site, address, part, offset, sectors)
    if allocation is None or allocation.heap is not None or allocation.nbytes < WARP * site.width:
        return None
    if batch.check_uninitialised and not _all_written(allocation, cost, site):
        return None
    footprint = batch.footprint
    if footprint is not None and footprint.load(allocation, cost.lowest, cost.highest + site.width):
        return None
    count_access(group, site, cost, address, "global", allocation.name)
    value = _rows(lanes, site, allocation, part, offset)
    return value if site.count == 1 else unpack(value, site)


def _find(
    group: Group, site: Site, address: np.ndarray, part: Part, offset: int, sectors: tuple[int, int]
) -> tuple[AccessCost, Allocation | None]:
    """Return the cost of a load that is not misaligned, and the allocation that holds it. Its bounds are those of whole
    warps, unless no allocation holds these."""
    lanes = group.lanes
    first = part.first[lanes.bits != 0]
    lowest, highest = (int(first.min() + part.near.min()) + offset, int(first.max() + part.near.max()) + offset)
    cost = AccessCost(*sectors, lowest, highest, False)
    allocation = find_allocation(group, site, cost)
    if allocation is None:
        marked = address[lanes.mask]
        cost = AccessCost(*sectors, int(marked.min()) + site.offset, int(marked.max()) + site.offset, False)
        allocation = find_allocation(group, site, cost)
    return cost, allocation


def _all_written(allocation: Allocation, cost: AccessCost, site: Site) -> bool:
    """Return whether all bytes from the lowest to the highest address hold a value."""
    if allocation.written is None:
        return True
    low, end = cost.lowest - allocation.address, cost.highest + site.width - allocation.address
    return bool(allocation.written[low:end].view(np.bool_).all())


def _rows(lanes: MaskedLanes, site: Site, allocation: Allocation, part: Part, offset: int) -> np.ndarray:
    """Return the values at the addresses of whole warps. For addresses outside of the allocation, they are
    arbitrary."""
    shift, data = site.width.bit_length() - 1, allocation.view(site.container)
    start = part.first + (offset - allocation.address) >> shift
    if not part.consecutive(site.width):
        index = start.reshape(-1, 1) + (part.relative >> shift)
        return data.take(index, mode="clip").reshape(lanes.shape)
    there = windows(allocation.data, site.width, WARP)
    inside = np.clip(start, 0, there.size - 1)
    value = there[inside].view(site.container).reshape(-1, WARP)
    edge = np.flatnonzero((inside != start) & (lanes.bits != 0))  # warps that lie partly in the allocation
    if edge.size:
        value[edge] = data.take(start[edge].reshape(-1, 1) + np.arange(WARP), mode="clip")
    return value.reshape(lanes.shape)
