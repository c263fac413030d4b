"""cp.async: what a thread has asked to be copied to shared memory and has not yet waited for.

The bytes are read from global memory when the copy begins, and written to shared memory when the thread waits for its
group, never earlier: a kernel that forgets the wait reads what was there before. Hardware may write them at any time
between. The bytes that remain of a copy with a smaller source size are zero.

Counted is a global load, by the lanes that read at least one byte. The write to shared memory is not counted: the
hardware counts it apart from stores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from . import access, faults, watch
from .errors import OutOfBounds
from .groups import Group
from .lanes import INACTIVE, Lanes, Selection, take
from .patterns import LINE, copy_sectors, sectors, tally

if TYPE_CHECKING:
    from .access import Site
    from .schedule import Batch


@dataclass(frozen=True)
class Copy:
    """One copy of some lanes: `address` in shared memory, `value` in containers, `number` of the group, per lane."""

    site: Site
    lanes: Lanes
    address: np.ndarray
    value: np.ndarray
    number: np.ndarray

    def part(self, where: np.ndarray) -> Copy:
        """Of the lanes where `where` (1-D, one for each lane) holds."""
        flat, shape = np.flatnonzero(where), self.lanes.shape
        selection = Selection(columns=flat) if self.lanes.ragged else Selection(flat=flat)
        address, value = (take(each, selection, shape) for each in (self.address, self.value))
        return Copy(self.site, selection.lanes(self.lanes), address, value, self.number[flat])


class Pending:
    """The copies of a batch. `commits` counts the groups that each thread has closed; it numbers the open one."""

    def __init__(self, batch: Batch) -> None:
        self.commits = np.zeros(batch.blocks * batch.threads, np.int64)
        self.copies: list[Copy] = []


def pending(batch: Batch) -> Pending:
    """The batch's pending copies."""
    if batch.copies is None:
        batch.copies = Pending(batch)
    return batch.copies


def begin(
    group: Group, load: Site, store: Site, source: np.ndarray, target: np.ndarray, present: np.ndarray | None
) -> None:
    """cp.async of `present` bytes (None: of all).

    Raises what a load from `source` and a store to `target` would.
    """
    lanes, batch = group.lanes, group.batch
    access.check_shared(group, store, target)
    if batch.shadow is not None:
        batch.shadow.overwrites(group, store, target)
    if load.past_cache:
        _count(group, load, store, source, target, present)
        load = load.uncounted
    value = _read(group, load, source, present)
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, target.shape))
    state = pending(batch)
    state.copies.append(Copy(store, lanes, target, value, state.commits[lanes.linear()]))


def _count(
    group: Group, load: Site, store: Site, source: np.ndarray, target: np.ndarray, present: np.ndarray | None
) -> None:
    """Count copies past the first-level cache, of the lanes that read at least one byte."""
    if present is not None and not present.all():
        shape = group.lanes.shape
        here = np.broadcast_to(present, shape) > 0
        if not here.any():
            return
        group, selection = access._part(group, here)
        source, target = (np.broadcast_to(take(each, selection, shape), group.lanes.shape) for each in (source, target))
    lanes = group.lanes
    found = tally(lanes, source, load.offset, load.width, sectors)
    if found.misaligned:
        faults.misaligned(group, load, source)
    shape = np.broadcast_shapes(source.shape, target.shape, (1, lanes.shape[1]))
    lines, repeat = lanes.layout.matrix(np.broadcast_to((source + load.offset) // LINE, shape), lanes)
    places, _ = lanes.layout.matrix(np.broadcast_to(target + store.offset, shape), lanes)
    mask = lanes.layout.full_mask(lines.shape[0])
    if mask is not None:
        lines = np.where(mask, lines, INACTIVE)
    achieved = int(copy_sectors(lines, places).sum()) * repeat
    near = group.batch.find(found.lowest, 1)
    access._note(group, load, replace(found, achieved=achieved), source, "global", near.name if near else "several")


def _read(group: Group, site: Site, source: np.ndarray, present: np.ndarray | None) -> np.ndarray:
    """The bytes to be copied, one container for each lane."""
    lanes = group.lanes
    if present is None or (present == site.width).all():
        value = access.load_global(group, site, source)
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
        part, selection = access._part(group, full > 0)
        here = np.broadcast_to(take(source, selection, lanes.shape), part.lanes.shape)
        sizes = full[full > 0]
        whole = (sizes == site.width).all()
        values = _read(part, site, here, None).view(np.uint8).reshape(-1, site.width) if whole else None
        out[selection.flatten(lanes.shape)] = values if whole else _bytes(part, site, here, sizes)
    return out.view(site.container).reshape(lanes.shape)


def _bytes(group: Group, site: Site, source: np.ndarray, present: np.ndarray) -> np.ndarray:
    """uint8 (lanes, width): the first `present` bytes at `source`, each at least one; zeros after them."""
    found = tally(group.lanes, source, site.offset, site.width, sectors)
    if found.misaligned:
        faults.misaligned(group, site, source)
    first = replace(site, element=np.dtype(np.uint8), count=1)
    out = np.zeros((source.size, site.width), np.uint8)
    names = set()
    for byte in range(int(present.max())):
        part, selection = access._part(group, (present > byte).reshape(1, -1))
        one = replace(first, offset=site.offset + byte)
        here = np.broadcast_to(take(source, selection, group.lanes.shape), part.lanes.shape)
        for allocation, where, index in access._parts(part, one, here):
            names.add(allocation.name)
            inner, chosen = access._part(part, where)
            watch.load(inner, one, allocation, take(here, chosen, part.lanes.shape))
            out[np.flatnonzero(present > byte)[where[0]], byte] = allocation.data[index]
    access._note(group, site, found, source, "global", names.pop() if len(names) == 1 else "several")
    return out


def commit(group: Group) -> None:
    """cp.async.commit_group: close the open group of each thread."""
    pending(group.batch).commits[group.lanes.linear()] += 1


def wait(group: Group, number: int) -> None:
    """cp.async.wait_group: until at most `number` of the latest groups of each thread are pending."""
    state = pending(group.batch)
    if not state.copies:
        return
    done = np.full(state.commits.size, -1, np.int64)
    linear = group.lanes.linear()
    done[linear] = state.commits[linear] - number
    left = []
    for copy in state.copies:
        arrived = copy.number < done[copy.lanes.linear()]
        if arrived.all():
            _deliver(group.batch, copy)
        elif arrived.any():
            _deliver(group.batch, copy.part(arrived))
            left.append(copy.part(~arrived))
        else:
            left.append(copy)
    state.copies = left


def _deliver(batch: Batch, copy: Copy) -> None:
    group = Group(batch, copy.lanes, {})
    access.put_shared(group, copy.site, copy.address, copy.value)


RUNTIME = {"copy_begin": begin, "copy_commit": commit, "copy_wait": wait}
