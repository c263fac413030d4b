"""cuDNN and cuFFT on the convolution of a cube, and PyTorch's module as a user's code calls it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries import cudnn, cufft, cufft_callbacks
from climb.bench.problem import Peer, Size


def _cudnn(tf32: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        source, weights, target = (arrays[name][None, None] for name in ("source", "weights", "target"))
        return cudnn.convolution(source, weights, target, padding=(size["k"] // 2,) * 3, tf32=tf32)

    return prepare


def _cufft(make: cufft.Make) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        return cufft.convolution(arrays["source"], arrays["weights"], arrays["target"], make)

    return prepare


def _module(benchmark: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        volumes = (arrays[name] for name in ("source", "weights", "target"))
        return cudnn.module_convolution(*volumes, padding=size["k"] // 2, benchmark=benchmark)

    return prepare


PEERS = (
    Peer("cuDNN", _cudnn(tf32=False), cudnn.cudnn(cudnn.BENCHMARKED, "fp32")),
    # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
    Peer(
        "cuDNN TF32",
        _cudnn(tf32=True),
        cudnn.cudnn(cudnn.BENCHMARKED, "TF32"),
        tolerance=lambda size: 2.0**-10,
    ),
    # A transform of m^3 points rounds at each of its log2(m^3) stages, relative to the largest sum.
    Peer(
        "cuFFT",
        _cufft(cufft.with_kernels),
        cufft.cufft,
        tolerance=lambda size: 2.0**-18,
    ),
    Peer(
        "cuFFT callbacks",
        _cufft(cufft_callbacks.with_callbacks),
        cufft.cufft,
        tolerance=lambda size: 2.0**-18,
    ),
    # As a user's code has it: PyTorch's defaults, or with torch.backends.cudnn.benchmark. Both allow TF32. In a process
    # that has searched for this convolution before, the default takes what the search found (see the chapter).
    Peer(
        "nn.Conv3d",
        _module(benchmark=False),
        cudnn.cudnn("torch.nn.Conv3d, PyTorch's defaults", "TF32"),
        tolerance=lambda size: 2.0**-10,
        isolated=True,
    ),
    Peer(
        "nn.Conv3d benchmark",
        _module(benchmark=True),
        cudnn.cudnn("torch.nn.Conv3d, benchmark mode, all algorithms tried", "TF32"),
        tolerance=lambda size: 2.0**-10,
    ),
)
