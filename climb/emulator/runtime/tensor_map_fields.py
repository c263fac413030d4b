"""tensormap.replace and tensormap.cp_fenceproxy: threads change a field of a tensor map in memory, or copy one.

PTX ISA, section "tensormap.replace". A tensor map may break a rule meanwhile, because its fields are replaced one by
one; it is checked when a copy uses it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..memory.tensor_map import NBYTES, SWIZZLES, TensorMap, decode, encode_unchecked
from ..simt.groups import Group
from ..simt.site import Site
from . import bulk, generic_addresses, global_memory, shared_memory

#: The types of elements by their numbers in the instruction, which are not those of CUtensorMapDataType.
ELEMENT_TYPES = (
    "uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float32_ftz", "float64", "bfloat16",
    "tfloat32", "tfloat32_ftz",
)  # fmt: skip
_LOADS = {"shared": shared_memory.load_shared, "global": global_memory.load_global, "": generic_addresses.load_}
_STORES = {"shared": shared_memory.store_shared, "global": global_memory.store_global, "": generic_addresses.store_}


def _load(group: Group, site: Site, space: str, address: int) -> bytes:
    places = bulk.pieces(address, NBYTES)
    reader = bulk.spread(group, places.size)
    return np.ascontiguousarray(_LOADS[space](reader, bulk.as_pieces(site, "load"), places)).tobytes()


def _store(group: Group, site: Site, space: str, address: int, data: bytes) -> None:
    places = bulk.pieces(address, NBYTES)
    words = np.frombuffer(data, np.uint32).reshape(1, -1, 4)
    values = tuple(words[:, :, number] for number in range(4))
    _STORES[space](bulk.spread(group, places.size), bulk.as_pieces(site, "store"), places, values)


def replace_field(
    group: Group, site: Site, space: str, field: str, ordinal: int, address: np.ndarray, value: np.ndarray
) -> None:
    """tensormap.replace: each lane replaces a field of the tensor map at its address, or one entry of it."""
    for lane, (where, new) in bulk.each_lane(group, address, value):
        where += site.offset
        bulk.check_alignment(lane, site, where, NBYTES, "a tensor map")
        one = decode(_load(lane, site, space, where))
        if one is None:
            bulk.fail(lane, site, "these 128 bytes are no tensor map; copy one that the host has made, and change that")
        if one.im2col is not None:
            bulk.fail(lane, site, "tensormap.replace.tile, with a tensor map made for im2col mode")
        _store(lane, site, space, where, encode_unchecked(_replaced(lane, site, one, field, ordinal, new)))


def _replaced(group: Group, site: Site, one: TensorMap, field: str, ordinal: int, new: int) -> TensorMap:
    """Return the tensor map with a new field; `ordinal` counts from the innermost dimension."""
    if field == "global_address":
        return replace(one, address=new & (1 << 64) - 1)
    if field == "rank":
        if not 0 <= new < 5:
            bulk.fail(group, site, f"a rank of {new}; it is 0 to 4, one less than the number of dimensions")
        return _with_rank(one, new + 1)
    if field in ("elemtype", "swizzle_mode", "fill_mode", "interleave_layout"):
        if field == "elemtype":
            return replace(one, dtype=ELEMENT_TYPES[new])
        if field == "swizzle_mode":
            return replace(one, swizzle=SWIZZLES[new])
        if field == "fill_mode":
            return replace(one, nan_fill=bool(new))
        if new:
            bulk.fail(group, site, "the emulator has no tensor maps with an interleaved layout")
        return one
    name = {"box_dim": "box", "global_dim": "dims", "global_stride": "strides", "element_stride": "element_strides"}
    entries = list(getattr(one, name[field]))
    if ordinal >= len(entries):
        bulk.fail(group, site, f"{field} has no entry {ordinal}: the tensor map has {one.rank} dimensions")
    entries[ordinal] = new & ((1 << 64) - 1 if field == "global_stride" else (1 << 32) - 1)
    if field == "global_dim" and not entries[ordinal]:
        entries[ordinal] = 1 << 32
    return replace(one, **{name[field]: tuple(entries)})


def _with_rank(one: TensorMap, rank: int) -> TensorMap:
    """Return the tensor map with more dimensions, of one element, or with fewer."""

    def entries(values: tuple[int, ...], count: int, fill: int) -> tuple[int, ...]:
        return (*values[:count], *(fill,) * (count - len(values)))

    return replace(
        one, dims=entries(one.dims, rank, 1), strides=entries(one.strides, rank - 1, 0), box=entries(one.box, rank, 1),
        element_strides=entries(one.element_strides, rank, 1),
    )  # fmt: skip


def copy(group: Group, load: Site, store: Site, target: np.ndarray, source: np.ndarray) -> None:
    """tensormap.cp_fenceproxy: each warp copies a tensor map from shared to global memory, and releases it."""
    done: set[tuple[int, int]] = set()
    for lane, (to, of) in bulk.each_lane(group, target, source):
        warp = int(lane.lanes.block[0, 0]), int(lane.lanes.thread[0, 0]) // 32
        if warp in done:
            continue
        done.add(warp)
        bulk.check_alignment(lane, store, to + store.offset, NBYTES, "a tensor map")
        _store(lane, store, "global", to + store.offset, _load(lane, load, "shared", of + load.offset))
    if group.batch.clock is not None:
        group.batch.clock.fence(group.lanes)


RUNTIME = {"tensor_map_replace": replace_field, "tensor_map_copy": copy}
