"""wmma.load and wmma.store: tiles of memory to the fragments of a warp, and back."""

from __future__ import annotations

import numpy as np

from ...simt.groups import Group
from ...simt.lanes import WARP
from ...simt.site import Site
from ...simt.warps import from_rows, to_rows
from ..generic_addresses import LOADS, STORES, load_, store_
from .fragments import COLUMN, ROW
from .matrix_rows import load_rows, transpose_blocks
from .warps import Registers, require_full_warps


def _blocks(matrix: str, by_rows: bool) -> tuple[list[tuple[int, int]], bool]:
    """Where the 8 x 8 blocks of a tile begin in memory, as (line, place in the line), in the order of the registers;
    and whether the two halves of a register are not neighbours in memory."""
    order = [(0, 0), (8, 0), (0, 8), (8, 8)]
    by_column = [(column, row) for row, column in order]
    if matrix == "b":
        # Registers hold neighbours of a column: (k, n) = (0, 0), (8, 0), (0, 8), (8, 8).
        return (order, True) if by_rows else (by_column, False)
    return (order, False) if by_rows else (by_column, True)


def _element_address(
    group: Group, address: np.ndarray, stride: np.ndarray, line: np.ndarray, place: np.ndarray, size: int
) -> np.ndarray:
    """The address of one element for each lane; `line` and `place` (32,) locate it in the tile."""
    lane = group.lanes.thread % WARP
    return address + (stride.astype(np.int64) * line[lane] + place[lane]) * size


_LOADS = {**LOADS, "": load_}
_STORES = {**STORES, "": store_}


def tile_load(
    group: Group, site: Site, space: str, matrix: str, by_rows: bool, kind: str, address: np.ndarray, stride: np.ndarray
) -> Registers:
    """wmma.load. Returns the registers; PTX has eight for a and b of float16, so four distinct ones appear twice."""
    require_full_warps(group, site)
    if kind == "tf32":
        return _load_singles(group, site, space, matrix, by_rows, address, stride)
    blocks, transposed = _blocks(matrix, by_rows)
    out: list[np.ndarray] = []
    if kind == "f32":
        for line, place in blocks:
            if by_rows:
                both = _LOADS[space](
                    group, site, _element_address(group, address, stride, ROW + line, 2 * COLUMN + place, 4)
                )
                out += [both[:, :, 0], both[:, :, 1]]
            else:
                for half in range(2):
                    where = _element_address(group, address, stride, 2 * COLUMN + half + line, ROW + place, 4)
                    out.append(_LOADS[space](group, site, where))
        return tuple(out)
    if site.count == 4:
        lane = np.arange(WARP)
        starts = np.array(blocks)[lane // 8]
        where = _element_address(group, address, stride, starts[:, 0] + lane % 8, starts[:, 1], 2)
        return load_rows(group, site, 4, transposed, where) * (2 if kind == "f16" else 1)
    for line, place in blocks:
        block = _LOADS[space](group, site, _element_address(group, address, stride, ROW + line, 2 * COLUMN + place, 2))
        if transposed:
            block = from_rows(group.lanes, transpose_blocks(to_rows(group.lanes, block)[0]))
        out.append(block)
    return tuple(out) if matrix == "c" or kind == "bf16" else tuple(out) * 2


def _load_singles(
    group: Group, site: Site, space: str, matrix: str, by_rows: bool, address: np.ndarray, stride: np.ndarray
) -> Registers:
    """Load a 16 x 8 tile a or an 8 x 16 tile b of 32-bit elements: four registers with one element each."""
    if matrix == "a":
        parts = [(row, column, ROW, COLUMN) for column in (0, 4) for row in (0, 8)]
    else:
        parts = [(row, column, COLUMN, ROW) for column in (0, 8) for row in (0, 4)]
    out = []
    for row, column, rows, columns in parts:
        line, place = (rows + row, columns + column) if by_rows else (columns + column, rows + row)
        out.append(_LOADS[space](group, site, _element_address(group, address, stride, line, place, 4)))
    return tuple(out)


def tile_store(
    group: Group, site: Site, space: str, matrix: str, by_rows: bool, kind: str, address: np.ndarray,
    stride: np.ndarray, registers: Registers,
) -> None:  # fmt: skip
    """wmma.store.d."""
    require_full_warps(group, site)
    blocks, transposed = _blocks(matrix, by_rows)
    for index, (line, place) in enumerate(blocks):
        if kind == "f32":
            pair = registers[2 * index : 2 * index + 2]
            if by_rows:
                where = _element_address(group, address, stride, ROW + line, 2 * COLUMN + place, 4)
                _STORES[space](group, site, where, pair)
                continue
            for half in range(2):
                where = _element_address(group, address, stride, 2 * COLUMN + half + line, ROW + place, 4)
                _STORES[space](group, site, where, pair[half])
            continue
        block = registers[index]
        if transposed:
            block = from_rows(group.lanes, transpose_blocks(to_rows(group.lanes, block)[0]))
        where = _element_address(group, address, stride, ROW + line, 2 * COLUMN + place, 2)
        _STORES[space](group, site, where, block)


RUNTIME = {"tile_load": tile_load, "tile_store": tile_store}
