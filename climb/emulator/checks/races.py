"""The rules for which unordered accesses are races, and the errors that report them.

Reported: a read and a write, or two writes, of one cell by two threads that nothing orders, unless both writes leave
the same value (as when all threads set `flag = 1`); an atomic and an unordered plain write; a plain read and an
unordered atomic sum (add, inc, dec), because intermediate sums mean nothing; in global memory, an ld.global.nc after a
store to the same cell, also if something orders the two. Not reported: two atomics; a plain read and an atomic that
only moves a bound or swaps (min, max, and, or, xor, cas, exch), as in every CAS loop.

Volatile and ordered accesses implement flags. In global memory, one such access is enough to report nothing. In shared
memory, between warps, both accesses must be volatile or ordered, or one must wait in a loop. Within a warp they do not
help: since Volta, lanes need __syncwarp, unless both accesses are volatile and one waits in a loop.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..errors import Race, Uninitialised, Where
from ..memory.device_memory import Allocation
from ..simt.batch import Batch
from ..simt.code import TranslatedKernel
from ..simt.groups import Group
from ..simt.site import Site
from .faults import place, place_of, readable
from .happens_before import Clock
from .stamps import BLOCKS, ID, KIND, ONE, TICK, WARP_LANES

SUMS = frozenset({"add", "inc", "dec"})
SWAPS = frozenset({"cas", "exch"})


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


def check_race(
    group: Group,
    site: Site,
    address: np.ndarray,
    before: np.ndarray,
    found: np.ndarray,
    clock: Clock,
    space: str,
    allocation: Allocation | None,
) -> None:
    """Raise Race for the first lane whose unordered access is a race, if there is one.

    `before` holds the stamps of the earlier accesses, `found` marks the unordered ones; both broadcast to (blocks,
    threads, cells).
    """
    lanes, threads = group.lanes, group.lanes.threads
    shape = np.broadcast_shapes(found.shape, (*lanes.shape, 1))
    before, found = np.broadcast_to(before, shape), np.broadcast_to(found, shape).copy()
    earlier_id, kind = before & ID, before >> KIND & 3
    thread = np.broadcast_to(lanes.thread[:, :, None], shape)
    same_warp = ((earlier_id % threads) >> 5 == thread >> 5) & (kind <= WARP_LANES)
    if allocation is not None:
        block = np.broadcast_to(lanes.block[:, :, None], shape) + group.batch.start
        same_warp &= earlier_id // threads == block
    events = clock.events
    for tick in np.unique(before[found] >> TICK).tolist():
        earlier = events.sites[tick]
        for one_warp in (True, False):
            if earlier is None or not _reported(earlier, site, space, one_warp):
                found &= (before >> TICK != tick) | (same_warp != one_warp)
    if not found.any():
        return
    bad = found.any(axis=2)
    block, thread, cell = (int(i[0]) for i in np.nonzero(found))
    at = block, thread, cell
    stamp, one_warp = int(before[at]), bool(same_warp[at])
    address = int(np.broadcast_to(address + site.offset, lanes.shape)[block, thread])
    fence = _lacks_fence(group, clock, before, at, allocation is not None)
    report(group, site, bad, address, stamp, one_warp, space, allocation, FENCE if fence else "")


def _lacks_fence(group: Group, clock: Clock, before: np.ndarray, at: tuple[int, int, int], launch_wide: bool) -> bool:
    """Return whether a fence by these lanes would order the access: a relaxed load has seen that it was made, but no
    fence follows that load. The clock must not be used afterwards."""
    lanes = group.lanes
    ids = lanes.thread
    if launch_wide:
        ids = (lanes.block + group.batch.start) * lanes.threads + ids
    without = clock.unordered(before, lanes, ids[:, :, None], launch_wide)[at]
    clock.complete_relaxed_loads(lanes, True)
    # Only the difference tells what a fence does: where readers are kept one by one, the clock alone may call a stamp
    # of several lanes ordered, though one of them is not.
    return bool(without and not clock.unordered(before, lanes, ids[:, :, None], launch_wide)[at])


def write_conflict(
    group: Group,
    site: Site,
    address: np.ndarray,
    bad: np.ndarray,
    space: str,
    allocation: Allocation | None,
    home: np.ndarray | None = None,
) -> NoReturn:
    """Raise Race for lanes that store different values to one place in one instruction.

    `bad` marks the lanes whose value was overwritten. `home`: the blocks whose shared memory it is, if not their own.
    """
    bad = np.broadcast_to(bad, group.lanes.shape)
    full = np.broadcast_to(address + site.offset, group.lanes.shape)
    at = int(full[bad][0])
    where = place_of(group, site, bad)
    threads = group.lanes.threads
    order = np.broadcast_to(group.lanes.block * threads + group.lanes.thread, bad.shape)
    lost = order[bad][0]
    rivals = (full == at) & (order != lost)
    if space == "shared":
        homes = np.broadcast_to(group.lanes.block if home is None else home, bad.shape)
        rivals &= homes == homes[bad][0]
    rivals = order[rivals]
    winner = int(rivals.max()) if rivals.size else int(lost)
    batch = group.batch
    other = place(batch, site.location, *group.lanes.locate(*divmod(winner, threads)), 1)
    name, offset = name_of(batch.kernel, space, _own(batch, space, at), allocation)
    raise Race(
        f"race in {space} memory: threads write different values to byte {offset} of {name} at once; "
        f"the other one is {thread_text(other, where)}",
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
    name, offset = name_of(group.batch.kernel, space, _own(group.batch, space, at), allocation)
    stack = group.batch.stack
    if space == "local" and stack is not None and at >= stack.start:
        name, offset = "the stack", at - stack.start
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


NOUNS = {"load": "read", "store": "write", "atomic": "atomic operation"}
VERBS = {"load": "reads", "store": "writes", "atomic": "changes by an atomic operation"}


READ_ONLY = (
    "an ld.global.nc promises that nothing writes to its memory while the kernel runs, so it may give an older value, "
    "whatever orders the two: no __ldg of such memory, and no const __restrict__ on a pointer to it"
)
FENCE = (
    "a relaxed or volatile load has waited for that, but no fence follows that load: what comes after it may be "
    "performed before it; load with acquire, or put a __threadfence() after the loop"
)


def report(
    group: Group,
    site: Site,
    bad: np.ndarray,
    at: int,
    stamp: int,
    same_warp: bool,
    space: str,
    allocation: Allocation | None,
    why: str = "",
) -> NoReturn:
    """Raise Race for the lanes for which `bad` holds, at address `at`. `stamp`: the earlier access; `why`: the missing
    synchronisation between the two, if known."""
    batch = group.batch
    where = place_of(group, site, bad)
    earlier = batch.clock.events.site(stamp)
    earlier_id, kind = stamp & ID, stamp >> KIND & 3
    lanes = group.lanes
    linear, thread = divmod(earlier_id, lanes.threads)
    first = int(np.broadcast_to(lanes.block, lanes.shape).ravel()[np.flatnonzero(bad.ravel())[0]])
    there = (first if allocation is None else linear - batch.start, thread)
    other = place(batch, earlier.location, *lanes.locate(*there), 1 if kind == ONE else 2)
    name, offset = name_of(batch.kernel, space, _own(batch, space, at), allocation)
    through = ", nor an arrival at an mbarrier that this thread has waited for" if batch.asynchronous.used else ""
    if why:
        pass
    elif allocation is None and other.block != where.block:
        why = f"no barrier of the cluster lies between{through}"
    elif other.block != where.block or kind == BLOCKS:
        why = "blocks run in any order, and no atomic with a fence orders the two"
    elif same_warp:
        why = "both are of one warp, whose lanes run independently, and no __syncwarp lies between"
    else:
        since = f" the wait for the {earlier.asynchronous} and this" if earlier.asynchronous else ""
        why = f"no __syncthreads lies between{since}{through}"
    file = other.file.rsplit("/", 1)[-1]
    raise Race(
        f"race in {space} memory: this {_noun(site)} of byte {offset} of {name}, which "
        f"{thread_text(other, where)} {_verb(earlier)} at {file}:{other.line}: "
        f"{other.text.rstrip('; ')}; {why}",
        where,
        space=space,
        address=at,
        allocation=allocation,
        name=name,
        offset=offset,
        other=other,
        same_warp=same_warp,
    )


def _noun(site: Site) -> str:
    """Return the noun for an access: "read", "write by an asynchronous copy", ..."""
    return NOUNS[site.action] + (f" by an asynchronous {site.asynchronous}" if site.asynchronous else "")


def _verb(site: Site) -> str:
    return VERBS[site.action] + (f" by an asynchronous {site.asynchronous}" if site.asynchronous else "")


def thread_text(other: Where, where: Where) -> str:
    """Return the text for the thread at `other`, with its block if that differs from the block at `where`."""
    thread = ",".join(map(str, other.thread))
    block = "" if other.block == where.block else f" of block ({','.join(map(str, other.block))})"
    return f"thread ({thread}){block}"


def _own(batch: Batch, space: str, at: int) -> int:
    """Return an address in the shared memory of a block, given one in that of its cluster, whose blocks follow each
    other."""
    return at % batch.shared.shape[1] if space == "shared" else at


def name_of(kernel: TranslatedKernel, space: str, at: int, allocation: Allocation | None) -> tuple[str, int]:
    """Return the name of the variable or allocation at an address, and the offset in it."""
    if allocation is not None:
        return allocation.name, at - allocation.address
    starts = [(start, name) for name, (where, start) in kernel.layout.addresses.items() if where == space]
    start, name = max(((s, n) for s, n in starts if s <= at), default=(0, "shared memory"))
    return readable(name), at - start
