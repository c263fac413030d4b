"""Addresses of shared memory in a cluster: which block they name, and the address in that block.

An address of the window shared::cluster holds the rank of a block plus one from bit 24 on, and below it the address in
the block's own shared memory. Zero in place of the rank is the block itself, so an address of shared::cta is also one
of shared::cluster, as PTX promises.
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
    """The block of the batch that each address (offset of the site included) names, and the address in it.

    Both are int64 and have the shape of the lanes. Raises OutOfBounds for a block that the cluster does not have, or
    that has left the kernel.
    """
    lanes = group.lanes
    full = np.broadcast_to(address, lanes.shape) + site.offset
    code, own = full >> RANK, np.broadcast_to(lanes.block, lanes.shape)
    if not code.any():
        return own, full
    size = group.batch.order.size
    home = np.where(code == 0, own, own - own % size + code - 1)
    bad = (code < 0) | (code > size)
    if bad.any():
        rank = int(code[bad][0]) - 1
        _refuse(group, site, bad, full, f"the block of rank {rank} of a cluster of {size} block{'s' * (size > 1)}")
    gone = (home != own) & ~running(group.batch)[home]
    if gone.any():
        rank = int(home[gone][0]) % size
        _refuse(group, site, gone, full, f"the block of rank {rank}, which has left the kernel")
    return home, full & _LOCAL


def running(batch: Batch) -> np.ndarray:
    """bool (blocks,): the blocks of which a thread has not left the kernel."""
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
    return (address - window & _LOCAL) + (rank + 1 << RANK) + window


def rank_of(group: Group, address: np.ndarray, generic: bool) -> np.ndarray:
    """getctarank: the rank of the block that an address of shared::cluster names, int64."""
    own = (group.lanes.block + group.batch.start) % group.batch.order.size
    code = address - (SHARED_WINDOW if generic else 0) >> RANK
    return np.where(code == 0, own, code - 1)


def is_shared(group: Group, address: np.ndarray, cluster: bool) -> np.ndarray:
    """isspacep.shared::cta, or with `cluster` isspacep.shared::cluster: whether a generic address is in the window."""
    inside = (address >= SHARED_WINDOW) & (address < LOCAL_WINDOW)
    if cluster:
        return inside
    code = address - SHARED_WINDOW >> RANK
    own = (group.lanes.block + group.batch.start) % group.batch.order.size
    return inside & ((code == 0) | (code == own + 1))


RUNTIME = {"cluster_map": map_to_rank, "cluster_rank": rank_of, "cluster_is_shared": is_shared}
