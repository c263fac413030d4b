"""Loads and stores with a generic address: their memory space is known only when they run."""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..counters.access_cost import AccessCost, access_cost
from ..counters.cost_model import load_wavefronts, local_sectors, sectors
from ..simt.groups import Group
from ..simt.lanes import take
from ..simt.site import Site
from .accesses import count_access, split_by_space, subgroup
from .atomics import atomic_global, atomic_shared
from .cluster_addresses import own_address
from .cluster_memory import atomic_cluster, load_cluster, store_cluster
from .global_memory import load_global, store_global
from .local_memory import load_local, load_param, store_local, store_param
from .shared_memory import load_shared, store_shared

LOADS = {
    "global": load_global, "shared": load_shared, "cluster": load_cluster, "local": load_local, "param": load_param,
}  # fmt: skip
STORES = {
    "global": store_global, "shared": store_shared, "cluster": store_cluster, "local": store_local,
    "param": store_param,
}  # fmt: skip

ATOMICS = {"global": atomic_global, "shared": atomic_shared, "cluster": atomic_cluster}


def load_(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld with a generic address. If lanes access several memory spaces, the spaces are served and counted in turn."""
    spaces = split_by_space(group, address, site.offset)
    if len(spaces) == 1:
        name, window, _ = spaces[0]
        return LOADS[name](group, site, address - window)
    shape = group.lanes.shape
    out = np.empty((*shape, site.count) if site.count > 1 else shape, site.element)
    flat = out.reshape(shape[0] * shape[1], *out.shape[2:])
    for name, window, where in spaces:
        part, selection = subgroup(group, where)
        value = LOADS[name](part, site, take(address, selection, shape) - window)
        flat[selection.flatten(shape)] = np.broadcast_to(value, (*part.lanes.shape, *value.shape[2:]))[0]
    return out


def store_(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st with a generic address; see `load_`."""
    spaces = split_by_space(group, address, site.offset)
    if len(spaces) == 1:
        name, window, _ = spaces[0]
        STORES[name](group, site, address - window, value)
        return
    shape = group.lanes.shape
    for name, window, where in spaces:
        part, selection = subgroup(group, where)
        values = value if isinstance(value, tuple) else (value,)
        cut = tuple(take(each, selection, shape) for each in values)
        place = take(address, selection, shape) - window
        STORES[name](part, site, place, cut if isinstance(value, tuple) else cut[0])


def atomic_(
    group: Group,
    site: Site,
    operation: str,
    address: np.ndarray,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """atom and red with a generic address."""
    spaces = split_by_space(group, address, site.offset)
    shape = group.lanes.shape
    if len(spaces) == 1 and spaces[0][0] in ATOMICS:
        name, window, _ = spaces[0]
        return ATOMICS[name](group, site, operation, address - window, value, other, returns)
    out = np.empty(shape, site.element)
    for name, window, where in spaces:
        if name not in ATOMICS:
            faults.out_of_bounds(group, site, address)
        part, selection = subgroup(group, where)
        cut = [take(each, selection, shape) if each is not None else None for each in (address, value, other)]
        result = ATOMICS[name](part, site, operation, cut[0] - window, *cut[1:], returns)
        if returns:
            out.reshape(-1)[selection.flatten(shape)] = result[0]
    return out if returns else None


def count_load(group: Group, site: Site, address: np.ndarray) -> None:
    """Count a load that the compiler has widened beyond the source's request. Raises Misaligned.

    Other sites load and check the bytes that the source requests; the rest may lie outside any allocation.
    """
    spaces = split_by_space(group, address, site.offset) if not site.space else [(site.space, 0, None)]
    for space, window, where in spaces:
        part, here = group, address - window
        if space == "shared":
            here = own_address(group, site, here)
        if len(spaces) > 1:
            part, selection = subgroup(group, where)
            here = take(address, selection, group.lanes.shape) - window
        if space in ("const", "param", "cluster"):
            count_access(part, site, AccessCost(0, 0, 0, 0, False), here, "constant", space)
            continue
        measure = {"global": sectors, "shared": load_wavefronts, "local": local_sectors}[space]
        if space == "local":
            here = np.broadcast_to(here, part.lanes.shape)
            part.batch.counts["local", site.index][0] += part.lanes.warps * (max(site.width // 4, 1) - 1)
        cost = access_cost(part.lanes, here, site.offset, site.width, measure)
        if cost.misaligned:
            faults.misaligned(part, site, here)
        near = part.batch.find(cost.lowest, 1) if space == "global" else None
        count_access(part, site, cost, here, space, near.name if near else space)


RUNTIME = {"load_": load_, "store_": store_, "atomic_": atomic_, "count_load": count_load}
