"""Structured sparsity: metadata that says which elements of a row a sparse product has, and the product itself.

Half of the elements of A are left out. PTX ISA, section "Sparse matrix storage": of four neighbours in a row two are
stored (of two tf32, one), and four bits of metadata, a nibble, say which: the first index in its lower two bits, the
second in its upper two. For tf32, whose elements count as two halves, only 0b0100 and 0b1110 are valid.

A warp's metadata are 32-bit registers of some of its lanes; a constant in the instruction, the sparsity selector, says
of which. With "g" the number of a lane's group of four, "t" its place there, and q counting the nibbles of a row:

    f16, bf16, tf32   lane t = first + q div 4 has rows g and g + 8 in its lower and its upper half
    8-bit types       lane t = first + 2 (q div 8) has row g, the lane behind it row g + 8
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ...checks import faults
from ...errors import InvalidMetadata
from ...isa.sparse import selectors
from ...simt.groups import Group
from ...simt.lanes import WARP
from ...simt.site import Site
from ...simt.warps import from_rows
from .arithmetic import EIGHT_BITS, Types, warp_product
from .fragments import BITS
from .operands import INTEGERS, decode, integers

ROWS = 16  # of A that a warp has
_CHUNK = 1 << 20  # elements of B that are copied at a time
_TF32 = (0b0100, 0b1110)
Product = Callable[[np.ndarray, np.ndarray, np.ndarray, Types], np.ndarray]


@functools.cache
def places(kind: str, depth: int, selector: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane and the first bit of each nibble: two arrays (16, nibbles of a row)."""
    row, nibble = np.ogrid[:ROWS, : depth * (2 if kind == "tf32" else 1) // 4]
    first = row % 8 * 4 + selector * (4 // selectors(kind, depth))
    if BITS[kind] == 8:
        return first + nibble // 8 * 2 + row // 8, 4 * (nibble % 8) + 0 * row
    return first + nibble // 4, 16 * (row // 8) + 4 * (nibble % 4)


def chosen(
    group: Group, site: Site, words: np.ndarray, kind: str, depth: int, selector: int, ordered: bool
) -> np.ndarray:
    """Return the k of each stored element, int64 (warps, 16, depth / 2), from metadata registers (warps, 32).

    Raises InvalidMetadata for a nibble that names an element twice or, if they should be `ordered`, in the wrong order.
    """
    lane, shift = places(kind, depth, selector)
    nibble = words.view(np.uint32)[:, lane] >> shift.astype(np.uint32) & np.uint32(15)
    low, high = (nibble & np.uint32(3)).astype(np.int64), (nibble >> np.uint32(2)).astype(np.int64)
    if kind == "tf32":
        bad, why = ~np.isin(nibble, _TF32), "tf32 has 0b0100 for the first of two elements and 0b1110 for the second"
    else:
        bad, why = low == high, "it names the same element twice"
        if ordered and not bad.any():
            bad, why = low > high, "mma.sp::ordered_metadata needs ascending indices"
    if bad.any():
        _refuse(group, site, nibble, bad, lane, shift, why)
    if kind == "tf32":
        return np.arange(0, depth, 2) + low // 2
    start = np.arange(0, depth, 4)
    return np.stack([start + low, start + high], axis=-1).reshape(len(words), ROWS, -1)


def _refuse(
    group: Group, site: Site, nibble: np.ndarray, bad: np.ndarray, lane: np.ndarray, shift: np.ndarray, why: str
) -> None:
    """Raise InvalidMetadata at the lanes that hold the nibbles for which `bad` holds."""
    warp, row, index = (int(each[0]) for each in np.nonzero(bad))
    holds = np.zeros((len(bad), WARP), np.bool_)
    for each, *at in zip(*np.nonzero(bad), strict=True):
        holds[each, lane[tuple(at)]] = True
    first = int(shift[row, index])
    value = int(nibble[warp, row, index])
    raise InvalidMetadata(
        f"invalid metadata: bits {first} to {first + 3} of lane {int(lane[row, index])} are 0b{value:04b}, for row "
        f"{row} and nibble {index} of the row; {why}",
        faults.place_of(group, site, np.broadcast_to(from_rows(group.lanes, holds), group.lanes.shape)),
        value=value,
        row=row,
        nibble=index,
    )


def sparse_product(
    multiply: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, at: np.ndarray, types: Types
) -> np.ndarray:
    """D = A B + C by `multiply`, of codes of the stored half of A.

    A (products, rows, k / 2), B (products, k, columns), C (products, rows, columns); `at`, as A, the k of each element.
    The tensor core picks the rows of B that a row of A meets and sums their products, and only those: infinities and
    NaN elsewhere in B do not matter.
    """
    if _sums_at_once(multiply, types) and np.isfinite(_values(b, types.b)).all():
        dense = np.zeros((*a.shape[:2], b.shape[1]), a.dtype)  # zeros add nothing, and align nothing
        np.put_along_axis(dense, at, a, axis=2)
        return multiply(dense, b, c, types)
    return _row_by_row(multiply, a, b, c, at, types)


def _sums_at_once(multiply: Product, types: Types) -> bool:
    """Return whether all products make one sum; mma of 8-bit floats makes two, by the places of the stored elements."""
    return types.a not in EIGHT_BITS or multiply is not warp_product


def _values(codes: np.ndarray, kind: str) -> np.ndarray:
    return integers(codes, kind) if kind in INTEGERS else decode(codes, kind).value


def _row_by_row(
    multiply: Product, a: np.ndarray, b: np.ndarray, c: np.ndarray, at: np.ndarray, types: Types
) -> np.ndarray:
    """Compute the same, with each row of A as a separate product that has its own B."""
    count, rows, stored = a.shape
    columns = b.shape[2]
    out = np.empty((count, rows, columns), c.dtype)
    step = max(1, _CHUNK // (rows * stored * columns))
    for start in range(0, count, step):
        part = slice(start, start + step)
        right = b[part][np.arange(len(b[part]))[:, None, None], at[part]]
        found = multiply(
            a[part].reshape(-1, 1, stored), right.reshape(-1, stored, columns), c[part].reshape(-1, 1, columns), types
        )
        out[part] = found.reshape(-1, rows, columns)
    return out
