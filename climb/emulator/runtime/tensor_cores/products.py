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

from ...isa.half import widen
from ...simt.groups import Group
from ...simt.site import Site
from ...simt.warps import from_rows
from .fragments import fragment
from .warps import Registers, require_full_warps, rows_of

_NAN = np.uint32(0x7FFFFFFF)


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


def multiply(
    group: Group, site: Site, depth: int, kind: str, result: str, a: Registers, b: Registers, c: Registers
) -> Registers:
    """mma.sync.m16n8k{depth}. Returns the registers of D, which has the type of C."""
    require_full_warps(group, site)
    out = _product(*rows_of(group, a, b, c), depth, kind, result, result)
    return tuple(from_rows(group.lanes, each) for each in out)


def tile_multiply(
    group: Group, site: Site, kind: str, result: str, a: Registers, b: Registers, c: Registers
) -> Registers:
    """wmma.mma.m16n16k16 of halves, or m16n16k8 of tf32. Returns the registers of D."""
    require_full_warps(group, site)
    left, right, plus = rows_of(group, a[:4], b[:4], c)
    added, half = ("f32" if len(c) == 8 else "f16"), len(c) // 2
    depth = 8 if kind == "tf32" else 16
    sides = ((right[:2], plus[:half]), (right[2:], plus[half:]))
    out = [each for b_, c_ in sides for each in _product(left, b_, c_, depth, kind, added, result)]
    return tuple(from_rows(group.lanes, each) for each in out)


RUNTIME = {"matrix_multiply": multiply, "tile_multiply": tile_multiply}
