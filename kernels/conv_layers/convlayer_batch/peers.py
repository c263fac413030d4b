"""cuDNN on a batch of images, in float32, TF32 and float16.

The arrays of the problem are float32 in NCHW. What a peer wants otherwise is prepared beforehand, and its first result,
which is verified, is copied back; the timed calls stay in the peer's own layout and type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries import Prepared, cudnn
from climb.bench.problem import Peer, Size
from kernels.conv_layers.convlayer.peers import by_plan


def _prepare(precision: str, channels_last: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        import torch

        layout = torch.channels_last if channels_last else torch.contiguous_format
        kind = torch.float16 if precision == "fp16" else torch.float32
        given, taps, target = (torch.from_dlpack(arrays[name]) for name in ("input", "weights", "output"))
        given, taps = (array.to(kind).contiguous(memory_format=layout) for array in (given, taps))
        out = torch.empty(target.shape, dtype=kind, device=target.device, memory_format=layout)
        halo, benchmark, deterministic = [size["k"] // 2] * 2, True, False

        def enqueue() -> None:
            torch.ops.aten.cudnn_convolution.out(
                given, taps, halo, [1, 1], [1, 1], 1, benchmark, deterministic, precision == "TF32", out=out
            )

        torch.backends.cudnn.benchmark_limit = 0  # every algorithm is tried
        enqueue()
        torch.cuda.synchronize()
        return Prepared(enqueue, {}, lambda: target.copy_(out))

    return prepare


def by_layout(precision: str, layout: str) -> Peer:
    """cuDNN in ``"fp32"``, ``"TF32"`` or ``"fp16"`` (float32 sums), ``"NCHW"`` or ``"NHWC"``."""
    # TF32 and fp16 round each factor to 11 bits; fp16 rounds the result once more.
    tolerance = {"fp32": None, "TF32": lambda size: 2.0**-10, "fp16": lambda size: 2.0**-9}[precision]
    return Peer(
        f"cuDNN {precision} {layout}",
        _prepare(precision, layout == "NHWC"),
        cudnn.cudnn(f"{cudnn.BENCHMARKED}, {layout}", precision),
        tolerance=tolerance,
    )


def _images(arrays: dict[str, Any]) -> tuple[Any, Any, Any]:
    return arrays["input"], arrays["weights"], arrays["output"]


PEERS = (
    by_layout("fp32", "NCHW"),
    by_layout("fp32", "NHWC"),
    by_layout("TF32", "NHWC"),
    by_layout("fp16", "NHWC"),
    by_plan("fp32", _images),
    by_plan("TF32", _images),
)
