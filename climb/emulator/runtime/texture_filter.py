"""Linear filtering, bit by bit as on an H200.

The CUDA C++ Programming Guide ("Texture Fetching") says that weights have 8 fractional bits; the rest is inferred from
an H200's results. All of 155,648 reads of float32 textures of one to three dimensions and layers have the same bits,
and all but 4 of 20,480 reads of cubes, all in one direction. Other formats are taken to be alike.

- Normalised coordinates are cut to 21 fractional bits, and then multiplied by the extent. Where addressing clamps,
  coordinates are clamped to the centres of the outermost texels first.
- A weight is rounded to 256ths, halves up. Where dimensions combine, 256 is divided by z, each part by x, and each of
  these by y; the larger index gets the rounded product and the smaller one the rest, but for the lower half of x, where
  it is the other way around for y.
- Texels are aligned to the largest exponent among those whose weight is not zero, and cut to 28 bits, for each z by
  itself. The weighted sum is exact, and rounded once, halves away from zero.
"""

from __future__ import annotations

import numpy as np

_CUT = 1 << 21  # of normalised coordinates
_BITS = 27  # of a texel below its leading bit
ONE = 256


def cut(x: np.ndarray) -> np.ndarray:
    """Return normalised coordinates, float64, as the texture unit takes them."""
    return np.floor(x * _CUT) / _CUT


def weight(fraction: np.ndarray) -> np.ndarray:
    """Return the weight in 256ths of the texel with the larger index, int64."""
    return np.floor(fraction * ONE + 0.5).astype(np.int64)


def weights(high: tuple[np.ndarray, ...]) -> dict[tuple[int, ...], np.ndarray]:
    """Return the weights in 256ths of all texels of a read, by the part (0 lower, 1 higher) of each axis x, y, z.

    `high`: the weight of the higher part of each axis.
    """
    if len(high) == 1:
        return {(1,): high[0], (0,): ONE - high[0]}
    x, y, *rest = high
    out = {}
    for part, whole in ((1, rest[0]), (0, ONE - rest[0])) if rest else (((), ONE),):
        right = _share(whole, x)
        above, below = _share(right, y), _share(whole - right, ONE - y)
        end = (part,) if rest else ()
        out[1, 1, *end], out[1, 0, *end] = above, right - above
        out[0, 0, *end], out[0, 1, *end] = below, whole - right - below
    return out


def _share(whole: np.ndarray | int, part: np.ndarray) -> np.ndarray:
    return whole * part + ONE // 2 >> 8


def weighted_sum(texels: dict[tuple[int, ...], np.ndarray], parts: dict[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """Return the filtered float32 values, of texels float64 (..., channels) and weights in 256ths (...)."""
    total: np.ndarray | float = 0.0
    for plane in {place[2:] for place in texels}:
        here = [place for place in texels if place[2:] == plane]
        total = total + _aligned_sum([texels[place] for place in here], [parts[place][..., None] for place in here])
    return _rounded(total / ONE)


def _aligned_sum(texels: list[np.ndarray], parts: list[np.ndarray]) -> np.ndarray:
    seen = [np.where(part == 0, 0.0, np.abs(texel)) for texel, part in zip(texels, parts, strict=True)]
    largest = np.max(np.broadcast_arrays(*seen), axis=0)
    if not np.isfinite(largest).all():
        return sum(texel * part for texel, part in zip(texels, parts, strict=True))
    unit = np.ldexp(1.0, np.frexp(largest)[1] - 1 - _BITS)
    return sum(np.trunc(texel / unit) * unit * part for texel, part in zip(texels, parts, strict=True))


def _rounded(value: np.ndarray) -> np.ndarray:
    """Return float64 as float32, halves away from zero."""
    near = value.astype(np.float32)
    further = np.nextafter(near, np.copysign(np.float32(np.inf), near))
    half = (near.astype(np.float64) + further) / 2
    return np.where(np.isfinite(value) & (value == half), further, near)
