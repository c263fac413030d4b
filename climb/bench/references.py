"""Code shared by the references of several problems: sums over neighbours in float64, on all of the host's cores."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from climb.bench.threads import on_all_cores

Arrays = dict[str, np.ndarray]

#: Elements of one band of the output; its float64 temporaries stay in a core's cache.
BAND = 1 << 18


def sum_of_magnitudes(reference: Callable[[Arrays, Any], Arrays]) -> Callable[[Arrays, Any], Arrays]:
    """Return the ``reference_magnitude`` of a problem whose outputs are sums of products of its inputs: ``|A| |B|`` of
    ``AB``.

    It is the same reference, computed from the absolute values of the inputs. A bias counts as a term of its sum.
    """
    return lambda inputs, size: reference({name: np.abs(array) for name, array in inputs.items()}, size)


def correlate(source: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute the weighted sum of each element's neighbours in float64, with zeros outside; shaped like ``source``.

    ``weights`` has as many dimensions as ``source`` and odd extents; the middle one weighs the element itself.
    ``target[i] = sum over d of weights[d] * source[i + d - middle]``, in each dimension. Raises ValueError.
    """
    if weights.ndim != source.ndim or any(extent % 2 == 0 for extent in weights.shape):
        raise ValueError(
            f"weights of shape {weights.shape} for an array of {source.ndim} dimension(s): "
            "expected as many, and odd extents"
        )
    target = np.zeros(source.shape, np.float64)
    if source.size == 0:
        return target
    reach = [extent // 2 for extent in weights.shape]
    height = max(1, BAND // max(1, source.size // source.shape[0]))

    def fill(start: int) -> None:
        stop = min(start + height, source.shape[0])
        low, high = max(start - reach[0], 0), min(stop + reach[0], source.shape[0])
        extents = (stop - start, *source.shape[1:])
        band = np.zeros([extent + 2 * r for extent, r in zip(extents, reach, strict=True)])
        inner = tuple(slice(r, r + extent) for extent, r in zip(source.shape[1:], reach[1:], strict=True))
        band[(slice(low - start + reach[0], high - start + reach[0]), *inner)] = source[low:high]
        out = target[start:stop]
        part = np.empty_like(out)
        for at in product(*(range(extent) for extent in weights.shape)):
            here = tuple(slice(d, d + extent) for d, extent in zip(at, out.shape, strict=True))
            np.multiply(band[here], np.float64(weights[at]), out=part)
            out += part

    on_all_cores(fill, range(0, source.shape[0], height))
    return target
