"""Which unordered accesses are faults, and what is said of them.

Reported: a read and a write, or two writes, of one cell by two threads that nothing orders, unless both writes leave
the same value (all threads that set `flag = 1`); an atomic beside a plain write; and a plain read beside an atomic sum
(add, inc, dec), whose value in between means nothing. Not reported: atomics beside atomics; a plain read beside atomics
that only move a bound or swap (min, max, and, or, xor, cas, exch), as in the loop of every CAS idiom. Volatile and
ordered accesses are how flags work: in global memory one is enough that nothing is reported, in shared memory between
warps both must be, or one wait in a loop. Within a warp they are no excuse: since Volta lanes need __syncwarp, save
where both are volatile and one waits in a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .clock import BLOCKS, KIND, ONE, TICK, WARP_LANES, Clock
from .errors import Race, Uninitialised, Where
from .faults import place_of, readable

if TYPE_CHECKING:
    from .access import Site
    from .groups import Group
    from .memory import Allocation
    from .module import Kernel

SUMS = frozenset({"add", "inc", "dec"})
SWAPS = frozenset({"cas", "exch"})
_ID = (1 << KIND) - 1


def _reported(earlier: Site, later: Site, space: str, same_warp: bool) -> bool:
    strong = earlier.strong or later.strong
    if "atomic" in (earlier.action, later.action):
        atomic, other = (earlier, later) if earlier.action == "atomic" else (later, earlier)
        return not other.strong and (other.action == "store" or atomic.operation in SUMS)
    if not strong:
        return True
    both = earlier.strong and later.strong
    waits = earlier.spin or later.spin
    return space == "shared" and not (waits and (both or not same_warp)) and (same_warp or not both)


def judge(
    group: Group,
    site: Site,
    address: np.ndarray,
    before: np.ndarray,
    found: np.ndarray,
    clock: Clock,
    space: str,
    allocation: Allocation | None,
) -> None:
    """Raise Race for the first lane with an unordered access that is a fault.

    `before` are the stamps of the earlier accesses and `found` says which are unordered; both broadcast to
    (b, t, cells).
    """
    lanes, threads = group.lanes, group.batch.threads
    shape = np.broadcast_shapes(found.shape, (*lanes.shape, 1))
    before, found = np.broadcast_to(before, shape), np.broadcast_to(found, shape).copy()
    who, kind = before & _ID, before >> KIND & 3
    thread = np.broadcast_to(lanes.thread[:, :, None], shape)
    same_warp = ((who % threads) >> 5 == thread >> 5) & (kind <= WARP_LANES)
    if allocation is not None:
        block = np.broadcast_to(lanes.block[:, :, None], shape) + group.batch.start
        same_warp &= who // threads == block
    events = clock.events
    for tick in np.unique(before[found] >> TICK).tolist():
        earlier = events.sites[tick]
        for together in (True, False):
            if earlier is None or not _reported(earlier, site, space, together):
                found &= (before >> TICK != tick) | (same_warp != together)
    if not found.any():
        return
    bad = found.any(axis=2)
    block, thread, cell = (int(i[0]) for i in np.nonzero(found))
    stamp = int(before[block, thread, cell])
    full = np.broadcast_to(address + site.offset, lanes.shape)
    _raise(group, site, bad, int(full[block, thread]), stamp, bool(same_warp[block, thread, cell]), space, allocation)


def clash(
    group: Group, site: Site, address: np.ndarray, bad: np.ndarray, space: str, allocation: Allocation | None
) -> NoReturn:
    """Raise Race for lanes that store different values to one place in one instruction; `bad` are those that lost."""
    bad = np.broadcast_to(bad, group.lanes.shape)
    full = np.broadcast_to(address + site.offset, group.lanes.shape)
    at = int(full[bad][0])
    where = place_of(group, site, bad)
    lost = np.broadcast_to(group.lanes.block * group.batch.threads + group.lanes.thread, bad.shape)[bad][0]
    order = np.broadcast_to(group.lanes.block * group.batch.threads + group.lanes.thread, bad.shape)
    rivals = order[(full == at) & (order != lost)]
    if space == "shared":
        rivals = rivals[rivals // group.batch.threads == lost // group.batch.threads]
    winner = int(rivals.max()) if rivals.size else int(lost)
    batch = group.batch
    other = Where(
        where.kernel,
        where.file,
        where.line,
        where.text,
        batch.block_index(winner // batch.threads),
        batch.thread_index(winner % batch.threads),
        1,
    )
    name, offset = _name(batch.kernel, space, at, allocation)
    raise Race(
        f"race in {space} memory: threads write different values to byte {offset} of {name} at once; "
        f"the other one is {_who(other, where)}",
        where,
        space=space,
        address=at,
        allocation=allocation,
        name=name,
        offset=offset,
        other=other,
    )


def uninitialised(
    group: Group,
    site: Site,
    address: np.ndarray,
    bad: np.ndarray,
    space: str,
    allocation: Allocation | None = None,
) -> NoReturn:
    """Raise Uninitialised for the lanes where `bad` holds."""
    bad = np.broadcast_to(bad, group.lanes.shape)
    at = int(np.broadcast_to(address + site.offset, bad.shape)[bad][0])
    name, offset = _name(group.batch.kernel, space, at, allocation)
    what = "an atomic reads" if site.action == "atomic" else "a load reads"
    raise Uninitialised(
        f"uninitialised: {what} byte {offset} of {name} in {space} memory, which nothing has written",
        place_of(group, site, bad),
        space=space,
        address=at,
        allocation=allocation,
        name=name,
        offset=offset,
    )


VERBS = {"load": "read", "store": "write", "atomic": "atomic operation"}
DONE = {"load": "reads", "store": "writes", "atomic": "changes by an atomic operation"}


def _raise(
    group: Group,
    site: Site,
    bad: np.ndarray,
    at: int,
    stamp: int,
    same_warp: bool,
    space: str,
    allocation: Allocation | None,
) -> NoReturn:
    batch = group.batch
    where = place_of(group, site, bad)
    earlier = batch.clock.events.site(stamp)
    who, kind = stamp & _ID, stamp >> KIND & 3
    linear, thread = divmod(who, batch.threads)
    block = batch.start + int(_first(group, bad)[0]) if allocation is None else linear
    other = Where(
        where.kernel,
        earlier.location.file,
        earlier.location.line,
        earlier.text,
        batch.block_index(block - batch.start),
        batch.thread_index(thread),
        1 if kind == ONE else 2,
    )
    name, offset = _name(batch.kernel, space, at, allocation)
    if other.block != where.block or kind == BLOCKS:
        why = "blocks run in any order, and no atomic with a fence orders the two"
    elif same_warp:
        why = "both are of one warp, whose lanes run independently, and no __syncwarp lies between"
    else:
        why = "no __syncthreads lies between"
    file = other.file.rsplit("/", 1)[-1]
    raise Race(
        f"race in {space} memory: this {VERBS[site.action]} of byte {offset} of {name}, which {_who(other, where)} "
        f"{DONE[earlier.action]} at {file}:{other.line}: {other.text.rstrip('; ')}; {why}",
        where,
        space=space,
        address=at,
        allocation=allocation,
        name=name,
        offset=offset,
        other=other,
        same_warp=same_warp,
    )


def _who(other: Where, where: Where) -> str:
    thread = ",".join(map(str, other.thread))
    block = "" if other.block == where.block else f" of block ({','.join(map(str, other.block))})"
    return f"thread ({thread}){block}"


def _first(group: Group, bad: np.ndarray) -> tuple[int, int]:
    first = int(np.flatnonzero(bad.ravel())[0])
    lanes = group.lanes
    return tuple(int(np.broadcast_to(each, lanes.shape).ravel()[first]) for each in (lanes.block, lanes.thread))


def _name(kernel: Kernel, space: str, at: int, allocation: Allocation | None) -> tuple[str, int]:
    """What the memory at an address is called, and the offset in it."""
    if allocation is not None:
        return allocation.name, at - allocation.address
    starts = [(start, name) for name, (where, start) in kernel.layout.addresses.items() if where == space]
    start, name = max(((s, n) for s, n in starts if s <= at), default=(0, "shared memory"))
    return readable(name), at - start
