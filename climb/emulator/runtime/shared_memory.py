"""Loads and stores of shared memory."""

from __future__ import annotations

import numpy as np

from ..checks import faults, hooks, races
from ..counters.access_cost import AccessCost, access_cost
from ..counters.cost_model import SHARED_MEASURES
from ..simt.groups import Group
from ..simt.site import Site
from .accesses import check_extents, count_access, pack, unpack
from .cluster_addresses import own_address


def check_shared(group: Group, site: Site, address: np.ndarray) -> AccessCost:
    """The cost of a shared-memory access. Raises OutOfBounds and Misaligned."""
    cost = access_cost(group.lanes, address, site.offset, site.width, SHARED_MEASURES[site.carried_out])
    extents = group.batch.extents["shared"]
    if not extents.contains(cost.lowest, cost.highest, site.width):
        check_extents(extents, group, site, address, "shared")
    if cost.misaligned:
        faults.misaligned(group, site, address)
    return cost


def shared_index(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Check and count an access; return its element indices into the batch's flat shared memory."""
    count_access(group, site, check_shared(group, site, address), address, "shared", "shared")
    batch = group.batch
    shift = site.container.itemsize.bit_length() - 1
    start = group.lanes.block * (batch.shared.shape[1] >> shift) if batch.shared.shape[0] > 1 else 0
    return ((address + site.offset) >> shift) + start


def load_shared(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.shared: values (blocks, threads), or (blocks, threads, count); one column if the address is uniform."""
    address = own_address(group, site, address)
    index = shared_index(group, site, address)
    if group.batch.shared_shadow is not None:
        hooks.ordered(group, site)
        group.batch.shared_shadow.read(group, site, address)
    data = group.batch.shared_view(site.container)
    if group.batch.watching:
        group.batch.journal.read(site.ptx, data, index)
    value = data.take(index)
    return value if site.count == 1 else unpack(value, site)


def store_shared(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.shared. If lanes of a block store to the same address, the last lane wins."""
    address = own_address(group, site, address)
    value, index = pack(value, site), shared_index(group, site, address)
    shape = np.broadcast_shapes(index.shape, value.shape)
    if index.shape != shape:
        index = np.broadcast_to(index, shape)
    data, shadow = group.batch.shared_view(site.container), group.batch.shared_shadow
    if group.batch.watching and hooks.differ(data, index, value).any():
        group.batch.note_change(data, index)
    if shadow is None:
        data[index] = value
        return
    hooks.ordered(group, site)
    lost = shadow.write(group, site, address, lambda: hooks.differ(data, index, value))
    data[index] = value
    if lost.any():
        lost = lost & hooks.differ(data, index, value)
        if lost.any():
            races.write_conflict(group, site, address, lost, "shared", None)


RUNTIME = {"load_shared": load_shared, "store_shared": store_shared}
