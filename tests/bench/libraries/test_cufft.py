"""The tilings of the cuFFT peers: kernels and callbacks run on the emulator, the transforms in NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from climb import emulator
from climb.bench.libraries import cufft, cufft_callbacks
from climb.bench.libraries.cufft import Tiling, overlap_save, tilings, whole
from climb.bench.problem import PeerUnavailable
from climb.bench.references import correlate

THREADS = 64


def spectrum(weights: np.ndarray, cut: Tiling) -> np.ndarray:
    """The result of ``spectrum_of``, in NumPy."""
    padded = np.zeros(cut.lengths)
    padded[tuple(slice(0, extent) for extent in weights.shape)] = weights[(slice(None, None, -1),) * weights.ndim]
    turned = np.roll(padded, tuple(-(extent // 2) for extent in weights.shape), tuple(range(weights.ndim)))
    return np.fft.rfftn(turned)


def convolved(source: np.ndarray, weights: np.ndarray, cut: Tiling) -> np.ndarray:
    """The peer's five steps, those that are kernels on the emulator."""
    text = cut.source() + cufft._KERNELS
    tiles, target = np.zeros(cut.points, np.float32), np.full(source.shape, np.nan, np.float32)
    grid, count = (-(-cut.points // THREADS),), np.int64(cut.points)
    emulator.run(text, "gather", grid=grid, block=(THREADS,), args=[source, tiles, count])
    axes = tuple(range(1, source.ndim + 1))
    spectra = np.fft.rfftn(tiles.reshape(cut.batch, *cut.lengths), axes=axes) * spectrum(weights, cut)
    back = np.fft.irfftn(spectra, s=cut.lengths, axes=axes).astype(np.float32).reshape(-1)
    emulator.run(text, "keep", grid=grid, block=(THREADS,), args=[back, target, count])
    return target


CUTS = [
    ((9, 13), (5, 3), whole((9, 13), (2, 1), (12, 14))),
    ((21, 9), (3, 5), overlap_save((21, 9), (1, 2), 8)),
    ((5, 7, 6), (3, 3, 3), whole((5, 7, 6), (1, 1, 1), (6, 8, 8))),
    ((9, 4, 11), (3, 3, 3), overlap_save((9, 4, 11), (1, 1, 1), 6)),
]


@pytest.mark.parametrize(
    ("shape", "taps", "cut"), CUTS, ids=lambda value: str(value) if isinstance(value, Tiling) else ""
)
def test_a_tiling_gives_the_direct_sum(shape, taps, cut):
    rng = np.random.default_rng(0)
    source, weights = rng.random(shape, dtype=np.float32), rng.random(taps, dtype=np.float32)
    np.testing.assert_allclose(convolved(source, weights, cut), correlate(source, weights), rtol=1e-5)


@pytest.mark.parametrize("cut", [CUTS[1][2], CUTS[3][2]], ids=str)
def test_a_tile_writes_its_own_results_and_none_of_its_overlap(cut):
    """Another tile might write the right value over a wrong one, so the first tile is kept alone."""
    points = np.int64(cut.points // cut.batch)
    target = np.full(cut.extents, np.nan, np.float32)
    args = [np.ones(cut.points, np.float32), target, points]
    emulator.run(cut.source() + cufft._KERNELS, "keep", grid=(-(-int(points) // 64),), block=(64,), args=args)
    written = np.zeros(cut.extents, bool)
    written[tuple(slice(0, step) for step in cut.steps)] = True
    np.testing.assert_array_equal(np.isfinite(target), written)


def test_the_kernel_multiplies_every_tiles_spectrum_with_the_same_factors():
    cut = overlap_save((9, 9), (1, 1), 4)
    rng = np.random.default_rng(0)
    spectra = rng.random((cut.batch * cut.spectrum, 2), dtype=np.float32)
    factors = rng.random((cut.spectrum, 2), dtype=np.float32)
    expected = (spectra.view(np.complex64).reshape(cut.batch, -1) * factors.view(np.complex64).reshape(1, -1)).ravel()
    args = [spectra, factors, np.int32(cut.spectrum), np.int64(len(spectra))]
    emulator.run(cut.source() + cufft._KERNELS, "multiply", grid=(-(-len(spectra) // 64),), block=(64,), args=args)
    np.testing.assert_allclose(spectra.view(np.complex64).ravel(), expected, rtol=1e-6)


def test_too_short_transforms_and_too_large_overlaps_are_refused():
    with pytest.raises(ValueError, match="too few"):
        whole((9, 13), (2, 1), (10, 14))
    with pytest.raises(ValueError, match="less than half"):
        overlap_save((90, 90), (3, 3), 10)


def test_tilings_begin_with_whole_volumes_and_tiles_are_shorter_than_the_volume():
    found = list(tilings((96, 96, 96), (5, 5, 5)))
    assert [cut.batch for cut in found[: cufft.TRIED]] == [1] * cufft.TRIED
    assert [cut.lengths[0] for cut in found[cufft.TRIED :]] == [24, 32, 48, 64]
    said = [str(cut) for cut in found]
    assert said[0] == "whole, 104 x 104 x 104 points"
    assert said[cufft.TRIED + 1] == "overlap-save, 125 tiles of 32 x 32 x 32"


def test_the_compiler_of_callbacks_lies_beside_the_loaded_cufft():
    maps = (
        "7f00-7f01 r--p 0 00:00 0 /opt/lib/libc.so.6\n7f02-7f03 r-xp 0 00:00 1 /venv/nvidia/cu13/lib/libcufft.so.12\n"
    )
    assert str(cufft_callbacks.folder_of_library("libcufft.so", maps)) == "/venv/nvidia/cu13/lib"
    with pytest.raises(PeerUnavailable, match=r"libcufft\.so is not loaded"):
        cufft_callbacks.folder_of_library("libcufft.so", "")


#: A kernel that calls each callback as cuFFT does, once for each point.
CALLERS = (
    """
extern "C" __global__ void gather(float* source, float* tiles, long long count)
{
    const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) tiles[i] = cufftJITCallbackLoadReal(source, i, nullptr, nullptr);
}
""",
    """
extern "C" __global__ void multiply(float2* spectra, float2* factors, int, long long count)
{
    const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) spectra[i] = cufftJITCallbackLoadComplex(spectra, i, factors, nullptr);
}
""",
    """
extern "C" __global__ void keep(float* tiles, float* target, long long count)
{
    const unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) cufftJITCallbackStoreReal(nullptr, i, tiles[i], target, nullptr);
}
""",
)


@pytest.mark.parametrize(("name", "caller"), list(zip(cufft_callbacks._CALLBACKS, CALLERS, strict=True)))
def test_a_callback_does_what_the_kernel_in_its_place_does(name, caller):
    cut = overlap_save((5, 3), (1, 1), 4)
    count = cut.points if name.endswith("Real") else cut.batch * cut.spectrum
    kernel = caller.split("void ")[1].split("(")[0]
    results = []
    # Inlined, as cuFFT's linker has it: the emulator runs a call of an external function in many more steps.
    text = cufft_callbacks.callback(name, cut)
    inlined = re.sub(r"^(__device__ \w+ cufftJIT)", r"static __forceinline__ \1", text, flags=re.MULTILINE)
    assert inlined.count("__forceinline__") == 1
    for text in (cut.source() + cufft._KERNELS, inlined + caller):
        rng = np.random.default_rng(0)
        first, second = (rng.random(2 * count, dtype=np.float32) for _ in range(2))
        args = [first, second, *([np.int32(cut.spectrum)] if kernel == "multiply" else []), np.int64(count)]
        emulator.run(text, kernel, grid=(-(-count // THREADS),), block=(THREADS,), args=args)
        results.append((first, second))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
