"""A peer for convolutions: cuFFT through CuPy, zero-padded so that the result equals the direct sum.

A product of spectra is a circular convolution. With ``n + r`` points per dimension, where r is the reach of the
weights, only zeros wrap around. Everything here needs a GPU and imports CuPy when called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: How many lengths of a transform are tried, from the shortest that suffices.
TRIED = 6


def smooth_lengths(least: int, count: int = TRIED) -> list[int]:
    """The first even lengths from ``least`` on without a prime factor above 13, for which cuFFT has kernels."""
    found: list[int] = []
    length = least
    while len(found) < count:
        rest = length
        for factor in (2, 3, 5, 7, 11, 13):
            while rest % factor == 0:
                rest //= factor
        if rest == 1 and length % 2 == 0:
            found.append(length)
        length += 1
    return found


def convolution(source: Any, weights: Any, target: Any) -> Callable[[], None]:
    """A function that convolves the cube ``source`` into ``target``, both float32 on the GPU, with zeros outside.

    Plans, buffers and the spectrum of the weights are made now, and the fastest of a few transform lengths is chosen by
    timing them. One call copies the cube into its padded place, transforms, multiplies, transforms back and
    copies the result out.
    """
    n, reach = source.shape[0], weights.shape[0] // 2
    timed = []
    for length in smooth_lengths(max(n + reach, weights.shape[0])):
        call = _with_length(source, weights, target, length)
        timed.append((_seconds(call), length))
        del call
    return _with_length(source, weights, target, min(timed)[1])


def _with_length(source: Any, weights: Any, target: Any, length: int) -> Callable[[], None]:
    import cupy
    from cupy.cuda import cufft
    from cupyx.scipy import fft

    n, k = source.shape[0], weights.shape[0]
    padded = cupy.zeros((length,) * 3, dtype=np.float32)
    spectrum = cupy.empty((length, length, length // 2 + 1), dtype=np.complex64)
    forward = fft.get_fft_plan(padded, axes=(0, 1, 2), value_type="R2C")
    backward = fft.get_fft_plan(spectrum, shape=padded.shape, axes=(0, 1, 2), value_type="C2R")
    # A correlation is a convolution with flipped weights whose centre is at the origin.
    padded[:k, :k, :k] = weights[::-1, ::-1, ::-1]
    turned = cupy.roll(padded, (-(k // 2),) * 3, axis=(0, 1, 2))
    factors = cupy.empty_like(spectrum)
    forward.fft(turned, factors, cufft.CUFFT_FORWARD)
    factors *= np.float32(1 / length**3)
    del turned
    padded.fill(0)
    inside = (slice(0, n),) * 3
    result = cupy.empty_like(padded)

    def enqueue() -> None:
        padded[inside] = source
        forward.fft(padded, spectrum, cufft.CUFFT_FORWARD)
        cupy.multiply(spectrum, factors, out=spectrum)
        backward.fft(spectrum, result, cufft.CUFFT_INVERSE)
        target[...] = result[inside]

    return enqueue


def _seconds(call: Callable[[], None], launches: int = 3) -> float:
    import cupy

    call()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    start.record()
    for _ in range(launches):
        call()
    stop.record()
    stop.synchronize()
    return cupy.cuda.get_elapsed_time(start, stop) * 1e-3 / launches


def describe() -> dict[str, str]:
    """A peer's ``describe`` for cuFFT, with the version that is loaded."""
    from cupy.cuda import cufft

    number = cufft.getVersion()
    version = f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    how = "R2C, product, C2R through CuPy, padded to the fastest length tried; spectrum of the weights made before"
    return {"name": "cuFFT", "version": version, "algorithm": how, "precision": "fp32"}
