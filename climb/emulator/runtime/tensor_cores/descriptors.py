"""Matrix descriptors of wgmma: the places in shared memory of an operand's rows.

PTX ISA, section "Asynchronous warpgroup-level matrix shared memory layout". A descriptor has 64 bits:

    0-13   start address / 16              49-51  base offset: place of the start in the swizzle's pattern
    16-29  leading dimension offset / 16   62-63  swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
    32-45  stride dimension offset / 16

An operand is cut into pieces of 16 bytes. K-major operands have a piece of k for each of their rows (m or n),
MN-major ones a piece of 8 rows for each k. A core matrix is 8 of these pieces, one below the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SWIZZLES = (0, 128, 64, 32)  # bytes, by the code in the descriptor
PIECE = 16
_RANK = 24 - 4 - 14  # where the rank of a block, from bit 24 of an address on, is above the start address


class Descriptor(NamedTuple):
    """Descriptors of several warpgroups, each field int64 (warpgroups,), all but `base` in bytes."""

    start: np.ndarray
    leading: np.ndarray
    stride: np.ndarray
    base: np.ndarray
    swizzle: np.ndarray


def decode(words: np.ndarray) -> Descriptor:
    """Decode descriptors (uint64) into their fields."""

    def field(first: int, bits: int) -> np.ndarray:
        return (words >> np.uint64(first) & np.uint64((1 << bits) - 1)).astype(np.int64)

    return Descriptor(
        field(0, 14) * PIECE, field(16, 14) * PIECE, field(32, 14) * PIECE, field(49, 3),
        np.array(SWIZZLES)[field(62, 2)],
    )  # fmt: skip


def above_start(words: np.ndarray) -> np.ndarray:
    """Return the bits of descriptors between the start address and bit 32, int64: bits 18 to 35 of an address / 16 that
    was not masked would be there."""
    return (words >> np.uint64(14) & np.uint64((1 << 18) - 1)).astype(np.int64)


def swallow(one: int, rank: int, other: int, other_rank: int) -> bool:
    """Return whether these bits (`above_start`) of two descriptors differ by the ranks of their blocks, added or or-ed
    to the same bits. Equal bits hold no rank: or-ing a rank into bits that are set already changes nothing."""
    if one == other:
        return False
    here, there = rank << _RANK, other_rank << _RANK
    if one - here == other - there:
        return True
    return (rank == 0 and one | there == other) or (other_rank == 0 and other | here == one)


def pieces(found: Descriptor, rows: int, depth: int, by_k: bool, size: int) -> np.ndarray:
    """Return the addresses of an operand's pieces: int64 (warpgroups, rows, bytes of k / 16) if `by_k`, else
    (warpgroups, depth, rows / 8).

    `rows` counts m or n, `depth` k, `size` the bytes of an element. Dense operands have 32 bytes of k, the second
    operand of a sparse product 64.
    """
    start, leading, stride, swizzle = (each[:, None, None] for each in (*found[:3], found.swizzle))
    width = np.maximum(swizzle, PIECE)  # bytes of a row of the pattern
    if by_k:
        row, piece = np.arange(rows)[None, :, None], np.arange(depth * size // PIECE)[None, None]
        across = width // PIECE
        along = piece // across * leading + piece % across * PIECE
        address = start + row // 8 * stride + row % 8 * width + along
    else:
        row, piece = np.arange(depth)[None, :, None], np.arange(rows // 8)[None, None]
        across = width // PIECE
        over_pattern, over_k = np.where(swizzle == 0, (stride, leading), (leading, stride))
        address = start + row // 8 * over_k + row % 8 * width + piece // across * over_pattern + piece % across * PIECE
    return swizzled(address, swizzle, found.base[:, None, None])


def swizzled(address: np.ndarray, swizzle: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Exclusive-or the lowest bits of the number of a 16-byte piece with those of the number of its 128-byte line:
    three bits for a swizzle of 128 bytes, two for 64, one for 32. Lines count from `base` on."""
    line = (address >> 7) - base
    return address ^ line % _lines(swizzle) * PIECE


def misplaced(found: Descriptor) -> np.ndarray:
    """Return which descriptors start at another place of their swizzle's pattern than the base offset says: bool."""
    return ((found.start >> 7) - found.base) % _lines(found.swizzle) != 0


def _lines(swizzle: np.ndarray) -> np.ndarray:
    """Return the lines of 128 bytes after which the pattern of a swizzle repeats."""
    return np.maximum(swizzle // PIECE, 1)
