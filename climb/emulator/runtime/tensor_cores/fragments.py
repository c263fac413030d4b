"""Fragments: the lane of a warp, and the part of a register, that holds each element of a matrix.

The PTX ISA (section "Matrix fragments for mma") draws one picture for every shape and type. All of them, except those
of m8n8k4 with halves, follow one rule. A register has room for `per` elements; "g" is the number of a lane's group of
four, "t" its place there:

    a (rows x k)     register i: row g + 8 (i mod rows / 8), columns per (t + 4 (i div rows / 8)) onwards
    b (k x columns)  the same with rows and columns exchanged
    c, d             register i: row g + 8 (i div 2), column 2 t + i mod 2; halves: both columns in one register

Fragments of wmma are left open by PTX. Here they are those of mma, a tile of 16 or 32 rows or columns being made of
blocks of 8.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from ...simt.lanes import WARP

ROW = np.arange(WARP) // 4  # "groupID"
COLUMN = np.arange(WARP) % 4  # "threadID_in_group"
BITS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8,
    "s4": 4, "u4": 4, "b1": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Fragment:
    """The places of a matrix's elements in the registers of a warp.

    `shape` is that of the matrix, (rows, columns), or (4, rows, columns) where a warp holds four. `source`, int64 with
    as many entries as the matrix, numbers the register parts: (lane * registers + register) * per + part. `target` is
    its inverse: for each part in that order, the number of the element that it holds.
    """

    shape: tuple[int, ...]
    registers: int
    bits: int
    source: np.ndarray
    target: np.ndarray

    @property
    def per(self) -> int:
        """Elements of a register."""
        return max(1, 32 // self.bits)

    def gather(self, registers: list[np.ndarray]) -> np.ndarray:
        """Return the matrix that registers (warps, 32) hold, as codes: uint8, 16, 32 or 64 (warps, *shape)."""
        stacked = np.stack(registers, axis=-1)
        if self.bits >= 8:
            codes = stacked.view(f"u{self.bits // 8}")
        else:
            shifts = np.arange(0, 32, self.bits, dtype=np.uint32)
            codes = (stacked.view(np.uint32)[..., None] >> shifts & np.uint32((1 << self.bits) - 1)).astype(np.uint8)
        return codes.reshape(len(stacked), -1).take(self.source, axis=1).reshape(-1, *self.shape)

    def scatter(self, matrix: np.ndarray) -> list[np.ndarray]:
        """Return the registers (warps, 32) of a matrix of codes (warps, *shape) with at least 16 bits."""
        parts = matrix.reshape(-1, self.target.size).take(self.target, axis=1)
        words = parts.view(np.uint32) if self.bits == 16 else parts
        words = words.reshape(len(parts), WARP, self.registers)
        return [words[:, :, index] for index in range(self.registers)]


def _fragment(shape: tuple[int, ...], bits: int, places: tuple[np.ndarray, ...]) -> Fragment:
    """Make a fragment from the place of each register part: index arrays (32, registers, per), one for each axis."""
    places = np.broadcast_arrays(*places)
    target = np.ravel_multi_index(places, shape)
    registers = target.shape[1]
    target = target.reshape(-1)
    source = np.empty(int(np.prod(shape)), np.int64)
    source[target] = np.arange(target.size)
    return Fragment(shape, registers, bits, source, target)


@functools.cache
def fragment(matrix: str, rows: int, columns: int, kind: str) -> Fragment:
    """Return the fragment of a `rows` x `columns` matrix: `matrix` is "a", "b" or "c" (which is also that of d)."""
    bits = BITS[kind]
    per = max(1, 32 // bits)
    group, place = ROW[:, None, None], COLUMN[:, None, None]
    part = np.arange(per)[None, None]
    if matrix == "b":
        found = fragment("a", columns, rows, kind)
        row, column = np.unravel_index(found.target.reshape(WARP, found.registers, per), found.shape)
        return _fragment((rows, columns), bits, (column, row))
    blocks = rows // 8
    if matrix == "a":
        register = np.arange(rows * columns // (WARP * per))[None, :, None]
        at = (group + 8 * (register % blocks) + 0 * part, per * (place + 4 * (register // blocks)) + part)
        return _fragment((rows, columns), bits, at)
    pair = np.arange(2)[None, None] if bits == 16 else np.arange(2)[None, :, None]
    at = []
    for block in range(columns // 8):
        for high in range(blocks):
            at.append((group + 8 * high + 0 * pair, 2 * place + pair + 8 * block))
    row, column = (np.concatenate([np.broadcast_arrays(*each)[axis] for each in at], axis=1) for axis in (0, 1))
    return _fragment((rows, columns), bits, (row, column))


@functools.cache
def quad_fragment(matrix: str, kind: str, layout: str) -> Fragment:
    """Return the fragment of m8n8k4 with halves, where a warp holds four matrices, each spread over two groups of four
    lanes.

    `layout` is "row" or "col"; c has none.
    """
    lane = np.arange(WARP)[:, None]
    four, low, high = lane // 4 % 4, lane % 4, 4 * (lane >= 16)
    element = np.arange(8 if matrix == "c" else 4)[None]
    if matrix == "c":
        at = (low + high, element)
        if kind == "f32":
            at = ((lane & 1) + (element & 2) + high, (element & 4) + (lane & 2) + (element & 1))
    elif (matrix == "a") == (layout == "row"):
        at = (low + high, element)
    else:
        at = (element + high, low)
    row, column = at if matrix != "b" else at[::-1]
    places = [np.broadcast_to(each, (WARP, element.size)) for each in (four, row, column)]
    per = 32 // BITS[kind]
    shape = {"a": (4, 8, 4), "b": (4, 4, 8), "c": (4, 8, 8)}[matrix]
    return _fragment(shape, BITS[kind], tuple(each.reshape(WARP, -1, per) for each in places))
