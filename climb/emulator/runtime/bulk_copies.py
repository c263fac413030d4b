"""cp.async.bulk and cp.reduce.async.bulk: one thread copies a contiguous range in the background.

PTX ISA, section "Data Movement and Conversion Instructions: Non-tensor copy". Copies to shared memory complete on an
mbarrier; copies to global memory belong to a bulk group of the thread that issues them.
"""

from __future__ import annotations

import numpy as np

from ..simt.asynchronous import Operation
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.site import Site
from . import bulk, joint_copies, mbarrier
from .cluster_addresses import map_to_rank, resolve
from .global_effects import read_global, write_global


def _aligned(group: Group, site: Site, nbytes: int, **addresses: int) -> None:
    if nbytes % bulk.PIECE:
        bulk.fail(group, site, f"a bulk copy of {nbytes} bytes; the size must be a multiple of 16")
    for what, address in addresses.items():
        bulk.check_alignment(group, site, address, bulk.PIECE, f"the {what} of a bulk copy")


def targets(group: Group, site: Site, address: np.ndarray, mask: int | None) -> list[tuple[int, int]]:
    """Return the blocks to which a copy goes and the address in them: one, or with `mask` those of its ranks."""
    home, local = resolve(group, site, address)
    home, local = int(home[0, 0]), int(local[0, 0])
    if mask is None:
        return [(home, local)]
    size = group.batch.order.size
    if not mask or mask >> size:
        bulk.fail(group, site, f"the multicast mask {mask:#x} in a cluster of {size} block{'s' * (size > 1)}")
    first = home - home % size
    return [(first + rank, local) for rank in range(size) if mask >> rank & 1]


def barrier_words(group: Group, site: Site, address: np.ndarray, homes: list[int], mask: int | None) -> dict[int, int]:
    """Return the mbarriers on which a copy completes, with their phases: one, or at one address in each of `homes`."""
    if mask is None:
        return bulk.barriers_at(group, site, address)
    out: dict[int, int] = {}
    for home in homes:
        rank = np.array(home % group.batch.order.size)
        out.update(bulk.barriers_at(group, site, map_to_rank(group, site, address, rank, False)))
    return out


def to_shared(
    group: Group,
    load: Site,
    store: Site,
    barrier: Site,
    target: np.ndarray,
    source: np.ndarray,
    nbytes: np.ndarray,
    mbar: np.ndarray,
    mask: np.ndarray | None,
) -> None:
    """cp.async.bulk from global to shared memory, of this block, of another one, or (`mask`) of several."""
    if joint_copies.issue(group, load, store, barrier, target, source, nbytes, mbar, mask):
        return
    for lane, (to, start, size, word, ranks) in bulk.each_lane(group, target, source, nbytes, mbar, mask):
        start += load.offset
        places = targets(lane, store, np.array([[to]]), ranks)
        _aligned(lane, load, size, source=start, target=places[0][1])
        held = bulk.global_range(lane, load, start, size)
        for _, local in places:
            bulk.check_shared_range(lane, store, local, size)
        words = barrier_words(lane, barrier, np.array([[word]]), [home for home, _ in places], ranks)
        bulk.count(lane, load, bulk.range_sectors(start, size), size)
        read_global(lane, load, held, bulk.pieces(start, size))
        accesses = (
            bulk.accesses_global(lane, load, bulk.pieces(start, size), bulk.PIECE, "load", bulk.open_phase),
            *(bulk.writes_shared(lane, store, home, local, size, bulk.open_phase) for home, local in places),
        )

        def fetch(operation: Operation, lane=lane, held=held, start=start, size=size) -> None:
            operation.data = held.data[start - held.address :][:size].copy()
            bulk.ended(lane, operation, "load")

        def deliver(operation: Operation, lane=lane, places=places, size=size) -> None:
            for home, local in places:
                bulk.shared_row(lane, home)[local : local + size] = operation.data
            bulk.ended(lane, operation, "store")
            for each, issued in operation.barriers.items():
                mbarrier.complete(lane, load, each, size, issued)

        bulk.issue(lane, Operation(load, lane.lanes, fetch, deliver, words, accesses=accesses))


def between_shared(
    group: Group,
    load: Site,
    store: Site,
    barrier: Site,
    target: np.ndarray,
    source: np.ndarray,
    nbytes: np.ndarray,
    mbar: np.ndarray,
    reduction: tuple[str, str] | None,
) -> None:
    """cp.async.bulk and cp.reduce.async.bulk from shared memory of this block to shared memory of the cluster."""
    for lane, (to, start, size, word) in bulk.each_lane(group, target, source, nbytes, mbar):
        start = bulk.own_start(lane, load, start)
        ((home, local),) = targets(lane, store, np.array([[to]]), None)
        _aligned(lane, load, size, source=start, target=local)
        bulk.check_shared_range(lane, load, start, size)
        bulk.check_shared_range(lane, store, local, size)
        words = bulk.barriers_at(lane, barrier, np.array([[word]]))
        action = "store" if reduction is None else "atomic"
        accesses = (
            bulk.reads_shared(lane, load, start, size, bulk.open_phase),
            bulk.writes_shared(lane, store, home, local, size, bulk.open_phase, action),
        )

        def fetch(operation: Operation, lane=lane, start=start, size=size) -> None:
            row = bulk.shared_row(lane, int(lane.lanes.block[0, 0]))
            operation.data = row[start : start + size].copy()
            bulk.ended(lane, operation, "load")

        def deliver(operation: Operation, lane=lane, home=home, local=local, size=size) -> None:
            _combine(bulk.shared_row(lane, home)[local : local + size], operation.data, reduction)
            bulk.ended(lane, operation, "store")
            for each, issued in operation.barriers.items():
                mbarrier.complete(lane, load, each, size, issued)

        bulk.issue(lane, Operation(load, lane.lanes, fetch, deliver, words, accesses=accesses))


def to_global(
    group: Group,
    load: Site,
    store: Site,
    target: np.ndarray,
    source: np.ndarray,
    nbytes: np.ndarray,
    reduction: tuple[str, str] | None,
) -> None:
    """cp.async.bulk and cp.reduce.async.bulk from shared to global memory."""
    for lane, (to, start, size) in bulk.each_lane(group, target, source, nbytes):
        start, to = bulk.own_start(lane, load, start), to + store.offset
        _aligned(lane, store, size, source=start, target=to)
        bulk.check_shared_range(lane, load, start, size)
        held = bulk.global_range(lane, store, to, size)
        bulk.count(lane, store, bulk.range_sectors(to, size), size)
        action = "store" if reduction is None else "atomic"
        accesses = (
            bulk.reads_shared(lane, load, start, size, bulk.open_group),
            bulk.accesses_global(lane, store, bulk.pieces(to, size), bulk.PIECE, action, bulk.open_group),
        )

        def fetch(operation: Operation, lane=lane, start=start, size=size) -> None:
            row = bulk.shared_row(lane, int(lane.lanes.block[0, 0]))
            operation.data = row[start : start + size].copy()
            bulk.ended(lane, operation, "load")

        def deliver(operation: Operation, lane=lane, held=held, to=to, size=size) -> None:
            write_global(lane, store, held, bulk.pieces(to, size), reduction is not None)
            _combine(held.data[to - held.address :][:size], operation.data, reduction)
            bulk.ended(lane, operation, "store")

        bulk.issue(lane, Operation(store, lane.lanes, fetch, deliver, accesses=accesses))


def _combine(row: np.ndarray, data: np.ndarray, reduction: tuple[str, str] | None) -> None:
    """Write bytes to `row`, or reduce them into it."""
    if reduction is None:
        row[:] = data
        return
    dtype, update = bulk.update_of(*reduction)
    old = row.view(dtype)
    old[:] = update(old, data.view(dtype))


def prefetch(group: Group, load: Site, source: np.ndarray, nbytes: np.ndarray) -> None:
    """cp.async.bulk.prefetch: check the range; a prefetch changes no value."""
    for lane, (start, size) in bulk.each_lane(group, source, nbytes):
        _aligned(lane, load, size, source=start + load.offset)
        bulk.global_range(lane, load, start + load.offset, size)


def commit(group: Group) -> None:
    """cp.async.bulk.commit_group: close the open bulk group of each thread."""
    group.batch.asynchronous.commit(group.lanes.linear().tolist())


def wait(group: Group, number: int, reads_only: bool) -> None:
    """cp.async.bulk.wait_group: wait for all but the latest `number` bulk groups of each thread; with .read, only until
    their sources have been read."""
    state = group.batch.asynchronous
    if state.operations:
        state.wait(group.lanes.linear().tolist(), number, reads_only)


def check_left(batch: Batch) -> None:
    """When all blocks of a batch have ended, carry out the operations in flight to global memory.

    Raises AsyncMisuse for an operation that still accesses the shared memory of a block that has left.
    """
    state = batch.asynchronous
    for operation in state.operations:
        lane = next(bulk.each_lane(Group(batch, operation.lane, {})))[0]
        if operation.writes_shared:
            bulk.fail(lane, operation.site, "this copy to shared memory is still in flight when its block leaves the "
                      "kernel: nothing has waited for its mbarrier")  # fmt: skip
        if not operation.fetched:
            bulk.fail(lane, operation.site, "this copy still reads shared memory when its block leaves the kernel: "
                      "cp.async.bulk.wait_group.read is missing")  # fmt: skip
    while state.operations:
        state.operations.pop(0).finish()


RUNTIME = {
    "bulk_to_shared": to_shared, "bulk_between_shared": between_shared, "bulk_to_global": to_global,
    "bulk_prefetch": prefetch, "bulk_commit": commit, "bulk_wait": wait,
}  # fmt: skip
