"""Loads and stores as generated code calls them: find the memory, count the access, move the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from . import faults, races, watch
from .lanes import Selection, take
from .layout import Extents
from .memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Allocation
from .patterns import SHARED_MEASURES, Tally, load_wavefronts, local_sectors, sectors, tally
from .ptx import Location

if TYPE_CHECKING:
    from .groups import Group

_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel"})
_OPERATIONS = frozenset({"add", "inc", "dec", "min", "max", "and", "or", "xor", "cas", "exch"})
CONTAINERS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


@dataclass(frozen=True)
class Site:
    """A memory instruction.

    `element` is what one destination holds, `count` how many there are; `offset` is added to the base. `combined`: an
    atomic of shared memory that counts up by one and whose result nobody wants, of which hardware does all lanes at
    one address together. `part`: of an access that is counted as a whole, by another site.
    """

    index: int
    space: str
    action: str
    element: np.dtype
    count: int
    offset: int
    location: Location
    text: str
    ptx: str
    spin: bool = False
    combined: bool = False
    part: bool = False

    @cached_property
    def _opcode(self) -> list[str]:
        words = self.ptx.split()
        return next(word for word in words if not word.startswith("@")).rstrip(";").split(".")

    @cached_property
    def strong(self) -> bool:
        """Whether the access is volatile, or an ordered one."""
        return not _STRONG.isdisjoint(self._opcode)

    @cached_property
    def releases(self) -> bool:
        """Whether it makes what its thread has written visible, as a fence before it would."""
        return not {"release", "acq_rel"}.isdisjoint(self._opcode)

    @cached_property
    def operation(self) -> str:
        """What an atomic does: add, cas, ..."""
        return next((part for part in self._opcode if part in _OPERATIONS), "")

    @cached_property
    def past_cache(self) -> bool:
        """Whether it is a copy to shared memory that the first-level cache takes no part in."""
        return self._opcode[:3] == ["cp", "async", "cg"]

    @cached_property
    def uncounted(self) -> Site:
        """The same access as a part of one that is counted already."""
        return replace(self, part=True)

    @cached_property
    def native(self) -> bool:
        """Whether shared memory has the atomic: those of 32-bit integers, and exchanges, but no compare-and-swap."""
        whole = self._opcode[-1] in ("u32", "s32", "b32")
        return self.operation == "exch" or (whole and self.operation != "cas")

    @cached_property
    def carried_out(self) -> str:
        """How shared memory carries the access out, a key of `SHARED_MEASURES`: "load", "store", or of an atomic
        "combined" (lanes at one address together), "native", or "swapped" (a loop of compare-and-swap)."""
        if self.action != "atomic":
            return "load" if self.action == "load" else "store"
        return "combined" if self.combined else "native" if self.native else "swapped"

    @property
    def width(self) -> int:
        """Bytes per lane."""
        return self.element.itemsize * self.count

    @property
    def container(self) -> np.dtype:
        """The type that moves a lane's bytes at once."""
        return self.element if self.count == 1 else np.dtype(CONTAINERS[self.width])


def _note(group: Group, site: Site, found: Tally, address: np.ndarray, space: str, allocation: str) -> None:
    if site.part:
        return
    counts = group.batch.counts[space, site.index]
    lanes = group.lanes
    counts[0] += lanes.warps
    counts[1] += lanes.count
    counts[2] += found.achieved
    counts[3] += found.ideal
    if group.batch.trace is not None:
        group.batch.trace.note(group, site, space, address + site.offset, allocation)


def _unpack(value: np.ndarray, site: Site) -> np.ndarray:
    """(b, t) containers as (b, t, count) elements."""
    return np.ascontiguousarray(value).reshape(*value.shape, 1).view(site.element)


def _packed(value: np.ndarray | tuple[np.ndarray, ...], site: Site) -> np.ndarray:
    """The value to store as (b, t) containers."""
    if site.count == 1:
        return value
    shape = np.broadcast_shapes(*(part.shape for part in value))
    out = np.empty((*shape, site.count), site.element)
    for index, part in enumerate(value):
        out[:, :, index] = part
    return out.view(site.container)[:, :, 0]


def _allocation(group: Group, site: Site, found: Tally) -> Allocation | None:
    """The allocation that holds the whole access, if one does."""
    batch = group.batch
    recent = batch.recent.get(site.index)
    width = site.width
    if recent is not None and recent.address <= found.lowest and found.highest + width <= recent.end:
        return recent
    recent = batch.find(found.lowest, found.highest - found.lowest + width)
    if recent is not None:
        batch.recent[site.index] = recent
    return recent


def load_global(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.global: (b, t) values, or (b, t, count) for vectors."""
    found = tally(group.lanes, address, site.offset, site.width, sectors)
    if found.misaligned:
        faults.misaligned(group, site, address)
    allocation = _allocation(group, site, found)
    if allocation is None:
        return _load_scattered(group, site, address, found)
    _note(group, site, found, address, "global", allocation.name)
    watch.load(group, site, allocation, address)
    container = site.container
    index = (address + (site.offset - allocation.address)) >> (container.itemsize.bit_length() - 1)
    value = allocation.view(container).take(index)
    return value if site.count == 1 else _unpack(value, site)


def _load_scattered(group: Group, site: Site, address: np.ndarray, found: Tally) -> np.ndarray:
    """A load whose lanes read several allocations."""
    parts = _parts(group, site, address)
    _note(group, site, found, address, "global", "several")
    value = np.empty(address.shape, site.container)
    for allocation, where, index in parts:
        part, selection = _part(group, where)
        watch.load(part, site, allocation, take(address, selection, group.lanes.shape))
        value[where] = allocation.view(site.container)[index]
    return value if site.count == 1 else _unpack(value, site)


def _parts(group: Group, site: Site, address: np.ndarray) -> list[tuple[Allocation, np.ndarray, np.ndarray]]:
    """(allocation, lanes as a mask, their element indices) of an access.

    Raises OutOfBounds where a lane is in none.
    """
    full = address + site.offset
    left = np.ones(full.shape, np.bool_)
    parts = []
    while left.any():
        allocation = group.batch.find(int(full[left][0]), site.width)
        if allocation is None:
            faults.out_of_bounds(group, site, address)
        where = left & (full >= allocation.address) & (full <= allocation.end - site.width)
        parts.append((allocation, where, (full[where] - allocation.address) // site.width))
        left &= ~where
    return parts


def store_global(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.global. Where lanes store to one address the last lane wins."""
    found = tally(group.lanes, address, site.offset, site.width, sectors)
    if found.misaligned:
        faults.misaligned(group, site, address)
    value = _packed(value, site)
    allocation = _allocation(group, site, found)
    shape = np.broadcast_shapes(address.shape, value.shape)
    if allocation is None:
        parts = _parts(group, site, np.broadcast_to(address, shape))
        _note(group, site, found, address, "global", "several")
        value = np.broadcast_to(value, shape)
        for one, where, index in parts:
            part, selection = _part(group, where)
            here = take(address, selection, group.lanes.shape)
            watch.store(part, site, one, here, value[where].reshape(1, -1), index.reshape(1, -1))
        return
    _note(group, site, found, address, "global", allocation.name)
    index = (address + (site.offset - allocation.address)) >> (site.container.itemsize.bit_length() - 1)
    if index.shape != shape:
        index = np.broadcast_to(index, shape)
    watch.store(group, site, allocation, address, value, index)


def load_const(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.const: as a global load, counted apart; `sectors` are not what the constant cache works in, and stay 0."""
    full = np.broadcast_to(address, address.shape) + site.offset
    if site.width > 1 and (full & (site.width - 1)).any():
        faults.misaligned(group, site, address)
    found = Tally(0, 0, int(full.min()), int(full.max()), False)
    allocation = _allocation(group, site, found)
    if allocation is None:
        faults.out_of_bounds(group, site, address)
    _note(group, site, found, address, "constant", allocation.name)
    index = (full - allocation.address) >> (site.container.itemsize.bit_length() - 1)
    value = allocation.view(site.container).take(index)
    return value if site.count == 1 else _unpack(value, site)


def check_shared(group: Group, site: Site, address: np.ndarray) -> Tally:
    """What a shared access costs. Raises OutOfBounds and Misaligned."""
    found = tally(group.lanes, address, site.offset, site.width, SHARED_MEASURES[site.carried_out])
    extents = group.batch.extents["shared"]
    if not extents.hold(found.lowest, found.highest, site.width):
        _within(extents, group, site, address, "shared")
    if found.misaligned:
        faults.misaligned(group, site, address)
    return found


def _within(extents: Extents, group: Group, site: Site, address: np.ndarray, space: str) -> None:
    """Raise OutOfBounds unless every lane's access is within a variable of its own."""
    full = np.broadcast_to(address, group.lanes.shape) + site.offset
    if extents.outside(full, site.width).any():
        faults.out_of_bounds(group, site, address, space)


def _shared_index(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Element indices into the batch's flat shared memory, after checking and counting."""
    _note(group, site, check_shared(group, site, address), address, "shared", "shared")
    return _shared_place(group, site, address)


def _shared_place(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    batch = group.batch
    shift = site.container.itemsize.bit_length() - 1
    start = group.lanes.block * (batch.shared.shape[1] >> shift) if batch.shared.shape[0] > 1 else 0
    return ((address + site.offset) >> shift) + start


def load_shared(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.shared: uniform over the threads of a block where the address is."""
    index = _shared_index(group, site, address)
    if group.batch.shadow is not None:
        watch.ordered(group, site)
        group.batch.shadow.read(group, site, address)
    value = group.batch.shared_view(site.container).take(index)
    return value if site.count == 1 else _unpack(value, site)


def store_shared(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.shared. Where lanes of a block store to one address the last lane wins."""
    value = _packed(value, site)
    _put(group, site, address, value, _shared_index(group, site, address))


def put_shared(group: Group, site: Site, address: np.ndarray, value: np.ndarray) -> None:
    """Containers to shared addresses that are checked already: not counted."""
    _put(group, site, address, value, _shared_place(group, site, address))


def _put(group: Group, site: Site, address: np.ndarray, value: np.ndarray, index: np.ndarray) -> None:
    shape = np.broadcast_shapes(index.shape, value.shape)
    if index.shape != shape:
        index = np.broadcast_to(index, shape)
    data, shadow = group.batch.shared_view(site.container), group.batch.shadow
    if shadow is None:
        data[index] = value
        return
    watch.ordered(group, site)
    lost = shadow.write(group, site, address, lambda: watch.differ(data, index, value))
    data[index] = value
    if lost.any():
        lost = lost & watch.differ(data, index, value)
        if lost.any():
            races.clash(group, site, address, lost, "shared", None)


def load_local(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.local: from the lane's own memory."""
    index = _local_index(group, site, address)
    written = group.batch.local_written
    if written is not None:
        missing = written.reshape(-1).view(site.container)[index] == 0
        if missing.any():
            races.uninitialised(group, site, address, missing, "local")
    value = group.batch.local_view(site.container)[index]
    return value if site.count == 1 else _unpack(value, site)


def store_local(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st.local: to the lane's own memory."""
    index = _local_index(group, site, address)
    group.batch.local_view(site.container)[index] = np.broadcast_to(_packed(value, site), index.shape)
    written = group.batch.local_written
    if written is not None:
        ones = written.reshape(-1).view(site.container)
        ones[index] = np.frombuffer(b"\1" * site.width, site.container)[0]


def _local_index(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """Element indices of every lane.

    Local memory is interleaved on a GPU: 4-byte words of a warp's lanes are neighbours, and an access of several words
    is as many requests.
    """
    batch, lanes = group.batch, group.lanes
    full = np.broadcast_to(address, lanes.shape) + site.offset
    if not batch.extents["local"].hold(int(full.min()), int(full.max()), site.width):
        _within(batch.extents["local"], group, site, address, "local")
    if (full & (site.width - 1)).any():
        faults.misaligned(group, site, address)
    _note(group, site, tally(lanes, address, site.offset, site.width, local_sectors), address, "local", "local")
    if not site.part:
        batch.counts["local", site.index][0] += lanes.warps * (max(site.width // 4, 1) - 1)
    shift = site.container.itemsize.bit_length() - 1
    lane = lanes.block * lanes.threads + lanes.thread
    return (full >> shift) + lane * (batch.local.shape[1] >> shift)


def load_param(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld.param at an address that is computed: as `load_const`, from the parameters of the kernel."""
    full = address + site.offset
    if (full & (site.width - 1)).any():
        faults.misaligned(group, site, address)
    _within(group.batch.extents["param"], group, site, address, "param")
    found = Tally(0, 0, int(full.min()), int(full.max()), False)
    _note(group, site, found, address, "constant", "parameters")
    memory = group.batch.parameter_memory
    whole = memory[: memory.size // site.width * site.width].view(site.container)
    value = whole.take(full >> (site.width.bit_length() - 1))
    return value if site.count == 1 else _unpack(value, site)


def store_param(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """A store to a parameter of the kernel, which no pointer may change. Raises OutOfBounds."""
    faults.read_only(group, site, address)


SPACES = tuple(
    (name, start, start + WINDOW)
    for name, start in (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW))
)


def count_load(group: Group, site: Site, address: np.ndarray) -> None:
    """Count a load that the compiler has made wider than the source asks for. What the source asks for is loaded, and
    checked, by sites of its own; the rest may lie where nothing is. Raises Misaligned."""
    spaces = _by_space(group, address, site.offset) if not site.space else [(site.space, 0, None)]
    for space, window, where in spaces:
        part, here = group, address - window
        if len(spaces) > 1:
            part, selection = _part(group, where)
            here = take(address, selection, group.lanes.shape) - window
        if space in ("const", "param"):
            _note(part, site, Tally(0, 0, 0, 0, False), here, "constant", space)
            continue
        measure = {"global": sectors, "shared": load_wavefronts, "local": local_sectors}[space]
        if space == "local":
            here = np.broadcast_to(here, part.lanes.shape)
            part.batch.counts["local", site.index][0] += part.lanes.warps * (max(site.width // 4, 1) - 1)
        found = tally(part.lanes, here, site.offset, site.width, measure)
        if found.misaligned:
            faults.misaligned(part, site, here)
        near = part.batch.find(found.lowest, 1) if space == "global" else None
        _note(part, site, found, here, space, near.name if near else space)


def _by_space(group: Group, address: np.ndarray, offset: int) -> list[tuple[str, int, np.ndarray]]:
    """(space, window, where) of a generic access: one entry if all lanes are in one space, else one for each."""
    full = address + offset
    left = np.ones(full.shape, np.bool_)
    out = []
    for name, start, end in SPACES:
        where = (full >= start) & (full < end)
        if where.any():
            out.append((name, start, where))
            left &= ~where
    if left.any():
        out.append(("global", 0, left))
    return out


def _part(group: Group, where: np.ndarray) -> tuple[Group, Selection]:
    """The lanes where `where` holds, as a group of their own for one access."""
    flat = np.flatnonzero(np.broadcast_to(where, group.lanes.shape))
    selection = Selection(columns=flat) if group.lanes.ragged else Selection(flat=flat)
    return type(group)(group.batch, selection.lanes(group.lanes), {}), selection


LOADS = {"global": load_global, "shared": load_shared, "local": load_local, "param": load_param}
STORES = {"global": store_global, "shared": store_shared, "local": store_local, "param": store_param}


def load_(group: Group, site: Site, address: np.ndarray) -> np.ndarray:
    """ld with a generic address. Lanes in different memories are served, and counted, one memory after the other."""
    spaces = _by_space(group, address, site.offset)
    if len(spaces) == 1:
        name, window, _ = spaces[0]
        return LOADS[name](group, site, address - window)
    shape = group.lanes.shape
    out = np.empty((*shape, site.count) if site.count > 1 else shape, site.element)
    flat = out.reshape(shape[0] * shape[1], *out.shape[2:])
    for name, window, where in spaces:
        part, selection = _part(group, where)
        value = LOADS[name](part, site, take(address, selection, shape) - window)
        flat[selection.flatten(shape)] = np.broadcast_to(value, (*part.lanes.shape, *value.shape[2:]))[0]
    return out


def store_(group: Group, site: Site, address: np.ndarray, value: np.ndarray | tuple) -> None:
    """st with a generic address; see `load_`."""
    spaces = _by_space(group, address, site.offset)
    if len(spaces) == 1:
        name, window, _ = spaces[0]
        STORES[name](group, site, address - window, value)
        return
    shape = group.lanes.shape
    for name, window, where in spaces:
        part, selection = _part(group, where)
        values = value if isinstance(value, tuple) else (value,)
        cut = tuple(take(each, selection, shape) for each in values)
        place = take(address, selection, shape) - window
        STORES[name](part, site, place, cut if isinstance(value, tuple) else cut[0])


RUNTIME = {
    function.__name__: function
    for function in (
        load_global, store_global, load_const, load_shared, store_shared, load_local, store_local, load_param,
        load_, store_, count_load,
    )
}  # fmt: skip
