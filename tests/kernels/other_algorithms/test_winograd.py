"""Winograd's convolutions in NumPy: the known matrices, equality with the definition, and errors in float32."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kernels.other_algorithms.winograd import direct, errors, layer, transforms

#: B^T of F(4, 3) as Lavin and Gray print it, up to a factor of each row, which G takes up.
LAVIN = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)


def test_matrix_of_four_outputs_is_that_of_lavin_and_gray() -> None:
    assert transforms(4).data == tuple(tuple(Fraction(v) for v in row) for row in LAVIN)
    assert transforms(4).inverse[3] == (0, 1, -1, 8, -8, 1)
    assert [transforms(m).products for m in (2, 4, 6)] == [4, Fraction(9, 4), Fraction(16, 9)]


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 6])
def test_layer_equals_the_definition_in_float64(outputs: int) -> None:
    rng = np.random.default_rng(outputs)
    source, weights = rng.standard_normal((3, 14, 26)), rng.standard_normal((2, 3, 3, 3))
    assert np.allclose(layer(source, weights, outputs, np.float64), direct(source, weights, np.float64), atol=1e-12)


def test_errors_grow_with_the_tile_and_two_outputs_are_better_than_the_definition() -> None:
    found = {m: errors(m, channels=32, maps=4, side=12) for m in (None, 2, 4, 6)}
    for kind in (0, 1):
        assert found[2][kind] < found[None][kind] < found[4][kind] < 1e-5


def test_sides_and_outputs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="multiples of 4, got 10 and 12"):
        layer(np.zeros((1, 10, 12)), np.zeros((1, 1, 3, 3)), 4)
    for outputs in (0, 7):
        with pytest.raises(ValueError, match=f"outputs may be 1 to 6, got {outputs}"):
            transforms(outputs)
