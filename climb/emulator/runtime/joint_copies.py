"""Bulk copies to shared memory that the lanes of one instruction issue together.

Most kernels let one thread of each block copy the same number of bytes; the blocks of a batch then do so at once. Each
of these copies is an operation of its own, but they are checked together and in flight together: one look at the shadow
memories serves all of them. They are divided when only some of their mbarriers are waited for. Copies that differ, that
lie in several arrays or on one another, or that a schedule may complete early, are issued one by one (`bulk_copies`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..memory.device_memory import Allocation
from ..simt.async_access import AsyncAccess, pieces
from ..simt.asynchronous import Operation
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import broadcast_to
from ..simt.site import Site
from . import bulk, mbarrier
from .accesses import subgroup
from .cluster_addresses import RANK
from .global_effects import read_global


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of `size` bytes from `held`, one by each lane of `group`: from `start` to `local` in its block, int64
    (lanes,). They complete on the mbarriers `words`, (lanes,), in whose phases `issued`, (lanes,), they were issued."""

    group: Group
    site: Site
    held: Allocation
    size: int
    start: np.ndarray
    local: np.ndarray
    words: np.ndarray
    issued: np.ndarray

    def part(self, where: np.ndarray) -> Copies:
        """Return the copies for which `where`, bool (lanes,), holds."""
        group, _ = subgroup(self.group, where.reshape(self.group.lanes.shape))
        each = {name: getattr(self, name)[where] for name in ("start", "local", "words", "issued")}
        return replace(self, group=group, **each)

    def fetch(self, operation: Operation) -> None:
        """Read the sources."""
        first = (self.start - self.held.address).tolist()
        operation.data = [self.held.data[at : at + self.size].copy() for at in first]
        bulk.ended(self.group, operation, "load")

    def deliver(self, operation: Operation) -> None:
        """Write the targets and complete."""
        lanes = self.group.lanes
        homes = broadcast_to(lanes.block, lanes.shape).ravel().tolist()
        for home, local, data in zip(homes, self.local.tolist(), operation.data, strict=True):
            bulk.shared_row(self.group, home)[local : local + self.size] = data
        bulk.ended(self.group, operation, "store", [self.words])
        mbarrier.complete_each(self.group, self.site, self.words, self.size, self.issued)

    def divide(self, operation: Operation, words: set[int]) -> list[Operation]:
        """Return the operation as two: the copies that complete on mbarriers among `words`, and the others."""
        inside = np.isin(self.words, list(words))
        of_pieces = np.repeat(inside, self.size // bulk.PIECE)
        out = []
        for copies, where in ((self.part(inside), of_pieces), (self.part(~inside), ~of_pieces)):
            out.append(_operation(copies, tuple(access.part(where) for access in operation.accesses)))
        for number, access in enumerate(operation.accesses):
            if access in operation.open:
                parts = [one.accesses[number] for one in out]
                self.group.batch.in_flight.divide(access, parts)
                for one, part in zip(out, parts, strict=True):
                    one.open.append(part)
        return out


def _operation(copies: Copies, accesses: tuple[AsyncAccess, ...]) -> Operation:
    barriers = dict(zip(copies.words.tolist(), copies.issued.tolist(), strict=True))
    return Operation(
        copies.site, copies.group.lanes, copies.fetch, copies.deliver, barriers, accesses=accesses, divide=copies.divide
    )


def issue(
    group: Group, load: Site, store: Site, barrier: Site, target: np.ndarray, source: np.ndarray, nbytes: np.ndarray,
    mbar: np.ndarray, mask: np.ndarray | None,
) -> bool:  # fmt: skip
    """Issue the copies of all lanes together, if they allow it; return whether they do. The parameters are those of
    `bulk_copies.to_shared`."""
    batch, shape = group.batch, group.lanes.shape
    if mask is not None or group.lanes.count == 1 or batch.order.size > 1 or batch.schedule is not None:
        return False
    to, start, sizes = (broadcast_to(each, shape).ravel() for each in (target, source, nbytes))
    start, local, size = start + load.offset, to + store.offset, int(sizes[0])
    held = _source(batch, start, size) if (sizes == size).all() else None
    if held is None or not _have_room(group, start, local, size):
        return False
    words = mbarrier.words_of(group, barrier, broadcast_to(mbar, shape)).ravel()
    issued = mbarrier.phase(batch.asynchronous.values[words]).astype(np.int64)
    _count(group, load, start, size)
    lanes, there = pieces(group.lanes, start.reshape(shape), size)
    _, here = pieces(group.lanes, local.reshape(shape), size)
    read_global(Group(batch, lanes, {}), load, held, there)
    number = np.zeros(lanes.count, np.int64)
    accesses = (
        AsyncAccess(bulk.as_pieces(load, "load"), lanes, there, number, why=bulk.open_phase),
        AsyncAccess(bulk.as_pieces(store, "store"), lanes, here, number, why=bulk.open_phase),
    )
    bulk.issue(group, _operation(Copies(group, load, held, size, start, local, words, issued), accesses))
    return True


def _source(batch: Batch, start: np.ndarray, size: int) -> Allocation | None:
    """Return the allocation that all copies read from; None if there is none, or if a copy is empty or uneven."""
    low = int(start.min())
    return batch.find(low, int(start.max()) + size - low) if size > 0 and size % bulk.PIECE == 0 else None


def _have_room(group: Group, start: np.ndarray, local: np.ndarray, size: int) -> bool:
    """Return whether all addresses are aligned, and all targets in one variable of the lanes' own blocks and apart."""
    batch, lanes = group.batch, group.lanes
    if ((start | local) & bulk.PIECE - 1).any() or (local >> RANK).any():
        return False
    if not batch.extents["shared"].contains(int(local.min()), int(local.max()), size):
        return False
    places = np.sort(local + broadcast_to(lanes.block, lanes.shape).ravel() * batch.shared.shape[1])
    return bool((places[1:] - places[:-1] >= size).all())


def _count(group: Group, site: Site, start: np.ndarray, size: int) -> None:
    for first in start.tolist():
        bulk.count(group, site, bulk.range_sectors(first, size), size)
