"""Loads, stores and atomics of distributed shared memory: the shared memory of any block of the cluster.

Accesses to the lanes' own blocks are ordinary ones of shared memory, and counted as those, as an H200 does. The others
travel between multiprocessors; they are counted as requests and lanes ("cluster load" and so on), without wavefronts,
because Nsight Compute has no counter for the banks that they meet there.
"""

from __future__ import annotations

import numpy as np

from ..checks import faults, hooks, races
from ..counters.access_cost import AccessCost, access_cost
from ..counters.cost_model import SHARED_MEASURES
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..simt.site import Site
from .accesses import check_extents, count_access, pack, unpack
from .atomics import apply_by_lane, atomic_shared
from .cluster_addresses import resolve
from .shared_memory import load_shared, store_shared


def _remote(group: Group, site: Site, address: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the block that each lane accesses and the address in it; None if it is the lane's own block for all
    lanes."""
    home, local = resolve(group, site, address)
    return None if (home == group.lanes.block).all() else (home, local)


def check_and_count(group: Group, site: Site, home: np.ndarray, local: np.ndarray) -> np.ndarray:
    """Check and count an access; return its element indices into the batch's flat shared memory."""
    check_extents(group.batch.extents["shared"], group, site, local - site.offset, "shared")
    if (local & site.width - 1).any():
        faults.misaligned(group, site, local - site.offset)
    _count(group, site, home, local)
    shift = site.container.itemsize.bit_length() - 1
    return (local >> shift) + home * (group.batch.shared.shape[1] >> shift)


def _count(group: Group, site: Site, home: np.ndarray, local: np.ndarray) -> None:
    """Count the lanes that access their own block's memory as accesses of shared memory, and the others as remote."""
    lanes = group.lanes
    own = np.broadcast_to(home == lanes.block, lanes.shape).ravel()
    address = np.broadcast_to(local - site.offset, lanes.shape).ravel()
    for chosen, space, allocation in ((own, "shared", "shared"), (~own, "cluster", "shared memory of the cluster")):
        if not chosen.any():
            continue
        part = Group(group.batch, Lanes.listed(lanes.linear()[chosen], lanes.threads), {})
        at = address[chosen].reshape(1, -1)
        if space == "shared":
            cost = access_cost(part.lanes, at, site.offset, site.width, SHARED_MEASURES[site.carried_out])
        else:
            cost = AccessCost(0, 0, int(at.min()), int(at.max()), False)
        count_access(part, site, cost, at, space, allocation)


def load_cluster(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.shared::cluster."""
    found = _remote(group, site, address)
    if found is None:
        return load_shared(group, site, address)
    index, batch = check_and_count(group, site, *found), group.batch
    if batch.shared_shadow is not None:
        hooks.ordered(group, site)
        batch.shared_shadow.remote(group, site, *found)
    value = batch.shared_view(site.container).take(index)
    return value if site.count == 1 else unpack(value, site)


def store_cluster(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.shared::cluster."""
    found = _remote(group, site, address)
    if found is None:
        store_shared(group, site, address, value)
        return
    index, batch, value = check_and_count(group, site, *found), group.batch, pack(value, site)
    data = batch.shared_view(site.container)
    lost = None
    if batch.shared_shadow is not None:
        hooks.ordered(group, site)
        lost = batch.shared_shadow.remote(group, site, *found, lambda: hooks.differ(data, index, value))
    batch.changes += 1
    data[index] = np.broadcast_to(value, index.shape)
    if lost is not None and lost.any():
        lost = lost & hooks.differ(data, index, value)
        if lost.any():
            home, local = found
            races.write_conflict(group, site, local - site.offset, lost, "shared", None, home)


def atomic_cluster(
    group: Group,
    site: Site,
    operation: str,
    address: np.ndarray,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """atom.shared::cluster and red.shared::cluster."""
    found = _remote(group, site, address)
    if found is None:
        return atomic_shared(group, site, operation, address, value, other, returns)
    index, batch = check_and_count(group, site, *found), group.batch
    if batch.shared_shadow is not None:
        hooks.ordered(group, site)
        batch.shared_shadow.remote(group, site, *found)
    return apply_by_lane(group, site, batch.shared_view(site.element), index, operation, value, other, returns)


RUNTIME = {"load_cluster": load_cluster, "store_cluster": store_cluster, "atomic_cluster": atomic_cluster}
