"""Atomic operations: lanes execute them one after the other, in ascending order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..checks import faults, hooks
from ..counters.access_cost import access_cost
from ..counters.cost_model import atomic_sectors, distinct
from ..isa.half import half_operation, high_half, join_halves, low_half
from ..memory.device_memory import Allocation
from ..memory.footprint import Update
from ..simt.groups import Group
from ..simt.lanes import take
from ..simt.site import Site
from .accesses import count_access, find_allocation, subgroup
from .cluster_addresses import own_address
from .shared_memory import shared_index

#: (old, value, other) -> new, elementwise. `other` is the new value of a compare-and-swap, whose `value` is compared.
Step = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]
UFUNCS = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
MANY = 64  # with more lanes at one address, all operations at that address are executed together
FEW_SWAPS = 4  # the same for compare-and-swap, where most attempts fail when many lanes contend


def _halves(operation: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """add.f16 and the like: (old, value) -> new as bits, each half separately."""
    name, kind = operation.split(".")
    if not kind.endswith("x2"):
        return lambda old, value: half_operation(name, kind, (), old, value)
    kind = kind.removesuffix("x2")

    def both(old: np.ndarray, value: np.ndarray) -> np.ndarray:
        parts = [half_operation(name, kind, (), side(old), side(value)) for side in (low_half, high_half)]
        return join_halves(*parts)

    return both


def increase(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where(old >= value, old.dtype.type(0), old + old.dtype.type(1))


def decrease(old: np.ndarray, value: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > value), value, old - old.dtype.type(1))


def _step(operation: str | Step) -> Step:
    """Return the function that an operation applies to one value in memory."""
    if callable(operation):
        return operation
    if operation in UFUNCS:
        return lambda old, value, other: UFUNCS[operation](old, value)
    if "." in operation:
        halves = _halves(operation)
        return lambda old, value, other: halves(old, value)
    if operation == "exch":
        return lambda old, value, other: value

    if operation == "cas":
        return lambda old, value, other: np.where(old == value, other, old)
    return lambda old, value, other: (increase if operation == "inc" else decrease)(old, value)


def apply(
    memory: np.ndarray,
    index: np.ndarray,
    operation: str | Step,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """Apply the operation at `memory[index]` (1-D each) in order; return the old values if `returns`, else None."""
    old = _apply(memory, index, operation, value, other, returns)
    if memory.dtype.kind == "f" and operation == "add":
        sums = memory[index]
        nan = np.isnan(sums)
        if nan.any():  # the GPU's canonical NaN has all bits but the sign
            bits = memory.view(f"u{memory.itemsize}")
            bits[index[nan]] = (1 << 8 * memory.itemsize - 1) - 1
    return old


def _apply(
    memory: np.ndarray,
    index: np.ndarray,
    operation: str | Step,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    if not returns and operation in UFUNCS:
        UFUNCS[operation].at(memory, index, value)
        return None
    step = _step(operation)
    order = np.argsort(index, kind="stable")
    place = index[order]
    starts = np.flatnonzero(np.concatenate(([True], place[1:] != place[:-1])))
    counts = np.diff(np.append(starts, place.size))
    old = np.empty(index.size, memory.dtype)
    heavy = counts > (FEW_SWAPS if operation == "cas" else MANY)
    for start, count in zip(starts[heavy].tolist(), counts[heavy].tolist(), strict=True):
        _apply_at_one_address(memory, int(place[start]), order[start : start + count], operation, value, other, old)
    rank = np.arange(place.size) - np.repeat(starts, counts)
    light = np.repeat(~heavy, counts)
    for turn in range(int(counts[~heavy].max(initial=0))):
        mine = order[light & (rank == turn)]
        at = index[mine]
        before = memory[at]
        old[mine] = before
        memory[at] = step(before, value[mine], None if other is None else other[mine])
    return old


def _apply_at_one_address(
    memory: np.ndarray,
    at: int,
    lanes: np.ndarray,
    operation: str | Step,
    value: np.ndarray,
    other: np.ndarray | None,
    old: np.ndarray,
) -> None:
    """Execute all operations at one address, one after the other."""
    values = value[lanes]
    if operation == "cas":
        _swap_at_one_address(memory, at, lanes, values, other[lanes], old)
        return
    if operation in UFUNCS:
        chain = UFUNCS[operation].accumulate(np.concatenate((memory[at : at + 1], values)), dtype=memory.dtype)
    elif operation == "exch":
        chain = np.concatenate((memory[at : at + 1], values))
    else:
        step, current, chain = _step(operation), memory[at : at + 1].copy(), [memory[at]]
        for k in range(values.size):
            current = step(current, values[k : k + 1], None if other is None else other[lanes[k : k + 1]])
            chain.append(current[0])
        chain = np.array(chain, memory.dtype)
    old[lanes] = chain[:-1]
    memory[at] = chain[-1]


def _swap_at_one_address(
    memory: np.ndarray, at: int, lanes: np.ndarray, compared: np.ndarray, new: np.ndarray, old: np.ndarray
) -> None:
    """Execute all compare-and-swaps at one address, one after the other: each turn goes to the next that succeeds."""
    start = 0
    while start < lanes.size:
        hits = np.flatnonzero(compared[start:] == memory[at])
        end = start + int(hits[0]) + 1 if hits.size else lanes.size
        old[lanes[start:end]] = memory[at]
        if hits.size:
            memory[at] = new[end - 1]
        start = end


def apply_by_lane(
    group: Group,
    site: Site,
    memory: np.ndarray,
    index: np.ndarray,
    operation: str | Step,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
    allocation: Allocation | None = None,
) -> np.ndarray | None:
    """Call `apply` with an array for each lane. `allocation`: the global memory whose contents are `memory`."""
    shape = group.lanes.shape

    def flat(each: np.ndarray) -> np.ndarray:
        return np.broadcast_to(each, shape).reshape(-1)

    where, batch = flat(index), group.batch
    if allocation is not None and batch.footprint is not None:
        update = Update(
            allocation.address, memory.dtype, where, operation, flat(value), None if other is None else flat(other)
        )
        if not batch.footprint.atomic(allocation, update):
            return None
    before = memory[where] if batch.watching else None
    old = apply(memory, where, operation, flat(value), None if other is None else flat(other), returns)
    if before is not None:
        batch.journal.read(site.ptx, memory, where)
        if before.tobytes() != memory[where].tobytes():
            batch.note_change(memory, where, before)
    return None if old is None else old.reshape(shape)


def atomic_global(
    group: Group,
    site: Site,
    operation: str,
    address: np.ndarray,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """atom.global and red.global."""
    cost = access_cost(group.lanes, address, site.offset, site.width, atomic_sectors)
    if cost.misaligned:
        faults.misaligned(group, site, address)
    allocation = find_allocation(group, site, cost)
    if allocation is None:
        return _atomic_scattered(group, site, operation, address, value, other, returns)
    count_access(group, site, cost, address, "global", allocation.name)
    _contention(group, site, address, "global")
    hooks.atomic(group, site, allocation, address)
    index = (address + (site.offset - allocation.address)) >> (site.width.bit_length() - 1)
    memory = allocation.view(site.element)
    return apply_by_lane(group, site, memory, index, operation, value, other, returns, allocation)


def _atomic_scattered(
    group: Group,
    site: Site,
    operation: str,
    address: np.ndarray,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """Execute an atomic whose lanes reach several allocations, for one allocation after the other."""
    shape = group.lanes.shape
    full = np.broadcast_to(address, shape) + site.offset
    left, out = np.ones(shape, np.bool_), np.empty(shape, site.element)
    while left.any():
        allocation = group.batch.find(int(full[left][0]), site.width)
        if allocation is None:
            faults.out_of_bounds(group, site, address)
        where = left & (full >= allocation.address) & (full <= allocation.end - site.width)
        part, selection = subgroup(group, where)
        cut = [take(each, selection, shape) if each is not None else None for each in (address, value, other)]
        result = atomic_global(part, site, operation, *cut, returns)
        if returns:
            out[where] = result[0]
        left &= ~where
    return out if returns else None


def atomic_shared(
    group: Group,
    site: Site,
    operation: str,
    address: np.ndarray,
    value: np.ndarray,
    other: np.ndarray | None,
    returns: bool,
) -> np.ndarray | None:
    """atom.shared and red.shared."""
    address = own_address(group, site, address)
    index = shared_index(group, site, address)
    _contention(group, site, address, "shared")
    if group.batch.shared_shadow is not None:
        hooks.ordered(group, site)
        group.batch.shared_shadow.atomic(group, site, address)
    return apply_by_lane(group, site, group.batch.shared_view(site.element), index, operation, value, other, returns)


def _contention(group: Group, site: Site, address: np.ndarray, space: str) -> None:
    """Count the lanes that share their address with an earlier lane of their warp."""
    addresses = access_cost(group.lanes, address, site.offset, site.width, distinct).achieved
    group.batch.counts[space, site.index][4] += group.lanes.count - addresses


def atomic_vector(
    group: Group, site: Site, address: np.ndarray, values: tuple[np.ndarray, ...], returns: bool
) -> list[np.ndarray] | None:
    """atom.global.add.v2.f32 and v4: one access whose elements are added separately. Returns the old values."""
    cost = access_cost(group.lanes, address, site.offset, site.width, atomic_sectors)
    if cost.misaligned:
        faults.misaligned(group, site, address)
    allocation = find_allocation(group, site, cost)
    if allocation is None:
        faults.out_of_bounds(group, site, address)
    count_access(group, site, cost, address, "global", allocation.name)
    _contention(group, site, address, "global")
    hooks.atomic(group, site, allocation, address)
    size = site.element.itemsize
    index = (address + (site.offset - allocation.address)) >> (size.bit_length() - 1)
    memory = allocation.view(site.element)
    return [
        apply_by_lane(group, site, memory, index + number, "add", value, None, returns, allocation)
        for number, value in enumerate(values)
    ]


RUNTIME = {
    "atomic_global": atomic_global, "atomic_shared": atomic_shared, "atomic_vector": atomic_vector,
}  # fmt: skip
