"""Tensor cores: products of small matrices whose elements are spread over the lanes of a warp.

The PTX ISA, section 9.7.14, defines which lane holds which element (fragments of mma.m16n8k4, k8 and k16, and
ldmatrix). It leaves the fragments of wmma open; here they are those of two mma.m16n8k16 side by side (m16n8k8 for
tf32). Loads and stores of wmma make the accesses that ptxas makes for sm_90: rows of 16 bytes for a and b of halves
from shared memory, otherwise 4 bytes for each register, or 8 bytes for two neighbouring float32.

Products are exact. The products of one instruction are summed in ascending k, then the accumulator is added, all in
float64, and the sum is rounded once, to nearest even, to the type of the result. Hardware aligns and truncates the
addends in groups, in an undocumented order, so the last bits may differ. Only the upper 19 bits of tf32 operands are
read. Subnormals are kept.
"""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..isa.half import widen
from ..simt.groups import Group
from ..simt.lanes import WARP, take
from ..simt.site import Site
from ..simt.warps import from_rows, present, to_rows
from .accesses import subgroup
from .generic_addresses import LOADS, STORES, load_, store_
from .shared_memory import load_shared

ROW = np.arange(WARP) // 4  # "groupID"
COLUMN = np.arange(WARP) % 4  # "threadID_in_group"
_HALVES = np.arange(2)
_NAN = np.uint32(0x7FFFFFFF)
Registers = tuple[np.ndarray, ...]


def _require_full_warps(group: Group, site: Site) -> None:
    """Raise WarpMismatch if a warp has fewer than 32 lanes."""
    lanes = group.lanes
    if lanes.layout.kind == "whole":
        return
    here = present(lanes, lanes.layout.rows)
    if not here.all():
        partial = here & ~here.all(axis=1, keepdims=True)
        faults.warp_mismatch(
            group, site, from_rows(lanes, partial), "a matrix instruction needs all 32 lanes of the warp"
        )


def _pairs(register_rows: list[int], register_columns: list[int], along: str) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of every half, each (32, registers, 2); a register holds neighbours `along` a row or a column."""
    first = ROW[:, None, None] + np.zeros((1, len(register_rows), 2), np.int64)
    second = 2 * COLUMN[:, None, None] + _HALVES + np.zeros((1, len(register_rows), 1), np.int64)
    rows, columns = (first, second) if along == "row" else (second, first)
    return rows + np.array(register_rows)[:, None], columns + np.array(register_columns)[:, None]


def _singles(
    rows: np.ndarray, columns: np.ndarray, register_rows: list[int], register_columns: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of 32-bit elements, each (32, registers, 1)."""
    return (
        (rows[:, None] + np.array(register_rows))[:, :, None],
        (columns[:, None] + np.array(register_columns))[:, :, None],
    )


def fragment(matrix: str, kind: str, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """(row, column) of the elements of `matrix` (a: 16 x depth, b: depth x 8, c: 16 x 8) that each lane holds.

    Both have the shape (32, registers, elements per register). PTX ISA, 9.7.14.5.
    """
    if matrix == "c":
        if kind == "f16":
            return _pairs([0, 8], [0, 0], "row")
        rows, columns = _pairs([0, 8], [0, 0], "row")
        return rows.reshape(WARP, 4, 1), columns.reshape(WARP, 4, 1)
    if kind == "tf32":
        steps = range(depth // 4)
        if matrix == "a":
            return _singles(ROW, COLUMN, [0, 8] * len(steps), [4 * step for step in steps for _ in range(2)])
        return _singles(COLUMN, ROW, [4 * step for step in steps], [0] * len(steps))
    steps = range(depth // 8)
    if matrix == "a":
        return _pairs([0, 8] * len(steps), [8 * step for step in steps for _ in range(2)], "row")
    return _pairs([8 * step for step in steps], [0] * len(steps), "column")


def _values(registers: list[np.ndarray], kind: str) -> np.ndarray:
    """The values in registers (warps, 32): float64 (warps, 32, registers, elements)."""
    stacked = np.ascontiguousarray(np.stack(registers, axis=-1))[..., None]
    if kind == "f32":
        return stacked.astype(np.float64)
    if kind == "tf32":
        return (stacked & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    return widen(stacked.view(np.uint16), kind)


def _matrix(registers: list[np.ndarray], matrix: str, kind: str, depth: int) -> np.ndarray:
    """The matrix that registers (warps, 32) hold: float64 (warps, rows, columns)."""
    rows, columns = fragment(matrix, kind, depth)
    if len(registers) != rows.shape[1]:
        raise ValueError(f"{len(registers)} registers for {matrix} of {kind}, {rows.shape[1]} expected")
    out = np.empty((registers[0].shape[0], int(rows.max()) + 1, int(columns.max()) + 1))
    out[:, rows, columns] = _values(registers, kind)
    return out


def _rounded(value: np.ndarray, kind: str) -> np.ndarray:
    """Values, float64 (warps, 32, registers, elements), rounded to registers (warps, 32, registers)."""
    if kind == "f32":
        out = value[..., 0].astype(np.float32)
        return np.where(np.isnan(out), _NAN.view(np.float32), out)
    bits = np.where(np.isnan(value), np.uint16(0x7FFF), value.astype(np.float16).view(np.uint16))
    return np.ascontiguousarray(bits).view(np.uint32)[..., 0]


def _product(
    a: list[np.ndarray], b: list[np.ndarray], c: list[np.ndarray], depth: int, kind: str, added: str, result: str
) -> list[np.ndarray]:
    """D = A B + C, all as registers (warps, 32)."""
    left, right = _matrix(a, "a", kind, depth), _matrix(b, "b", kind, depth)
    total = left[:, :, 0, None] * right[:, None, 0]
    for k in range(1, depth):
        total += left[:, :, k, None] * right[:, None, k]
    total += _matrix(c, "c", added, depth)
    rows, columns = fragment("c", result, depth)
    out = _rounded(total[:, rows, columns], result)
    return [out[:, :, index] for index in range(out.shape[2])]


def _rows_of(group: Group, *registers: Registers) -> list[list[np.ndarray]]:
    flat = to_rows(group.lanes, *(each for many in registers for each in many))
    ends = np.cumsum([len(many) for many in registers]).tolist()
    return [flat[end - len(many) : end] for many, end in zip(registers, ends, strict=True)]


def multiply(
    group: Group, site: Site, depth: int, kind: str, result: str, a: Registers, b: Registers, c: Registers
) -> Registers:
    """mma.sync.m16n8k{depth}. Returns the registers of D, which has the type of C."""
    _require_full_warps(group, site)
    out = _product(*_rows_of(group, a, b, c), depth, kind, result, result)
    return tuple(from_rows(group.lanes, each) for each in out)


def tile_multiply(
    group: Group, site: Site, kind: str, result: str, a: Registers, b: Registers, c: Registers
) -> Registers:
    """wmma.mma.m16n16k16 of halves, or m16n16k8 of tf32. Returns the registers of D."""
    _require_full_warps(group, site)
    left, right, plus = _rows_of(group, a[:4], b[:4], c)
    added, half = ("f32" if len(c) == 8 else "f16"), len(c) // 2
    depth = 8 if kind == "tf32" else 16
    sides = ((right[:2], plus[:half]), (right[2:], plus[half:]))
    out = [each for b_, c_ in sides for each in _product(left, b_, c_, depth, kind, added, result)]
    return tuple(from_rows(group.lanes, each) for each in out)


def _transposed(block: np.ndarray) -> np.ndarray:
    """Transpose matrices of 8 x 8 halves, held in registers (warps, 32)."""
    halves = np.ascontiguousarray(block).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(-1, 64).view(np.uint32)


def load_rows(group: Group, site: Site, count: int, transposed: bool, address: np.ndarray) -> Registers:
    """ldmatrix: `count` matrices of 8 x 8 halves, each transposed if `transposed`.

    Lanes 8 i to 8 i + 7 hold the addresses of the rows of matrix i; the access counts as a 16-byte load by those lanes.
    """
    _require_full_warps(group, site)
    lanes, readers = group.lanes, group
    if count < 4:
        readers, selection = subgroup(group, np.broadcast_to(lanes.thread % WARP < 8 * count, lanes.shape))
        address = take(address, selection, lanes.shape)
    value = load_shared(readers, site, address)
    words = to_rows(readers.lanes, *(value[:, :, index] for index in range(4)))
    rows = np.stack(words, axis=-1)  # (warps, 32 rows, 4 words)
    out = []
    for index in range(count):
        block = np.ascontiguousarray(rows[:, 8 * index : 8 * index + 8]).reshape(-1, WARP)
        out.append(from_rows(lanes, _transposed(block) if transposed else block))
    return tuple(out)


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
    _require_full_warps(group, site)
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
            block = from_rows(group.lanes, _transposed(to_rows(group.lanes, block)[0]))
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
    _require_full_warps(group, site)
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
            block = from_rows(group.lanes, _transposed(to_rows(group.lanes, block)[0]))
        where = _element_address(group, address, stride, ROW + line, 2 * COLUMN + place, 2)
        _STORES[space](group, site, where, block)


RUNTIME = {
    "matrix_multiply": multiply, "matrix_rows": load_rows,
    "tile_load": tile_load, "tile_store": tile_store, "tile_multiply": tile_multiply,
}  # fmt: skip
