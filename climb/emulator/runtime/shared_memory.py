"""Loads and stores of shared memory."""

from __future__ import annotations

import numpy as np

from ..checks import faults, hooks, races
from ..counters.access_cost import AccessCost, access_cost
from ..counters.cost_model import SHARED_MEASURES
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from .accesses import check_extents, count_access, pack, unpack
from .cluster_addresses import own_address

FEWEST_BLOCKS = 16  # of a batch for which looking at only one block's addresses pays
_LANES = np.arange(WARP)


def check_shared(group: Group, site: Site, address: np.ndarray) -> AccessCost:
    """Return the cost of a shared-memory access. Raises OutOfBounds and Misaligned."""
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
    return _index(group, site, address)


def _index(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    batch = group.batch
    shift = site.container.itemsize.bit_length() - 1
    start = group.lanes.block * (batch.shared.shape[1] >> shift) if batch.shared.shape[0] > 1 else 0
    return ((address + site.offset) >> shift) + start


def _columns(group: Group, site: Site, address: np.ndarray) -> np.ndarray | None:
    """Return the elements that the threads of each block access in its memory, (threads,), if all blocks of the batch
    do the same; else None."""
    lanes, blocks = group.lanes, group.batch.blocks
    if lanes.ragged or lanes.shape[0] != blocks or blocks < FEWEST_BLOCKS or address.shape != (1, lanes.shape[1]):
        return None
    return (address[0] + site.offset) >> site.container.itemsize.bit_length() - 1


def load_shared(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.shared: values (blocks, threads), or (blocks, threads, count); one column if the address is uniform."""
    address, batch = own_address(group, site, address), group.batch
    count_access(group, site, check_shared(group, site, address), address, "shared", "shared")
    if batch.shared_shadow is not None:
        hooks.ordered(group, site)
        batch.shared_shadow.read(group, site, address)
    columns = None if batch.watching else _columns(group, site, address)
    if columns is not None:
        value = batch.shared.view(site.container).take(columns, axis=1)
    else:
        data, index = batch.shared_view(site.container), _index(group, site, address)
        if batch.watching:
            batch.journal.read(site.ptx, data, index)
        value = data.take(index)
    return value if site.count == 1 else unpack(value, site)


def store_shared(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.shared. If lanes of a block store to the same address, the last lane wins."""
    address, batch = own_address(group, site, address), group.batch
    value = pack(value, site)
    count_access(group, site, check_shared(group, site, address), address, "shared", "shared")
    data, shadow = batch.shared_view(site.container), batch.shared_shadow

    def index() -> np.ndarray:
        found = _index(group, site, address)
        return np.broadcast_to(found, np.broadcast_shapes(found.shape, value.shape))

    if batch.watching:
        places = index()
        if hooks.differ(data, places, value).any():
            batch.note_change(data, places)
    lost = None
    if shadow is not None:
        hooks.ordered(group, site)
        lost = shadow.write(group, site, address, lambda: hooks.differ(data, index(), value))
    columns = _columns(group, site, address)
    if columns is None or not _store_rows(batch.shared.view(site.container), columns, value):
        data[index()] = value
    if lost is not None and lost.any():
        lost = lost & hooks.differ(data, index(), value)
        if lost.any():
            races.write_conflict(group, site, address, lost, "shared", None)


def _store_rows(rows: np.ndarray, columns: np.ndarray, value: np.ndarray) -> bool:
    """Store to the same elements of all rows, if each warp stores to consecutive elements; return whether it did.

    `rows`: (blocks, elements). This takes a quarter of the time of a store to arbitrary elements.
    """
    if columns.size % WARP or not (columns.reshape(-1, WARP) - columns[::WARP].reshape(-1, 1) == _LANES).all():
        return False
    value = np.broadcast_to(value, (rows.shape[0], columns.size))
    for lane, start in zip(range(0, columns.size, WARP), columns[::WARP].tolist(), strict=True):
        rows[:, start : start + WARP] = value[:, lane : lane + WARP]
    return True


RUNTIME = {"load_shared": load_shared, "store_shared": store_shared}
