"""Finance and transforms: cuda-samples and VkFFT."""

from __future__ import annotations

import math

import numpy as np

from climb.emulator import Race, Uninitialised

from .program import WRONG, Project, Steps, close, empty, exact, floats, integers, launch, words

Random = np.random.Generator
samples = Project("NVIDIA/cuda-samples", "cuda_samples")
vkfft = Project("DTolm/VkFFT", "cuda_samples")


@samples("5_Domain_Specific/BlackScholes/BlackScholes_kernel.cuh")
def black_scholes(rng: Random) -> Steps:
    spot, strike, years = (rng.uniform(*limits, 200).astype(np.float32) for limits in ((5, 30), (1, 100), (0.25, 10)))
    call, put = empty(200), empty(200)
    s, x, t = (each.astype(np.float64) for each in (spot, strike, years))
    d1 = (np.log(s / x) + (0.02 + 0.5 * 0.09) * t) / (0.3 * np.sqrt(t))
    below = np.vectorize(lambda d: 0.5 * math.erfc(-d / math.sqrt(2)))
    value = s * below(d1) - x * np.exp(-0.02 * t) * below(d1 - 0.3 * np.sqrt(t))
    args = (call, put, spot, strike, years, 0.02, 0.3, 200)
    return Steps(
        [launch("black_scholes", 2, 128, *args)],
        [close(call, value, 1e-3), close(put, value - s + x * np.exp(-0.02 * t), 1e-3)],
    )


@samples("5_Domain_Specific/binomialOptions/binomialOptions_kernel.cu", {1: Race})
def binomial(rng: Random) -> Steps:
    s, x, out = rng.uniform(5, 30, 6).astype(np.float32), rng.uniform(1, 30, 6).astype(np.float32), empty(6)
    value = np.maximum(s[:, None] * np.exp(0.04 * (2 * np.arange(64) - 63)) - x[:, None], 0)
    for _ in range(63):
        value = 0.51 * value[:, 1:] + 0.48 * value[:, :-1]
    return Steps(
        [launch("binomial", 6, 64, s, x, out, 63, 0.04, 0.51, 0.48, shared=256)], [close(out, value[:, 0], 1e-4)]
    )


@samples("5_Domain_Specific/fastWalshTransform/fastWalshTransform_kernel.cuh", {2: Race})
def walsh(rng: Random) -> Steps:
    data, h = floats(rng, 3, 512), np.ones((1, 1))
    for _ in range(9):
        h = np.block([[h, h], [h, -h]])
    expected = data.astype(np.float64) @ h
    return Steps([launch("walsh", 3, 128, data, 9, shared=2048)], [close(data, expected, 1e-4)])


@samples("2_Concepts_and_Techniques/histogram/histogram64.cu", {3: Race})
def histogram64(rng: Random) -> Steps:
    data, out = integers(rng, 0, 256, 1500, dtype=np.uint8), np.zeros(64, np.uint32)
    return Steps([launch("histogram64", 3, 64, data, out, 1500)], [exact(out, np.bincount(data >> 2, minlength=64))])


@samples("2_Concepts_and_Techniques/convolutionSeparable/convolutionSeparable.cu", {4: Uninitialised})
def convolution_rows(rng: Random) -> Steps:
    x, y = floats(rng, 8, 100), empty(8, 100)
    taps = np.array([0.05, -0.1, 0.2, 0.3, 0.4, 0.25, -0.3, 0.15, 0.05])
    expected = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (4, 4))), 9, 1) @ taps
    return Steps([launch("convolution_rows", (2, 2), (64, 4), x, y, 100)], [close(y, expected)])


@samples("5_Domain_Specific/dwtHaar1D/dwtHaar1D_kernel.cuh", {5: (Race, Uninitialised)})
def haar(rng: Random) -> Steps:
    x, approx, detail = floats(rng, 256), empty(16), empty(240)
    signal, details = x.astype(np.float64), []
    for _ in range(4):
        a, b = signal[::2], signal[1::2]
        details.append((a - b) * math.sqrt(0.5))
        signal = (a + b) * math.sqrt(0.5)
    return Steps(
        [launch("haar", 1, 128, x, approx, detail, 4, shared=512)],
        [close(approx, signal), close(detail, np.concatenate(details))],
    )


def _fft(x: np.ndarray) -> np.ndarray:
    found = np.fft.fft(x[..., 0].astype(np.float64) + 1j * x[..., 1])
    return np.stack([found.real, found.imag], -1)


@vkfft("vkFFT/vkFFT/vkFFT_CodeGen", {6: (Race, Uninitialised)})
def stockham(rng: Random) -> Steps:
    x, y = floats(rng, 3, 128, 2), empty(3, 128, 2)
    return Steps([launch("stockham", 3, 64, x, y, 128, shared=2048)], [close(y, _fft(x), 1e-4)])


@vkfft("vkFFT/vkFFT/vkFFT_CodeGen", {7: WRONG})
def radix4(rng: Random) -> Steps:
    x, y = floats(rng, 3, 64, 2), empty(3, 64, 2)
    return Steps([launch("radix4", 3, 16, x, y)], [close(y, _fft(x), 1e-4)])


@samples("2_Concepts_and_Techniques/dct8x8/dct8x8_kernel1.cuh", {8: (Race, Uninitialised)})
def dct(rng: Random) -> Steps:
    x, y, k = floats(rng, 16, 24), empty(16, 24), np.arange(8)
    basis = np.cos(np.pi * np.outer(k, 2 * k + 1) / 16) * np.where(k, 0.5, math.sqrt(0.125))[:, None]
    tiles = x.reshape(2, 8, 3, 8).transpose(0, 2, 1, 3)
    expected = (basis @ tiles @ basis.T).transpose(0, 2, 1, 3).reshape(16, 24)
    return Steps([launch("dct", (3, 2), 8, x, y, 24)], [close(y, expected)])


@samples("2_Concepts_and_Techniques/eigenvalues/bisect_util.cu")
def sturm_count(rng: Random) -> Steps:
    diag, off, x, out = (
        floats(rng, 30),
        floats(rng, 29),
        np.linspace(-4, 4, 64, dtype=np.float32),
        empty(64, dtype=np.int32),
    )
    found = np.linalg.eigvalsh(np.diag(diag) + np.diag(off, 1) + np.diag(off, -1))
    return Steps([launch("sturm_count", 1, 64, diag, off, x, out, 30)], [exact(out, (found < x[:, None]).sum(1))])


@samples("5_Domain_Specific/SobolQRNG/sobol_gpu.cu", {9: (Race, Uninitialised)})
def sobol(rng: Random) -> Steps:
    direction, out, expected = words(rng, 2, 32), empty(2, 100), np.zeros((2, 100), np.uint32)
    for i in range(100):
        for bit in range(32):
            if (i ^ i >> 1) >> bit & 1:
                expected[:, i] ^= direction[:, bit]
    return Steps([launch("sobol", (1, 2), 128, direction, out, 100)], [close(out, expected / 2**32)])
