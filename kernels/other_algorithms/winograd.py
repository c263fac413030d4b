"""Winograd's convolutions F(m x m, 3 x 3) in NumPy: their matrices, their operations, and their errors in float32.

F(m, r) makes m outputs of a filter of r taps from m + r - 1 products, by Toom and Cook's construction: two polynomials
are multiplied by their values at m + r - 2 points and at infinity. Lavin and Gray, "Fast algorithms for convolutional
neural networks" (arXiv 1509.09308), use it for the layers of networks, with the points 0, 1, -1, 2, -2, 1/2, -1/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

POINTS = (Fraction(0), Fraction(1), Fraction(-1), Fraction(2), Fraction(-2), Fraction(1, 2), Fraction(-1, 2))
TAPS = 3

Matrix = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class Transforms:
    """The matrices of F(m, 3): the outputs of one dimension are ``inverse @ ((weights @ w) * (data @ d))``.

    With n = m + 2, ``inverse`` is m x n, ``weights`` n x 3, ``data`` n x n: A^T, G and B^T of Lavin and Gray.
    """

    outputs: int
    inverse: Matrix
    weights: Matrix
    data: Matrix

    def arrays(self, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The three matrices, in their order above."""
        return tuple(np.array(matrix, dtype=dtype) for matrix in (self.inverse, self.weights, self.data))

    @property
    def products(self) -> Fraction:
        """Products for an output in two dimensions, without the transforms; the definition needs 9."""
        return Fraction((self.outputs + TAPS - 1) ** 2, self.outputs**2)


@cache
def transforms(outputs: int) -> Transforms:
    """The matrices of F(outputs, 3), for 1 to 6 outputs. Raises ValueError."""
    count = outputs + TAPS - 2
    if not 1 <= count - 1 <= len(POINTS) - 1:
        raise ValueError(f"outputs may be 1 to {len(POINTS) - TAPS + 2}, got {outputs}")
    points = POINTS[:count]
    # Interpolation divides by the product of distances between points; the weights' matrix takes these factors.
    distances = [_product(a - b for b in points if b != a) for a in points]
    inverse = tuple((*(a**i for a in points), Fraction(i == outputs - 1)) for i in range(outputs))
    weights = (
        *(tuple(a**j / d for j in range(TAPS)) for a, d in zip(points, distances, strict=True)),
        (Fraction(0), Fraction(0), Fraction(1)),
    )
    # Row k: the coefficients of the product of (x - b) over all other points, and over all points for infinity.
    data = (*(_from_roots([b for b in points if b != a], count + 1) for a in points), _from_roots(points, count + 1))
    return Transforms(outputs, inverse, weights, data)


def _product(factors) -> Fraction:
    found = Fraction(1)
    for factor in factors:
        found *= factor
    return found


def _from_roots(roots, length: int) -> tuple[Fraction, ...]:
    """The coefficients of the product of (x - root), from the constant on, with zeros up to ``length``."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [a - root * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
    return tuple(found + [Fraction(0)] * (length - len(found)))


def layer(source: np.ndarray, weights: np.ndarray, outputs: int, dtype: type = np.float32) -> np.ndarray:
    """A layer by F(outputs x outputs, 3 x 3), each operation in ``dtype``, valid outputs only.

    ``source`` is (channels, rows, cols), with rows - 2 and cols - 2 multiples of ``outputs``; ``weights`` is (maps,
    channels, 3, 3), not flipped. Returns (maps, rows - 2, cols - 2). Channels are summed in their order.
    """
    inverse, of_weights, of_data = transforms(outputs).arrays(dtype)
    channels, rows, cols = source.shape
    if (rows - 2) % outputs or (cols - 2) % outputs:
        raise ValueError(f"rows - 2 and cols - 2 must be multiples of {outputs}, got {rows} and {cols}")
    span = outputs + TAPS - 1
    windows = np.lib.stride_tricks.sliding_window_view(source.astype(dtype), (span, span), axis=(1, 2))
    tiles = windows[:, ::outputs, ::outputs]
    data = _both_sides(of_data, tiles)
    filters = _both_sides(of_weights, weights.astype(dtype))
    sums = np.zeros((weights.shape[0], *data.shape[1:]), dtype)
    for channel in range(channels):
        sums += filters[:, channel, None, None] * data[channel]
    found = _both_sides(inverse, sums)
    return found.transpose(0, 1, 3, 2, 4).reshape(weights.shape[0], rows - 2, cols - 2)


def direct(source: np.ndarray, weights: np.ndarray, dtype: type = np.float32) -> np.ndarray:
    """The definition's sums of the same layer, term by term in ``dtype``: (maps, rows - 2, cols - 2)."""
    channels, rows, cols = source.shape
    source, weights = source.astype(dtype), weights.astype(dtype)
    found = np.zeros((weights.shape[0], rows - 2, cols - 2), dtype)
    for c in range(channels):
        for y in range(TAPS):
            for x in range(TAPS):
                found += weights[:, c, y, x, None, None] * source[c, y : y + rows - 2, x : x + cols - 2]
    return found


def _both_sides(matrix: np.ndarray, tiles: np.ndarray) -> np.ndarray:
    """``matrix @ tile @ matrix.T`` for each tile of the last two dimensions, term by term."""
    return _rows(matrix, _rows(matrix, tiles).swapaxes(-1, -2)).swapaxes(-1, -2)


def _rows(matrix: np.ndarray, tiles: np.ndarray) -> np.ndarray:
    found = np.zeros((*tiles.shape[:-2], matrix.shape[0], tiles.shape[-1]), tiles.dtype)
    for row in range(matrix.shape[0]):
        for k in np.flatnonzero(matrix[row]):
            found[..., row, :] += matrix[row, k] * tiles[..., k, :]
    return found


def errors(
    outputs: int | None, channels: int = 64, maps: int = 8, side: int = 24, seed: int = 0
) -> tuple[float, float]:
    """Normwise and componentwise error in float32 of F(outputs x outputs, 3 x 3), or of the definition for None.

    Normwise: the largest error over the largest output. Componentwise: the largest error over the sum of magnitudes of
    the output's own terms. Inputs and weights are normally distributed; the reference is the definition in float64.
    """
    rng = np.random.default_rng(seed)
    source = rng.standard_normal((channels, side + 2, side + 2), dtype=np.float32)
    weights = rng.standard_normal((maps, channels, TAPS, TAPS), dtype=np.float32)
    exact = direct(source, weights, np.float64)
    found = direct(source, weights) if outputs is None else layer(source, weights, outputs)
    error, magnitudes = np.abs(found - exact), direct(np.abs(source), np.abs(weights), np.float64)
    return float(error.max() / np.abs(exact).max()), float((error / magnitudes).max())
