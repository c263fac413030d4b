"""cp.async: copy from global to shared memory in the background.

The bytes are read from global memory when the copy begins, and written to shared memory when the thread waits for its
group. Hardware does both at any time in between, so an access in that span is an error; see `checks.in_flight`. If the
source size is smaller than the copy, the remaining bytes become zero.

A copy counts as a global load by the lanes that read at least one byte. Its write to shared memory is not counted,
because the hardware counts it separately from stores.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..checks import faults, hooks
from ..counters.access_cost import access_cost
from ..counters.cost_model import LINE, copy_sectors, sectors
from ..errors import OutOfBounds
from ..simt.async_access import AsyncAccess, Pending
from ..simt.asynchronous import Operation
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import take
from ..simt.site import Site
from ..simt.warp_layout import INACTIVE
from . import mbarrier
from .accesses import count_access, split_by_allocation, subgroup
from .asynchronous import complete, issue, wait
from .cluster_addresses import own_address
from .global_memory import load_global
from .shared_memory import check_shared


def begin(
    group: Group, load: Site, store: Site, source: np.ndarray, target: np.ndarray, present: np.ndarray | None
) -> None:
    """Begin cp.async of the first `present` bytes (None: all).

    Raises the errors of a load from `source` and of a store to `target`, and AsyncRace.
    """
    lanes, batch = group.lanes, group.batch
    target = own_address(group, store, target)
    check_shared(group, store, target)
    if load.bypasses_l1:
        _count(group, load, store, source, target, present)
        load = load.uncounted
    value = _read(group, load, source, present)
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, target.shape))
    if batch.trace is not None:
        batch.trace.note(group, "copy", store, target + store.offset, 0)
    groups = batch.copies
    number = groups.open_group(lanes)

    def why(block: int, thread: int, number: int) -> str:
        return groups.why(block * batch.threads + thread, number)

    write = AsyncAccess(store, lanes, target, number, value, why=why)
    some = None if present is None else present > 0
    read = AsyncAccess(load, lanes, source, number, some=some, why=why)
    # The value is read now; if the schedule decides when the copy happens, it is read again then.
    again = batch.schedule is not None and present is None
    operation = Pending((write, read), lambda accesses: _land(batch, *accesses, again))
    issue(batch, operation)
    groups.pending.append(operation)


def _land(batch: Batch, write: AsyncAccess, read: AsyncAccess, again: bool) -> None:
    """Write the bytes to shared memory; read them `again` before."""
    site, shift, value = write.site, write.site.container.itemsize.bit_length() - 1, write.value
    if again:
        value = _read(Group(batch, read.lanes, {}), read.site.uncounted, read.address, None)
    index = (write.address + site.offset >> shift) + write.block * (batch.shared.shape[1] >> shift)
    batch.changes += 1
    batch.shared_view(site.container)[index] = value


def _count(
    group: Group, load: Site, store: Site, source: np.ndarray, target: np.ndarray, present: np.ndarray | None
) -> None:
    """Count copies that bypass the L1 cache, by the lanes that read at least one byte."""
    if present is not None and not present.all():
        shape = group.lanes.shape
        here = np.broadcast_to(present, shape) > 0
        if not here.any():
            return
        group, selection = subgroup(group, here)
        source, target = (np.broadcast_to(take(each, selection, shape), group.lanes.shape) for each in (source, target))
    lanes = group.lanes
    found = access_cost(lanes, source, load.offset, load.width, sectors)
    if found.misaligned:
        faults.misaligned(group, load, source)
    shape = np.broadcast_shapes(source.shape, target.shape, (1, lanes.shape[1]))
    lines, repeat = lanes.layout.matrix(np.broadcast_to((source + load.offset) // LINE, shape), lanes.shape)
    places, _ = lanes.layout.matrix(np.broadcast_to(target + store.offset, shape), lanes.shape)
    mask = lanes.layout.full_mask(lines.shape[0])
    if mask is not None:
        lines = np.where(mask, lines, INACTIVE)
    achieved = int(copy_sectors(lines, places).sum()) * repeat
    near = group.batch.find(found.lowest, 1)
    count_access(group, load, found._replace(achieved=achieved), source, "global", near.name if near else "several")


def _read(group: Group, site: Site, source: np.ndarray, present: np.ndarray | None) -> np.ndarray:
    """Return the bytes to copy, one container for each lane."""
    lanes = group.lanes
    if present is None or (present == site.width).all():
        value = load_global(group, site, source)
        return value if site.count == 1 else np.ascontiguousarray(value).view(site.container)[:, :, 0]
    if (present > site.width).any():
        bad = np.broadcast_to(present > site.width, lanes.shape)
        many = int(np.broadcast_to(present, lanes.shape)[bad][0])
        raise OutOfBounds(
            f"out of bounds: a copy of {site.width} bytes whose source has {many}",
            faults.place_of(group, site, bad),
            address=int(np.broadcast_to(source, lanes.shape)[bad][0]) + site.offset,
            allocation=None,
            distance=None,
        )
    full = np.broadcast_to(present, lanes.shape)
    out = np.zeros((lanes.shape[0] * lanes.shape[1], site.width), np.uint8)
    if full.any():
        part, selection = subgroup(group, full > 0)
        here = np.broadcast_to(take(source, selection, lanes.shape), part.lanes.shape)
        sizes = full[full > 0]
        whole = (sizes == site.width).all()
        values = _read(part, site, here, None).view(np.uint8).reshape(-1, site.width) if whole else None
        out[selection.flatten(lanes.shape)] = values if whole else _bytes(part, site, here, sizes)
    return out.view(site.container).reshape(lanes.shape)


def _bytes(group: Group, site: Site, source: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return the first `present` bytes (at least one) at `source`, then zeros: uint8 (lanes, width)."""
    found = access_cost(group.lanes, source, site.offset, site.width, sectors)
    if found.misaligned:
        faults.misaligned(group, site, source)
    first = replace(site, element=np.dtype(np.uint8), count=1)
    out = np.zeros((source.size, site.width), np.uint8)
    names = set()
    for byte in range(int(present.max())):
        part, selection = subgroup(group, (present > byte).reshape(1, -1))
        one = replace(first, offset=site.offset + byte)
        here = np.broadcast_to(take(source, selection, group.lanes.shape), part.lanes.shape)
        for allocation, where, index in split_by_allocation(part, one, here):
            names.add(allocation.name)
            inner, chosen = subgroup(part, where)
            if group.batch.footprint is not None:
                group.batch.footprint.load_elements(allocation, index, 1)
            hooks.load(inner, one, allocation, take(here, chosen, part.lanes.shape))
            out[np.flatnonzero(present > byte)[where[0]], byte] = allocation.data[index]
    count_access(group, site, found, source, "global", names.pop() if len(names) == 1 else "several")
    return out


def commit(group: Group) -> None:
    """cp.async.commit_group: commit the open group of each thread."""
    if group.batch.trace is not None:
        group.batch.trace.note(group, "commit", None, None, 0)
    group.batch.copies.commit(group.lanes)


def wait_group(group: Group, number: int, site: Site) -> None:
    """cp.async.wait_group: wait until at most the latest `number` groups of each thread are open."""
    if group.batch.trace is not None:
        group.batch.trace.note(group, "wait", None, None, number)
    wait(group, group.batch.copies, number, site)


def arrive(group: Group, site: Site, address: np.ndarray, counted: bool) -> None:
    """cp.async.mbarrier.arrive: an arrival of each lane when all copies that it has issued so far are complete.

    Unless it is `counted` (.noinc), the phase expects one more arrival for it.
    """
    batch = group.batch
    words = mbarrier.words_of(group, site, address)
    if not counted:
        mbarrier.expect_one_more(group, words)
    issued = list(batch.copies.pending)

    def deliver(operation: Operation) -> None:
        for covered in batch.copies.take(group.lanes, issued):
            complete(batch, covered)
        mbarrier.arrive(group, site, address, np.ones((1, 1), np.uint32), None, False, True)

    barriers = dict.fromkeys(np.unique(words).tolist(), 0)
    operation = Operation(site, group.lanes, lambda _: None, deliver, barriers, fetched=True)
    batch.asynchronous.operations.append(operation)


RUNTIME = {"copy_begin": begin, "copy_commit": commit, "copy_wait": wait_group, "copy_arrive": arrive}
