"""Loads and stores of local memory, and of kernel parameters at computed addresses."""

from __future__ import annotations

import numpy as np

from ..checks import faults, races
from ..counters.access_cost import AccessCost, access_cost
from ..counters.cost_model import local_sectors
from ..simt.groups import Group
from ..simt.site import Site
from .accesses import check_extents, count_access, pack, unpack


def load_local(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.local: values (blocks, threads), or (blocks, threads, count), from each lane's own memory."""
    index = _local_index(group, site, address)
    written = group.batch.local_written
    if written is not None:
        missing = written.reshape(-1).view(site.container)[index] == 0
        if missing.any():
            races.uninitialised(group, site, address, missing, "local")
    value = group.batch.local_view(site.container)[index]
    return value if site.count == 1 else unpack(value, site)


def store_local(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.local: to each lane's own memory."""
    index = _local_index(group, site, address)
    data, value = group.batch.local_view(site.container), np.broadcast_to(pack(value, site), index.shape)
    if group.batch.watching:
        group.batch.changes += bool((data[index] != value).any())
    data[index] = value
    written = group.batch.local_written
    if written is not None:
        ones = written.reshape(-1).view(site.container)
        ones[index] = np.frombuffer(b"\1" * site.width, site.container)[0]


def _local_index(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Check and count an access; return every lane's element index into the batch's flat local memory.

    A GPU interleaves local memory: words with the same index of a warp's lanes are neighbours, and an access of several
    4-byte words makes one request per word.
    """
    batch, lanes = group.batch, group.lanes
    full = np.broadcast_to(address, lanes.shape) + site.offset
    if not batch.extents["local"].contains(int(full.min()), int(full.max()), site.width):
        if batch.stack is None:
            check_extents(batch.extents["local"], group, site, address, "local")
        else:
            _check_stack(group, site, full)
    if (full & (site.width - 1)).any():
        faults.misaligned(group, site, address)
    cost = access_cost(lanes, address, site.offset, site.width, local_sectors)
    count_access(group, site, cost, address, "local", "local")
    if not site.part:
        batch.counts["local", site.index][0] += lanes.warps * (max(site.width // 4, 1) - 1)
    shift = site.container.itemsize.bit_length() - 1
    lane = lanes.block * lanes.threads + lanes.thread
    return (full >> shift) + lane * (batch.local.shape[1] >> shift)


def _check_stack(group: Group, site: Site, full: np.ndarray) -> None:
    """Raise OutOfBounds unless each lane's access is within a local variable, or a variable on its stack."""
    batch = group.batch
    outside = batch.extents["local"].outside(full, site.width)
    outside &= ~batch.stack.holds(group.lanes.linear(), full.reshape(-1), site.width).reshape(full.shape)
    if outside.any():
        faults.outside_stack(group, site, full, outside)


def load_param(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.param at a computed address: like `load_const`, from the parameters of the kernel."""
    full = address + site.offset
    if (full & (site.width - 1)).any():
        faults.misaligned(group, site, address)
    check_extents(group.batch.extents["param"], group, site, address, "param")
    cost = AccessCost(0, 0, int(full.min()), int(full.max()), False)
    count_access(group, site, cost, address, "constant", "parameters")
    memory = group.batch.parameter_memory
    whole = memory[: memory.size // site.width * site.width].view(site.container)
    value = whole.take(full >> (site.width.bit_length() - 1))
    return value if site.count == 1 else unpack(value, site)


def store_param(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """Raise OutOfBounds: kernel parameters are read-only."""
    faults.read_only(group, site, address)


RUNTIME = {"load_local": load_local, "store_local": store_local, "load_param": load_param}
