"""Loads and stores of global and constant memory."""

from __future__ import annotations

import numpy as np

from ..checks import faults, hooks
from ..counters.access_cost import AccessCost, access_cost, runs, whole_pattern
from ..counters.cost_model import sectors
from ..memory.device_memory import Allocation, windows
from ..simt.groups import Group
from ..simt.lanes import WARP, take
from ..simt.site import Site
from .accesses import count_access, find_allocation, pack, split_by_allocation, subgroup, unpack
from .masked_loads import load_densely, load_masked


def load_global(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.global: values (blocks, threads), or (blocks, threads, count) for vectors."""
    if group.lanes.masked:
        value = load_masked(group, site, address)
        return load_densely(load_global, group, site, address) if value is None else value
    cost = access_cost(group.lanes, address, site.offset, site.width, sectors)
    if cost.misaligned:
        faults.misaligned(group, site, address)
    allocation = find_allocation(group, site, cost)
    if allocation is None:
        return _load_scattered(group, site, address, cost)
    count_access(group, site, cost, address, "global", allocation.name)
    hooks.load(group, site, allocation, address)
    footprint = group.batch.footprint
    exact = footprint is not None and footprint.load(allocation, cost.lowest, cost.highest + site.width)
    if not exact and not group.batch.watching:
        rows = _load_rows(group, site, address, allocation)
        if rows is not None:
            value = rows.view(site.container).reshape(group.lanes.shape)
            return value if site.count == 1 else unpack(value, site)
    index = (address + (site.offset - allocation.address)) >> site.width.bit_length() - 1
    if exact:
        footprint.load_elements(allocation, index, site.width)
    data = allocation.view(site.container)
    if group.batch.watching:
        group.batch.journal.read(site.ptx, data, index)
    value = data.take(index)
    return value if site.count == 1 else unpack(value, site)


def _load_rows(group: Group, site: Site, address: np.ndarray, allocation: Allocation) -> np.ndarray | None:
    """Load for full warps that share a pattern, one row per warp; None if that is not known to be quicker."""
    found = whole_pattern(group.lanes, address)
    if found is None or address.shape != group.lanes.shape:
        return None
    part, moved = found
    offset, shift = moved + site.offset - allocation.address, site.width.bit_length() - 1
    if part.consecutive(site.width):  # whole cache lines at once
        return windows(allocation.data, site.width, WARP)[part.first + offset >> shift]
    few = part.few()
    if few is None:
        return None
    first, place = few
    index = first.reshape(-1, 1) + (part.relative + offset) >> shift
    return allocation.view(site.container).take(index).view(f"V{WARP * site.width}")[:, 0][place]


def _load_scattered(group: Group, site: Site, address: np.ndarray, cost: AccessCost) -> np.ndarray:
    """Load from several allocations."""
    parts = split_by_allocation(group, site, address)
    count_access(group, site, cost, address, "global", "several")
    value = np.empty(address.shape, site.container)
    for allocation, where, index in parts:
        part, selection = subgroup(group, where)
        if group.batch.footprint is not None:
            group.batch.footprint.load_elements(allocation, index, site.width)
        hooks.load(part, site, allocation, take(address, selection, group.lanes.shape))
        if group.batch.watching:
            group.batch.journal.read(site.ptx, allocation.view(site.container), index)
        value[where] = allocation.view(site.container)[index]
    return value if site.count == 1 else unpack(value, site)


def store_global(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.global. If lanes store to the same address, the last lane wins."""
    cost = access_cost(group.lanes, address, site.offset, site.width, sectors)
    if cost.misaligned:
        faults.misaligned(group, site, address)
    value = pack(value, site)
    allocation = find_allocation(group, site, cost)
    shape = np.broadcast_shapes(address.shape, value.shape)
    if allocation is None:
        parts = split_by_allocation(group, site, np.broadcast_to(address, shape))
        count_access(group, site, cost, address, "global", "several")
        value = np.broadcast_to(value, shape)
        for one, where, index in parts:
            part, selection = subgroup(group, where)
            here = take(address, selection, group.lanes.shape)
            hooks.store(part, site, one, here, value[where].reshape(1, -1), index.reshape(1, -1))
        return
    count_access(group, site, cost, address, "global", allocation.name)
    shift, batch = site.container.itemsize.bit_length() - 1, group.batch
    if batch.global_shadow is None and not batch.watching:
        first = runs(group.lanes, address, site.width)
        if first is not None:
            first = first + (site.offset - allocation.address) >> shift
            hooks.store_rows(group, site, allocation, address, value, first)
            return
    index = (address + (site.offset - allocation.address)) >> shift
    if index.shape != shape:
        index = np.broadcast_to(index, shape)
    hooks.store(group, site, allocation, address, value, index)


def load_const(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.const. Its sectors stay 0, because the constant cache does not work in sectors."""
    if group.lanes.masked and address.size > 1:
        return load_densely(load_const, group, site, address)
    full = address + site.offset
    lowest, highest = (full.item(),) * 2 if full.size == 1 else (int(full.min()), int(full.max()))
    if site.width > 1 and (lowest & site.width - 1 if full.size == 1 else (full & (site.width - 1)).any()):
        faults.misaligned(group.dense(), site, address)
    cost = AccessCost(0, 0, lowest, highest, False)
    allocation = find_allocation(group, site, cost)
    if allocation is None:
        faults.out_of_bounds(group.dense(), site, address)
    count_access(group, site, cost, address, "constant", allocation.name)
    index = (full - allocation.address) >> (site.container.itemsize.bit_length() - 1)
    if group.batch.footprint is not None:
        group.batch.footprint.load_elements(allocation, index, site.width)
    value = allocation.view(site.container).take(index)
    return value if site.count == 1 else unpack(value, site)


RUNTIME = {"load_global": load_global, "store_global": store_global, "load_const": load_const}
