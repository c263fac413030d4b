"""wmma.load and wmma.store: tiles of memory to the fragments of a warp, and back.

The accesses are those that ptxas makes for sm_90, where a register's elements are neighbours in memory: 4 bytes for
each register, or two registers together for the 32- and 64-bit elements of c and d. Where they are not, 16-bit elements
are loaded as blocks of 8 x 8 and transposed in registers, and bytes one by one. From shared memory, a and b come by
ldmatrix. A tile of 8 x 32 is computed as its transpose.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from ...simt.groups import Group
from ...simt.lanes import WARP
from ...simt.site import Site
from ...simt.warps import from_rows, to_rows
from ..generic_addresses import LOADS, STORES, load_, store_
from .fragments import BITS, COLUMN, ROW, Fragment, fragment
from .matrix_rows import load_rows, transpose_blocks
from .warps import Registers, require_full_warps

_LOADS = {**LOADS, "": load_}
_STORES = {**STORES, "": store_}
_FORM = re.compile(r"(\w)\.m(\d+)n(\d+)k(\d+)\.(\w+)")


@functools.cache
def tile_fragment(matrix: str, m: int, n: int, k: int, kind: str) -> Fragment:
    """Return the fragment of a tile of wmma: that of the mma which computes it, or of its transpose if m = 8 and n =
    32."""
    rows, columns = {"a": (m, k), "b": (k, n)}.get(matrix, (m, n))
    if (m, n) != (8, 32):
        return fragment(matrix if matrix in "ab" else "c", rows, columns, kind)
    turned = fragment({"a": "b", "b": "a"}.get(matrix, "c"), columns, rows, kind)
    target = np.ravel_multi_index(np.unravel_index(turned.target, turned.shape)[::-1], (rows, columns))
    source = np.empty_like(turned.source)
    source[target] = np.arange(target.size)
    return Fragment((rows, columns), turned.registers, turned.bits, source, target)


@dataclass(frozen=True)
class _Places:
    """The places in memory of a fragment's elements: `line` and `place` in the line, int64 (32, registers, per)."""

    bits: int
    line: np.ndarray
    place: np.ndarray
    neighbours: bool  # whether the elements of a register are

    @property
    def registers(self) -> int:
        return self.line.shape[1]

    def address(self, group: Group, start: np.ndarray, stride: np.ndarray, index: np.ndarray) -> np.ndarray:
        """Return the address of an element for each lane; `index` is (32, 2): its line and its place in the line."""
        line, place = index[group.lanes.thread % WARP].transpose(2, 0, 1)
        return start + (stride.astype(np.int64) * line + place) * self.bits // 8

    def part(self, register: int, part: int = 0) -> np.ndarray:
        """Return the lines and places of one part of a register: (32, 2)."""
        return np.stack([self.line[:, register, part], self.place[:, register, part]], axis=1)

    def block(self, register: int) -> np.ndarray:
        """Return the lines and places at which the lanes load the 8 x 8 block of a register before it is transposed."""
        line, place = self.line[:, register].min(), self.place[:, register].min()
        return np.stack([line + ROW, place + 2 * COLUMN], axis=1)


@functools.cache
def _places(text: str, by_rows: bool) -> _Places:
    matrix, *sizes, kind = _FORM.fullmatch(text).groups()
    found = tile_fragment(matrix, *map(int, sizes), kind)
    row, column = np.unravel_index(found.target.reshape(WARP, found.registers, found.per), found.shape)
    line, place = (row, column) if by_rows else (column, row)
    return _Places(BITS[kind], line, place, bool((line == line[:, :, :1]).all()))


def tile_load(
    group: Group, site: Site, space: str, text: str, by_rows: bool, address: np.ndarray, stride: np.ndarray
) -> Registers:
    """wmma.load of `text`, "MATRIX.SHAPE.TYPE". Returns the registers of the fragment, each once."""
    require_full_warps(group, site)
    at, load = _places(text, by_rows), _LOADS[space]
    out: list[np.ndarray] = []
    if site.element == np.uint8:
        for register in range(at.registers):
            parts = [load(group, site, at.address(group, address, stride, at.part(register, p))) for p in range(4)]
            out.append(sum(each.astype(np.uint32) << np.uint32(8 * p) for p, each in enumerate(parts)))
        return tuple(out)
    if site.count == 4:
        return _load_by_rows(group, site, at, address, stride)
    if site.count == 2:
        for register in range(0, at.registers, 2):
            both = load(group, site, at.address(group, address, stride, at.part(register)))
            out += [both[:, :, 0], both[:, :, 1]]
        return tuple(out)
    for register in range(at.registers):
        where = at.part(register) if at.neighbours else at.block(register)
        value = load(group, site, at.address(group, address, stride, where))
        out.append(value if at.neighbours else _transposed(group, value))
    return tuple(out)


def _load_by_rows(group: Group, site: Site, at: _Places, address: np.ndarray, stride: np.ndarray) -> Registers:
    """Load a tile from shared memory by ldmatrix: matrices of 8 rows of 16 bytes, at most four at a time."""
    out: list[np.ndarray] = []
    for first in range(0, at.registers, 4):
        count = min(4, at.registers - first)
        starts = [(at.line[:, each].min(), at.place[:, each].min()) for each in range(first, first + count)]
        corner = np.array(starts + [starts[0]] * (4 - count))[np.arange(WARP) // 8]
        corner[:, 0] += np.arange(WARP) % 8
        out += load_rows(group, site, count, not at.neighbours, at.address(group, address, stride, corner))
    return tuple(out)


def _transposed(group: Group, value: np.ndarray) -> np.ndarray:
    return from_rows(group.lanes, transpose_blocks(to_rows(group.lanes, value)[0]))


def tile_store(
    group: Group, site: Site, space: str, text: str, by_rows: bool, address: np.ndarray, stride: np.ndarray,
    registers: Registers,
) -> None:  # fmt: skip
    """wmma.store of `text`, "d.SHAPE.TYPE"."""
    require_full_warps(group, site)
    at, store = _places(text, by_rows), _STORES[space]
    for register in range(0, at.registers, site.count):
        where = at.part(register) if at.neighbours else at.block(register)
        value = registers[register : register + 2] if site.count == 2 else registers[register]
        if not at.neighbours:
            value = _transposed(group, value)
        store(group, site, at.address(group, address, stride, where), value)


RUNTIME = {"tile_load": tile_load, "tile_store": tile_store}
