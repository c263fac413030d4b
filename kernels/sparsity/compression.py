"""2:4 sparsity of a matrix of halves in NumPy: pruning, the format that kernels read, and back.

Of each four neighbours in a row the two of largest magnitude stay. The format is drawn in ``sparse_gemm/format.cuh``:
``values`` float16 (m, k / 2), ``metadata`` uint32 (k / 64, m / 16, 32), a word for each lane of a warp.
"""

from __future__ import annotations

import numpy as np

#: Numbers of rows and of columns in the format are multiples of these.
ROWS, SLAB = 16, 64
LANES = 32
_FOUR = 4


def keep(dense: np.ndarray) -> np.ndarray:
    """The places of the two largest magnitudes of each four, ascending: uint32 (m, k / 4, 2), values 0 to 3.

    Magnitudes are ordered as the bits are, so infinity and then NaN are the largest. Of equal ones the first stay.
    """
    magnitude = (dense.view(np.uint16) & 0x7FFF).astype(np.int32).reshape(len(dense), -1, _FOUR)
    order = np.argsort(-magnitude, axis=2, kind="stable")[:, :, :2]
    return np.sort(order, axis=2).astype(np.uint32)


def compress(dense: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prune a float16 matrix (m, k), m a multiple of 16 and k of 64. Returns ``values`` and ``metadata``."""
    places = keep(dense)
    values = np.take_along_axis(dense.reshape(*places.shape[:2], _FOUR), places.astype(np.intp), axis=2)
    return values.reshape(len(dense), -1), pack(places)


def pack(places: np.ndarray) -> np.ndarray:
    """The metadata of kept places (m, k / 4, 2): of each word of a lane, row g has the lower half and row g + 8 the
    upper one."""
    nibbles = places[:, :, 0] | places[:, :, 1] << np.uint32(2)
    halves = np.bitwise_or.reduce(
        nibbles.reshape(len(places), -1, 4) << np.arange(0, 16, 4, dtype=np.uint32), axis=2
    )  # fmt: skip
    rows = halves.reshape(len(places) // ROWS, 2, 8, -1, 4)  # sixteen, half of it, g, slab, t
    words = rows[:, 0] | rows[:, 1] << np.uint32(16)
    return np.ascontiguousarray(words.transpose(2, 0, 1, 3).reshape(-1, len(places) // ROWS, LANES), dtype=np.uint32)


def places_of(metadata: np.ndarray) -> np.ndarray:
    """The kept places (m, k / 4, 2) that packed metadata say."""
    slabs, tiles, _ = metadata.shape
    words = metadata.reshape(slabs, tiles, 8, 4).transpose(1, 2, 0, 3)  # sixteen, g, slab, t
    halves = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=1)
    nibbles = halves[..., None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(15)
    nibbles = nibbles.reshape(tiles * ROWS, -1)
    return np.stack([nibbles & np.uint32(3), nibbles >> np.uint32(2)], axis=-1)


def expand(values: np.ndarray, metadata: np.ndarray) -> np.ndarray:
    """The matrix (m, k) with its zeros, of the dtype of ``values``."""
    places = places_of(metadata).astype(np.intp)
    dense = np.zeros((*places.shape[:2], _FOUR), values.dtype)
    np.put_along_axis(dense, places, values.reshape(places.shape), axis=2)
    return dense.reshape(len(places), -1)


def product(sparse: np.ndarray, stored: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B in float64, where only the elements of A for which ``stored`` holds are multiplied.

    So what is infinite or NaN in B meets nothing in rows of A that do not store an element for it.
    """
    finite = np.isfinite(B)
    out = sparse.astype(np.float64) @ np.where(finite, B, 0).astype(np.float64)
    for k in np.flatnonzero(~finite.all(axis=1)):
        rows = stored[:, k]
        special = np.where(finite[k], 0, B[k]).astype(np.float64)
        out[rows] += np.where(special == 0, 0, sparse[rows, k, None].astype(np.float64) * special)
    return out
