"""cuDNN on a convolution layer, in the layout of the problem and in its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench import libraries
from climb.bench.problem import Peer, Size


def _prepare(tf32: bool, channels_last: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        import torch

        layout = torch.channels_last if channels_last else torch.contiguous_format
        given, taps, target = (torch.from_dlpack(arrays[name]) for name in ("input", "weights", "output"))
        given, target = given[None].contiguous(memory_format=layout), target[None]
        taps = taps.contiguous(memory_format=layout)
        out = torch.empty_like(target, memory_format=layout) if channels_last else target
        halo = [size["k"] // 2] * 2
        benchmark, deterministic = True, False
        to_bring = [out] if channels_last else []

        def convolve() -> None:
            torch.ops.aten.cudnn_convolution.out(
                given, taps, halo, [1, 1], [1, 1], 1, benchmark, deterministic, tf32, out=out
            )

        def enqueue() -> None:
            convolve()
            if to_bring:  # the first result, which is verified, in the problem's layout; those timed stay theirs
                target.copy_(to_bring.pop())

        convolve()
        torch.cuda.synchronize()
        return enqueue

    return prepare


def cudnn(precision: str, layout: str) -> Peer:
    """cuDNN in ``"fp32"`` or ``"TF32"``, ``"NCHW"`` or ``"NHWC"``; into the other layout it is brought beforehand."""
    algorithm = f"cudnn_convolution, benchmark mode, {layout}"
    # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
    return Peer(
        f"cuDNN {precision} {layout}",
        _prepare(precision == "TF32", layout == "NHWC"),
        libraries.cudnn(algorithm, precision),
        tolerance=(lambda size: 2.0**-10) if precision == "TF32" else None,
    )


PEERS = (cudnn("fp32", "NCHW"), cudnn("fp32", "NHWC"), cudnn("TF32", "NCHW"), cudnn("TF32", "NHWC"))
