"""The formats of sparse matrices: what the book's NumPy code makes of a matrix, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.sparsity import compression, csr


def _half(m: int, k: int, seed: int = 0) -> np.ndarray:
    return np.round(np.random.default_rng(seed).standard_normal((m, k)) * 8).astype(np.float16)


def test_pruning_keeps_the_two_largest_of_four_and_of_equal_ones_the_first() -> None:
    dense = _half(16, 64)
    dense[0, :8] = [1, -1, 1, 1, np.nan, np.inf, 3, -np.inf]
    places = compression.keep(dense)
    assert places[0, 0].tolist() == [0, 1] and places[0, 1].tolist() == [0, 1]
    for row in range(16):
        for group in range(1 if row else 2, 16):
            four = np.abs(dense[row, 4 * group : 4 * group + 4].astype(float))
            kept = sorted(sorted(range(4), key=lambda i, four=four: (-four[i], i))[:2])
            assert places[row, group].tolist() == kept


def test_metadata_are_in_the_lanes_that_the_isa_names() -> None:
    dense = _half(32, 128)
    values, metadata = compression.compress(dense)
    places = compression.keep(dense)
    for slab, tile, lane in np.ndindex(metadata.shape):
        for upper in range(2):
            row = 16 * tile + lane // 4 + 8 * upper
            for index in range(4):
                nibble = int(metadata[slab, tile, lane]) >> 16 * upper + 4 * index & 15
                low, high = places[row, 16 * slab + lane % 4 * 4 + index]
                assert nibble == low | high << 2
    assert (compression.places_of(metadata) == places).all()
    kept = compression.expand(values, metadata)
    assert ((kept == dense) | (kept == 0)).all() and np.count_nonzero(kept) == np.count_nonzero(values)


def test_products_leave_out_what_is_not_stored() -> None:
    A = np.array([[0, 2], [3, 4]], np.float32)
    stored = np.array([[False, True], [True, True]])
    B = np.array([[np.inf, 1], [5, np.nan]], np.float32)
    found = compression.product(A, stored, B)
    np.testing.assert_array_equal(found, [[10, np.nan], [np.inf, np.nan]])


@pytest.mark.parametrize("nonzeros", [1, 17, 120, 319, 320])
def test_random_matrices_have_exactly_as_many_elements(nonzeros: int) -> None:
    rng = np.random.default_rng(4)
    made = csr.random(16, 20, nonzeros, rng)
    dense = csr.dense(**made, k=20)
    assert np.count_nonzero(dense) == nonzeros == made["offsets"][-1]
    x = rng.standard_normal(20)
    np.testing.assert_allclose(csr.times_vector(**made, x=x), dense.astype(np.float64) @ x, rtol=1e-12, atol=1e-12)
    assert all(
        (np.diff(made["columns"][a:b]) > 0).all() for a, b in zip(made["offsets"], made["offsets"][1:], strict=False)
    )
