"""Common parts of bulk operations: one thread moves a range of memory in the background.

An operation checks its arguments when it is issued, and takes effect when a thread waits for it: see
`simt.asynchronous`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from ..checks import faults
from ..checks.in_flight import InFlight
from ..checks.proxies import check_fenced
from ..counters.cost_model import SECTOR
from ..errors import AsyncMisuse, Misaligned
from ..isa.half import half_operation
from ..memory.device_memory import Allocation
from ..simt.async_access import AsyncAccess
from ..simt.asynchronous import Operation
from ..simt.groups import Group
from ..simt.lanes import Lanes, broadcast_to
from ..simt.site import Site
from . import mbarrier
from .atomics import UFUNCS, decrease, increase
from .cluster_addresses import own_address
from .mbarrier_words import phase

PIECE = 16
_WORD = np.dtype(np.uint32)

Update = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: Maps (block, thread, number) to the reason why an access is in flight, the last part of a sentence.
Why = Callable[[int, int, int], str]


def each_lane(group: Group, *values: np.ndarray | None) -> Iterator[tuple[Group, list[int | None]]]:
    """Yield each lane as a separate group, with its value of each array."""
    shape, threads = group.lanes.shape, group.lanes.threads
    block, thread = (broadcast_to(each, shape).ravel() for each in (group.lanes.block, group.lanes.thread))
    flat = [None if each is None else broadcast_to(each, shape).ravel() for each in values]
    for lane in range(group.lanes.count):
        here = Lanes(block[lane].reshape(1, 1), thread[lane].reshape(1, 1), threads, True)
        yield Group(group.batch, here, {}), [None if each is None else int(each[lane]) for each in flat]


def spread(group: Group, count: int) -> Group:
    """Return the one lane of a group, repeated `count` times: for the accesses of a range."""
    lanes = group.lanes
    block, thread = (np.full((1, count), each[0, 0], np.int64) for each in (lanes.block, lanes.thread))
    return Group(group.batch, Lanes(block, thread, lanes.threads, True), {})


def pieces(start: int, nbytes: int) -> np.ndarray:
    """Return the addresses of the 16-byte pieces of a range, (1, n)."""
    return np.arange(start, start + nbytes, PIECE, dtype=np.int64).reshape(1, -1)


def as_pieces(site: Site, action: str) -> Site:
    """Return the site, as accesses of 16 bytes at whole addresses."""
    return replace(site, element=_WORD, count=4, offset=0, action=action, part=True)


def fail(group: Group, site: Site, what: str) -> NoReturn:
    """Raise AsyncMisuse at the one lane of a group."""
    raise AsyncMisuse(what, faults.place_of(group, site, np.ones((1, 1), np.bool_)))


def check_alignment(group: Group, site: Site, address: int, multiple: int, what: str) -> None:
    """Raise Misaligned unless `address` is a multiple."""
    if address % multiple:
        found = faults.place_in_memory(group.batch, address)
        inside = f", byte {found[1]} of {found[0]}" if found else ""
        itself = f"; declare {found[0]} alignas({multiple})" if found and address < faults.FAR and not found[1] else ""
        raise Misaligned(
            f"misaligned: {what} at {address:#x}{inside}, which is no multiple of {multiple}{itself}",
            faults.place_of(group, site, np.ones((1, 1), np.bool_)),
            address=address,
            width=multiple,
            allocation=None,
        )


def own_start(group: Group, site: Site, start: int) -> int:
    """Return the start of a range of shared memory of the one lane's own block, the site's offset included."""
    return int(own_address(group, site, np.array([[start]]))[0, 0]) + site.offset


def check_shared_range(group: Group, site: Site, start: int, nbytes: int) -> None:
    """Raise OutOfBounds unless a range of shared memory is within one variable."""
    if nbytes and not group.batch.extents["shared"].contains(start, start, nbytes):
        whole = replace(site, element=np.dtype(np.uint8), count=nbytes, offset=0)
        faults.out_of_bounds(group, whole, np.array([[start]]), "shared")


def global_range(group: Group, site: Site, start: int, nbytes: int) -> Allocation:
    """Return the allocation that holds a range of global memory. Raises OutOfBounds."""
    found = group.batch.find(start, max(nbytes, 1))
    if found is None:
        whole = replace(site, element=np.dtype(np.uint8), count=nbytes, offset=0)
        faults.out_of_bounds(group, whole, np.array([[start]]))
    return found


def count(group: Group, site: Site, sectors: int, nbytes: int) -> None:
    """Count one request of the copy engine: the sectors of global memory that it touches, and its bytes."""
    counts = group.batch.counts["tma", site.index]
    counts[0] += 1
    counts[1] += nbytes
    counts[2] += sectors
    counts[3] += -(-nbytes // SECTOR)


def range_sectors(start: int, nbytes: int) -> int:
    """Return the sectors that a range touches."""
    return (start + nbytes - 1) // SECTOR - start // SECTOR + 1 if nbytes else 0


def reads_shared(group: Group, site: Site, start: int, nbytes: int, why: Why) -> AsyncAccess:
    """Return the read of a range of shared memory of the lane's own block. Raises MissingProxyFence."""
    address, site = pieces(start, nbytes), as_pieces(site, "load")
    reader = spread(group, address.size)
    check_fenced(reader, site, address)
    return AsyncAccess(site, reader.lanes, address, np.zeros(address.size, np.int64), why=why)


def writes_shared(
    group: Group, site: Site, home: int, start: int, nbytes: int, why: Why, action: str = "store"
) -> AsyncAccess:
    """Return the write to a range of shared memory of the block `home`."""
    address, own = pieces(start, nbytes), int(group.lanes.block[0, 0])
    writer = spread(group, address.size)
    where = None if home == own else np.full((1, 1), home, np.int64)
    number = np.zeros(address.size, np.int64)
    return AsyncAccess(as_pieces(site, action), writer.lanes, address, number, home=where, why=why)


def accesses_global(group: Group, site: Site, address: np.ndarray, width: int, action: str, why: Why) -> AsyncAccess:
    """Return the accesses of `width` bytes each to global memory."""
    element, many = {1: ("u1", 1), 2: ("u2", 1), 4: ("u4", 1), 8: ("u8", 1), 16: ("u4", 4)}[width]
    part = replace(site, space="global", element=np.dtype(element), count=many, offset=0, action=action, part=True)
    lanes = spread(group, address.size).lanes
    return AsyncAccess(part, lanes, address.reshape(1, -1), np.zeros(address.size, np.int64), why=why)


def open_group(block: int, thread: int, number: int) -> str:
    """Explain why an operation of a bulk group is in flight."""
    return "no cp.async.bulk.wait_group has covered its group"


def open_phase(block: int, thread: int, number: int) -> str:
    """Explain why an operation that completes on an mbarrier is in flight."""
    return "no wait has seen the phase of its mbarrier end"


def shared_row(group: Group, home: int) -> np.ndarray:
    """Return the shared memory of a block of the batch, uint8."""
    return group.batch.shared[home]


def barriers_at(group: Group, site: Site, address: np.ndarray) -> dict[int, int]:
    """Return the words of mbarriers, each with the parity of its current phase."""
    words = mbarrier.words_of(group, site, address).ravel().tolist()
    values = group.batch.asynchronous.values
    return {word: int(phase(values[word : word + 1])[0]) for word in words}


def issue(group: Group, operation: Operation) -> None:
    """Put an operation into flight. Raises Race and AsyncRace for accesses that conflict with it."""
    batch = group.batch
    if not operation.barriers:
        operation.group = batch.asynchronous.commits.get(int(group.lanes.linear()[0]), 0)
    if batch.check_in_flight:
        if batch.in_flight is None:
            batch.in_flight = InFlight(batch)
        for access in operation.accesses:
            if access.address.size:
                batch.in_flight.begin(access)
                operation.open.append(access)
    if batch.schedule is not None and batch.schedule.lands_early():
        operation.finish()
    else:
        batch.asynchronous.operations.append(operation)


def ended(group: Group, operation: Operation, action: str, words: Sequence[np.ndarray] | None = None) -> None:
    """Record that reads ("load") or writes of an operation have happened: other threads may use what they accessed.

    `words`: the mbarriers on which the copy of each lane completes, each (lanes,); by default all of the operation's.
    """
    batch = group.batch
    for access in [each for each in operation.open if (each.site.action == "load") == (action == "load")]:
        operation.open.remove(access)
        batch.in_flight.end(access, access)
    if action != "load" and batch.clock is not None:
        if words is None:  # a bulk group, which has none, makes its writes visible only to its own thread
            words = [np.full(group.lanes.count, word) for word in operation.barriers]
        for each in words:
            batch.clock.arrive(group.lanes, each, wide=True)


def update_of(how: str, kind: str) -> tuple[np.dtype, Update]:
    """Return the dtype and the function (old, value) -> new of a reduction, such as "add" of "f16" or "inc" of
    "u32"."""
    if kind in ("f16", "bf16"):
        return np.dtype(np.uint16), lambda old, value: half_operation(how, kind, (), old, value)
    integer = {"b32": "uint32", "b64": "uint64", "u32": "uint32", "s32": "int32", "u64": "uint64", "s64": "int64"}
    dtype = np.dtype(integer.get(kind) or {"f32": "float32", "f64": "float64"}[kind])
    if how == "add" and kind[0] == "f":
        return dtype, _sum
    return dtype, UFUNCS.get(how, increase if how == "inc" else decrease)


def _sum(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the sum of floats; NaN is the GPU's canonical one, with all bits but the sign."""
    found = old + value
    word = np.dtype(f"u{found.itemsize}")
    return np.where(np.isnan(found), word.type((1 << 8 * found.itemsize - 1) - 1), found.view(word)).view(found.dtype)
