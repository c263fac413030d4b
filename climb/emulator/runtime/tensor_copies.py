"""cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: one thread copies a box of a tensor in the background.

PTX ISA, sections "Tensors" and "Data Movement and Conversion Instructions: Tensor copy". In shared memory the elements
of the box touch, the innermost dimension first. If the tensor map has a swizzle, the 16-byte chunk of each element is
exclusive-ored with address bits above it, as `swizzled` describes. Elements outside the tensor are read as zero (or
NaN) and are not written.
"""

from __future__ import annotations

import functools

import numpy as np

from ..counters.cost_model import SECTOR
from ..errors import OutOfBounds
from ..memory.device_memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW, Allocation
from ..memory.tensor_map import NBYTES, ROUNDED, TensorMap, TensorMapError, check, decode
from ..simt.asynchronous import Operation
from ..simt.groups import Group
from ..simt.site import Site
from . import bulk, mbarrier
from .bulk_copies import barrier_words, targets
from .global_effects import read_global, write_global
from .tensor_boxes import Box, bounding_box, box_at, pixels_at, swizzled
from .tensor_rounding import rounded

#: The 16 bits, repeated, that fill elements outside a tensor of floats with NaN, as written by an H200.
_NAN = 0x7FF7
#: The PTX type of a reduction on elements of each type.
_KINDS = {
    "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64", "float16": "f16", "bfloat16": "bf16",
    "float32": "f32", "float64": "f64",
}  # fmt: skip
#: The types that each reduction takes. PTX ISA, cp.reduce.async.bulk.tensor.
_REDUCES = {
    "add": ("u32", "s32", "u64", "f32", "f16", "bf16"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"), "inc": ("u32",), "dec": ("u32",),
    "and": ("u32", "s32", "u64"), "or": ("u32", "s32", "u64"), "xor": ("u32", "s32", "u64"),  # s64 stops an H200
}  # fmt: skip


#: The start of a box in its rows must be a multiple of this many bytes. The PTX ISA does not say so, but an H200 stops
#: with an illegal instruction otherwise. Triton's tutorial of TMA in Gluon (04-tma.py) names the rule.
ROW_START = 16


def _tensor(group: Group, site: Site, address: int) -> TensorMap:
    """Return the tensor map at a generic address. Raises OutOfBounds, Misaligned, AsyncMisuse."""
    batch = group.batch
    bulk.check_alignment(group, site, address, 64, "a tensor map")
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW:
        start = address - PARAM_WINDOW
        if not batch.extents["param"].contains(start, start, NBYTES):
            bulk.fail(group, site, "the tensor map is not within one parameter of the kernel")
        data = batch.parameter_memory[start : start + NBYTES]
    elif SHARED_WINDOW <= address < LOCAL_WINDOW + WINDOW:
        space = "shared" if address < LOCAL_WINDOW else "local"
        what = f"the tensor map is in {space} memory; pass it as a const __grid_constant__ parameter"
        bulk.fail(group, site, what)
    else:
        held = bulk.global_range(group, site, address, NBYTES)
        data = held.data[address - held.address : address - held.address + NBYTES]
    found = _usable(data.tobytes())
    if isinstance(found, str):
        bulk.fail(group, site, found)
    return found


@functools.lru_cache(maxsize=1024)
def _usable(data: bytes) -> TensorMap | str:
    """Return the tensor map in 128 bytes, or the reason why no copy can use it."""
    found = decode(data)
    if found is None:
        return "these 128 bytes are no tensor map, or a store has changed them; make it on the host"
    try:  # the host makes no tensor map that breaks a rule, but threads can replace its fields
        check(found)
    except TensorMapError as error:
        return f"the tensor map breaks a rule: {error}"
    return found


def _place(
    group: Group, site: Site, tensor: TensorMap, coordinates: list[int], offsets: list[int] | None, local: int
) -> Box:
    """Return the box of a copy, checked against the tensor map, the allocation, and shared memory at `local`.

    `offsets` move the pixels of a copy in im2col mode; None in tile mode.
    """
    _check_mode(group, site, tensor, offsets)
    if len(coordinates) != tensor.rank:
        what = f"a copy with {len(coordinates)} coordinates, but the tensor map has {tensor.rank} dimensions"
        bulk.fail(group, site, what)
    bulk.check_alignment(group, site, local, 128, "the box in shared memory")
    bulk.check_shared_range(group, site, local, tensor.shared_bytes)
    start = coordinates[0] * tensor.itemsize
    if start % ROW_START:
        what = f"the box starts {start} bytes from the beginning of a row (coordinate {coordinates[0]}); "
        bulk.fail(group, site, what + f"that must be a multiple of {ROW_START}, or a GPU stops: illegal instruction")
    if offsets is None:
        return box_at(tensor, tuple(coordinates))
    for name, at, (low, end) in zip("WHD", coordinates[1:], bounding_box(tensor), strict=False):
        if not low <= at < end:
            what = f"the first pixel has {name} {at}, outside the bounding box, which has {low} to {end - 1}"
            bulk.fail(group, site, what)
    return pixels_at(tensor, tuple(coordinates), tuple(offsets))


def _check_mode(group: Group, site: Site, tensor: TensorMap, offsets: list[int] | None) -> None:
    if (offsets is None) != (tensor.im2col is None):
        here, there = ("tile", "im2col") if offsets is None else ("im2col", "tile")
        bulk.fail(group, site, f"a copy in {here} mode, with a tensor map made for {there} mode")
    if offsets is not None and len(offsets) != tensor.rank - 2:
        what = f"a copy with {len(offsets)} im2col offsets, but the tensor map has {tensor.rank} dimensions"
        bulk.fail(group, site, what)


def _allocation(group: Group, site: Site, tensor: TensorMap, box: Box) -> Allocation | None:
    """Return the allocation that holds the elements of a box; None if all are outside the tensor. Raises
    OutOfBounds."""
    if not box.address.size:
        return None
    first, last = int(box.address.min()), int(box.address.max())
    found = group.batch.find(first, last - first + tensor.itemsize)
    if found is not None:
        return found
    nearest = group.batch.find(tensor.address, 1)
    name = f"{nearest.name} ({nearest.nbytes} bytes)" if nearest is not None else "no array"
    raise OutOfBounds(
        f"out of bounds: the tensor map names elements at {first:#x} to {last + tensor.itemsize - 1:#x} as part of the "
        f"tensor {'x'.join(map(str, reversed(tensor.dims)))}, which starts in {name}",
        bulk.faults.place_of(group, site, np.ones((1, 1), np.bool_)),
        address=last,
        allocation=nearest,
        distance=None,
    )


def _count(group: Group, site: Site, tensor: TensorMap, box: Box) -> None:
    sectors = np.unique(box.address // SECTOR).size
    bulk.count(group, site, sectors, box.address.size * tensor.itemsize)


def _gather(tensor: TensorMap, box: Box, held: Allocation | None) -> np.ndarray:
    """Return the elements of a box, in their order in shared memory: unsigned integers (n,)."""
    dtype = np.dtype(f"u{tensor.itemsize}")
    out = np.zeros(box.inside.size, dtype)
    if tensor.nan_fill:
        out.view(np.uint16)[:] = _NAN
    if held is not None:
        out[box.inside] = rounded(tensor.dtype, _elements(held.data, box.address - held.address, dtype))
    return out


def _elements(data: np.ndarray, offset: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return the elements that start at byte offsets: one of `dtype` each."""
    return data[offset[:, None] + np.arange(dtype.itemsize)].view(dtype)[:, 0]


def _scatter(data: np.ndarray, offset: np.ndarray, values: np.ndarray) -> None:
    """Store elements at byte offsets."""
    data[offset[:, None] + np.arange(values.itemsize)] = values.reshape(-1, 1).view(np.uint8)


def load(
    group: Group,
    site: Site,
    store: Site,
    barrier: Site,
    target: np.ndarray,
    maps: np.ndarray,
    coordinates: tuple[np.ndarray, ...],
    mbar: np.ndarray,
    mask: np.ndarray | None,
    offsets: tuple[np.ndarray, ...] | None = None,
) -> None:
    """cp.async.bulk.tensor from global to shared memory, of this block, of another one, or (`mask`) of several.

    `offsets`: im2col mode.
    """
    arrays = (target, maps, mbar, mask, *coordinates, *(offsets or ()))
    for lane, (to, where, word, ranks, *start) in bulk.each_lane(group, *arrays):
        start, moved = start[: len(coordinates)], start[len(coordinates) :] if offsets is not None else None
        tensor = _tensor(lane, site, where + site.offset)
        places = targets(lane, store, np.array([[to]]), ranks)
        local = places[0][1]
        box = _place(lane, site, tensor, start, moved, local)
        held = _allocation(lane, site, tensor, box)
        words = barrier_words(lane, barrier, np.array([[word]]), [home for home, _ in places], ranks)
        _count(lane, site, tensor, box)
        if held is not None:
            read_global(lane, site, held, box.address.reshape(1, -1), tensor.itemsize)
        accesses = (
            bulk.accesses_global(lane, site, box.address, tensor.itemsize, "load", bulk.open_phase),
            *(bulk.writes_shared(lane, store, home, to, tensor.shared_bytes, bulk.open_phase) for home, to in places),
        )

        def fetch(operation: Operation, lane=lane, tensor=tensor, box=box, held=held) -> None:
            operation.data = _gather(tensor, box, held)
            bulk.ended(lane, operation, "load")

        def deliver(operation: Operation, lane=lane, tensor=tensor, box=box, places=places) -> None:
            for home, local in places:
                row = bulk.shared_row(lane, home)
                _scatter(row, swizzled(box.offset + local, tensor.swizzle), operation.data)
            bulk.ended(lane, operation, "store")
            for each, issued in operation.barriers.items():
                mbarrier.complete(lane, site, each, tensor.tile_bytes, issued)

        bulk.issue(lane, Operation(site, lane.lanes, fetch, deliver, words, accesses=accesses))


def store(
    group: Group,
    site: Site,
    source_site: Site,
    source: np.ndarray,
    maps: np.ndarray,
    coordinates: tuple[np.ndarray, ...],
    reduction: str | None,
) -> None:
    """cp.async.bulk.tensor and cp.reduce.async.bulk.tensor from shared to global memory, in tile mode."""
    for lane, (start, where, *first) in bulk.each_lane(group, source, maps, *coordinates):
        start = bulk.own_start(lane, source_site, start)
        tensor = _tensor(lane, site, where + site.offset)
        if tensor.dtype in ROUNDED:
            bulk.fail(lane, site, f"the emulator does not know what a store rounds by a tensor map of {tensor.dtype}")
        kind = _KINDS.get(tensor.dtype, tensor.dtype)
        if reduction is not None and kind not in _REDUCES[reduction]:
            bulk.fail(lane, site, f"there is no reduction {reduction} of {tensor.dtype}")
        if min(first, default=0) < 0:
            what = f"a store of a box that starts at {tuple(first)}: a GPU stops at negative coordinates of a store"
            bulk.fail(lane, site, what + " (illegal instruction); loads may have them")
        box = _place(lane, site, tensor, first, None, start)
        held = _allocation(lane, site, tensor, box)
        _count(lane, site, tensor, box)
        action = "store" if reduction is None else "atomic"
        accesses = (
            bulk.reads_shared(lane, source_site, start, tensor.shared_bytes, bulk.open_group),
            bulk.accesses_global(lane, site, box.address, tensor.itemsize, action, bulk.open_group),
        )

        def fetch(operation: Operation, lane=lane, tensor=tensor, box=box, start=start) -> None:
            row = bulk.shared_row(lane, int(lane.lanes.block[0, 0]))
            places = swizzled(box.offset[box.inside] + start, tensor.swizzle)
            operation.data = _elements(row, places, np.dtype(f"u{tensor.itemsize}"))
            bulk.ended(lane, operation, "load")

        def deliver(operation: Operation, lane=lane, tensor=tensor, box=box, held=held, kind=kind) -> None:
            if held is None:
                bulk.ended(lane, operation, "store")
                return
            write_global(lane, site, held, box.address.reshape(1, -1), reduction is not None, tensor.itemsize)
            offset, values = box.address - held.address, operation.data
            if reduction is not None:
                bits = {"s32": "u32", "s64": "u64"}.get(kind, kind) if reduction in ("and", "or", "xor") else kind
                dtype, update = bulk.update_of(reduction, bits)
                values = update(_elements(held.data, offset, dtype), values.view(dtype))
            _scatter(held.data, offset, np.ascontiguousarray(values))
            bulk.ended(lane, operation, "store")

        bulk.issue(lane, Operation(site, lane.lanes, fetch, deliver, accesses=accesses))


def prefetch(group: Group, site: Site, maps: np.ndarray, coordinates: tuple[np.ndarray, ...]) -> None:
    """prefetch.tensormap, and cp.async.bulk.prefetch.tensor: check the tensor map; a prefetch changes no value."""
    for lane, (where, *start) in bulk.each_lane(group, maps, *coordinates):
        tensor = _tensor(lane, site, where + site.offset)
        if start and len(start) != tensor.rank:
            what = f"a prefetch with {len(start)} coordinates, but the tensor map has {tensor.rank} dimensions"
            bulk.fail(lane, site, what)


RUNTIME = {"tensor_load": load, "tensor_store": store, "tensor_prefetch": prefetch}
