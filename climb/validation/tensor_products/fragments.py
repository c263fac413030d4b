"""Matrices in the registers of a warp, as the PTX ISA draws them; written apart from the emulator's fragments."""

from __future__ import annotations

import numpy as np

from climb.validation.tensor_products.forms import BITS, Form

_LANE = np.arange(32)
_GROUP, _PLACE = _LANE // 4, _LANE % 4


def layout(matrix: str, form: Form) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column of each element of matrix "a", "b", "c" or "d": (32, registers, elements)."""
    kind = getattr(form, matrix)
    g, t = _GROUP[:, None, None], _PLACE[:, None, None]
    if matrix in "cd":
        j = np.arange(2)
        rows = form.m // 8
        if BITS[kind] == 16:
            i = np.arange(rows)[None, :, None]
            at = (g + 8 * i + 0 * j, 2 * t + j + 0 * i)
        else:
            i = np.arange(2 * rows)[None, :, None]
            at = (g + 8 * (i // 2), 2 * t + i % 2)
        return at
    per = max(1, 32 // BITS[kind])
    j, blocks = np.arange(per), (form.m if matrix == "a" else form.n) // 8
    depth = form.stored if matrix == "a" else form.k
    i = np.arange(blocks * depth // (4 * per))[None, :, None]
    across, along = g + 8 * (i % blocks) + 0 * j, t * per + j + i // blocks * 4 * per
    return (across, along) if matrix == "a" else (along, across)


def quad_layout(matrix: str, form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the product, the row and the column of the elements of m8n8k4: (32, elements of a lane)."""
    low, high = (_LANE % 4)[:, None], 4 * (_LANE >= 16)[:, None]
    i = np.arange(4 if matrix in "ab" else 8)[None]
    if matrix == "a":
        row, column = (low + high, i) if form.layouts[0] == "row" else (i + high, low)
    elif matrix == "b":
        row, column = (low, i + high) if form.layouts[1] == "row" else (i, low + high)
    elif getattr(form, matrix) == "f16":
        row, column = low + high, i
    else:
        row, column = (_LANE & 1)[:, None] + (i & 2) + high, (i & 4) + (_LANE & 2)[:, None] + (i & 1)
    return tuple(np.broadcast_to(each, (32, i.shape[1])) for each in ((_LANE // 4 % 4)[:, None], row, column))


def warpgroup_layout(form: Form) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column of the accumulators of wgmma: (128, registers, elements of a register)."""
    thread = np.arange(128)[:, None, None]
    g, t = thread % 32 // 4, thread % 4
    if form.d == "f16":
        i, j = np.arange(form.n // 4)[None, :, None], np.arange(2)
        return thread // 32 * 16 + g + i % 2 * 8 + 0 * j, i // 2 * 8 + 2 * t + j
    i = np.arange(form.n // 2)[None, :, None]
    return thread // 32 * 16 + g + i // 2 % 2 * 8, i // 4 * 8 + 2 * t + i % 2


def places(matrix: str, form: Form) -> tuple[np.ndarray, ...]:
    """The index arrays of a matrix's elements in registers: (threads, registers, elements of a register)."""
    if form.by == "quad":
        per = 32 // BITS[getattr(form, matrix)]
        return tuple(each.reshape(32, -1, per) for each in quad_layout(matrix, form))
    return warpgroup_layout(form) if form.by == "warpgroup" else layout(matrix, form)


def registers(matrix: str, form: Form) -> int:
    """The registers of a thread for a matrix."""
    return np.broadcast_shapes(*(each.shape for each in places(matrix, form)))[1]


def pack(codes: np.ndarray, matrix: str, form: Form) -> np.ndarray:
    """Matrices of codes, (products, rows, columns), as registers: uint32 or uint64 (warps, registers, threads)."""
    bits = BITS[getattr(form, matrix)]
    matrices = codes.reshape(-1, 4, *codes.shape[1:]) if form.by == "quad" else codes
    values = matrices[:, *places(matrix, form)].astype(np.uint64)
    shifts = (np.arange(values.shape[-1]) * bits).astype(np.uint64)
    words = (values << shifts).sum(-1, dtype=np.uint64).swapaxes(1, 2)
    return np.ascontiguousarray(words.astype(np.uint64 if bits == 64 else np.uint32))


def unpack(words: np.ndarray, matrix: str, form: Form) -> np.ndarray:
    """The inverse of `pack` for c and d: codes (products, m, n)."""
    bits = BITS[getattr(form, matrix)]
    shifts = (np.arange(max(1, 32 // bits)) * bits).astype(np.uint64)
    values = words.swapaxes(1, 2).astype(np.uint64)[..., None] >> shifts & np.uint64((1 << bits) - 1)
    shape = (len(words), 4, 8, 8) if form.by == "quad" else (len(words), form.m, form.n)
    out = np.zeros(shape, f"u{bits // 8}")
    out[:, *places(matrix, form)] = values
    return out.reshape(-1, form.m, form.n)
