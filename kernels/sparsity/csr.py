"""Unstructured sparsity: matrices in compressed sparse rows (CSR), and their products in float64.

``offsets`` int32 (m + 1) says where each row's elements begin in ``columns`` int32 and ``values`` float32, both of the
number of nonzeros.
"""

from __future__ import annotations

import numpy as np


def random(m: int, k: int, nonzeros: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A matrix (m, k) with exactly ``nonzeros`` normal numbers, at most m k, in places that are equally likely."""
    chosen = rng.random(m * k, dtype=np.float32) < nonzeros / (m * k)
    while (missing := nonzeros - np.count_nonzero(chosen)) != 0:  # flip as many as are wrong in number
        places = np.unique(rng.integers(0, m * k, 4 * abs(missing)))
        places = rng.permutation(places[chosen[places] == (missing < 0)])[: abs(missing)]
        chosen[places] ^= True
    chosen = chosen.reshape(m, k)
    offsets = np.zeros(m + 1, np.int32)
    np.cumsum(np.count_nonzero(chosen, axis=1), out=offsets[1:])
    columns = np.broadcast_to(np.arange(k, dtype=np.int32), chosen.shape)[chosen]
    return {"offsets": offsets, "columns": columns, "values": rng.standard_normal(nonzeros, dtype=np.float32)}


def rows_of(offsets: np.ndarray) -> np.ndarray:
    """The row of each element."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def times_vector(offsets: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A x in float64; zeros that are not stored are not multiplied."""
    products = values[: offsets[-1]].astype(np.float64) * x[columns[: offsets[-1]]]
    return np.bincount(rows_of(offsets), weights=products, minlength=len(offsets) - 1)


def dense(offsets: np.ndarray, columns: np.ndarray, values: np.ndarray, k: int) -> np.ndarray:
    """The matrix (m, k) with its zeros."""
    out = np.zeros((len(offsets) - 1, k), values.dtype)
    out[rows_of(offsets), columns[: offsets[-1]]] = values[: offsets[-1]]
    return out
