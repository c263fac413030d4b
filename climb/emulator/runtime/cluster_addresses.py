"""Addresses of shared memory in a cluster: the block that each names, and the address in that block.

As on an H200, an address of shared memory holds the rank of a block in its cluster from bit 24 on, and below it the
address in that block. The address of a variable has the rank of the block that takes it, so an address of shared::cta
is also one of shared::cluster, as PTX promises; without a cluster the rank is 0. An instruction on shared::cta takes no
address of another rank, and none without the rank: an H200 stops there (illegal instruction).
"""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..errors import OutOfBounds
from ..memory.device_memory import BLOCK_WINDOW, LOCAL_WINDOW, SHARED_WINDOW
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.site import Site

_LOCAL = BLOCK_WINDOW - 1
RANK = BLOCK_WINDOW.bit_length() - 1


def resolve(group: Group, site: Site, address: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the block of the batch that each address (offset of the site included) names, and the address in it.

    Both are int64 and have the shape of the lanes. Raises OutOfBounds for a block that is not in the cluster, or that
    has left the kernel.
    """
    lanes = group.lanes
    full, own = address + site.offset, lanes.block
    if full.shape != lanes.shape:
        full = np.broadcast_to(full, lanes.shape)
    if own.shape != lanes.shape:
        own = np.broadcast_to(own, lanes.shape)
    rank, size = full >> RANK, group.batch.order.size
    if size == 1 and not rank.any():
        return own, full
    bad = (rank < 0) | (rank >= size)
    if bad.any():
        first = int(rank[bad][0])
        _refuse(group, site, bad, full, f"the block of rank {first} of a cluster of {size} block{'s' * (size > 1)}")
    home = own - own % size + rank
    gone = (home != own) & ~running(group.batch)[home]
    if gone.any():
        rank = int(home[gone][0]) % size
        _refuse(group, site, gone, full, f"the block of rank {rank}, which has left the kernel")
    return home, full & _LOCAL


def taken(group: Group, address: np.ndarray) -> np.ndarray:
    """Return the address of a shared variable as the kernel sees it, with the rank of the lanes' block."""
    size = group.batch.order.size
    if size == 1:
        return address
    rank = (group.lanes.block + group.batch.start) % size
    return address + (rank << RANK).astype(address.dtype)


def own_address(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Return an address of shared::cta as one in the lanes' own block, without the rank. Raises OutOfBounds for another
    block's."""
    if group.batch.order.size == 1:
        return address
    rank, own = address + site.offset >> RANK, (group.lanes.block + group.batch.start) % group.batch.order.size
    bad = rank != own
    if bad.any():
        bad = np.broadcast_to(bad, group.lanes.shape)
        other, mine = (int(np.broadcast_to(each, bad.shape)[bad][0]) for each in (rank, own))
        full = np.broadcast_to(address, bad.shape) + site.offset
        what = f"the block of rank {other}, by an instruction on its own block's (shared::cta), of rank {mine}"
        _refuse(group, site, bad, full, what)
    return address - (rank << RANK)


def running(batch: Batch) -> np.ndarray:
    """Return the blocks with a thread that has not left the kernel: bool (blocks,)."""
    return batch.alive().any(axis=1)


def _refuse(group: Group, site: Site, bad: np.ndarray, full: np.ndarray, what: str) -> None:
    action = "read" if site.action == "load" else "write"
    raise OutOfBounds(
        f"out of bounds: {action} in the shared memory of {what}",
        faults.place_of(group, site, bad),
        address=int(full[bad][0]),
        allocation=None,
        distance=None,
    )


def map_to_rank(group: Group, site: Site, address: np.ndarray, rank: np.ndarray, generic: bool) -> np.ndarray:
    """mapa: the address in the window of the cluster of what `address` names, in the block of another rank."""
    size, shape = group.batch.order.size, group.lanes.shape
    rank = rank.astype(np.int64)
    bad = np.broadcast_to(rank >= size, shape)
    if bad.any():
        full = np.broadcast_to(address, shape)
        first = int(np.broadcast_to(rank, shape)[bad][0])
        _refuse(group, site, bad, full, f"the block of rank {first} of a cluster of {size} block{'s' * (size > 1)}")
    window = SHARED_WINDOW if generic else 0
    return (address - window & _LOCAL) + (rank << RANK) + window


def rank_of(group: Group, address: np.ndarray, generic: bool) -> np.ndarray:
    """getctarank: the rank of the block that an address of shared::cluster names, int64."""
    return address - (SHARED_WINDOW if generic else 0) >> RANK


def is_shared(group: Group, address: np.ndarray, cluster: bool) -> np.ndarray:
    """isspacep.shared::cta, or with `cluster` isspacep.shared::cluster: whether a generic address is in the window."""
    inside = (address >= SHARED_WINDOW) & (address < LOCAL_WINDOW)
    if cluster:
        return inside
    own = (group.lanes.block + group.batch.start) % group.batch.order.size
    return inside & (address - SHARED_WINDOW >> RANK == own)


RUNTIME = {
    "shared_taken": taken, "cluster_map": map_to_rank, "cluster_rank": rank_of, "cluster_is_shared": is_shared,
}  # fmt: skip
