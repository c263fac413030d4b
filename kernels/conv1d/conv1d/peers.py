"""cuDNN and cuBLAS on a convolution of rows: in both layouts, with the bias fused, and as a matrix product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries import cublas, cudnn, cudnn_graph, unfolded
from climb.bench.problem import Peer, Size

ALGORITHM = f"{cudnn.BENCHMARKED}, then the bias"
Prepare = Callable[[dict[str, Any], Size], Callable[[], None]]


def _images(arrays: dict[str, Any], size: Size) -> tuple[Any, Any, Any]:
    """Input, weights and output as images of one row."""
    i, o, l, k = (size[key] for key in "iolk")  # noqa: E741
    return (
        arrays["input"].reshape(1, i, 1, l),
        arrays["weight"].reshape(o, i, 1, k),
        arrays["output"].reshape(1, o, 1, l),
    )


def _cudnn(tf32: bool, channels_last: bool) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        images, padding = _images(arrays, size), (0, size["k"] // 2)
        return cudnn.convolution(*images, padding, bias=arrays["bias"], tf32=tf32, channels_last=channels_last)

    return prepare


def _graph(tf32: bool) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        return cudnn_graph.convolution(*_images(arrays, size), (0, size["k"] // 2), bias=arrays["bias"], tf32=tf32)

    return prepare


def _product(multiply: Callable[..., Callable[[], None]], precision: str) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        return multiply(*(arrays[name] for name in ("input", "weight", "bias", "output")), precision)

    return prepare


def _peer(name: str, prepare: Prepare, describe: Callable[[], dict[str, str]], precision: str, swept: bool) -> Peer:
    # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
    return Peer(name, prepare, describe, (lambda size: 2.0**-10) if precision == "TF32" else None, swept=swept)


def _both(precision: str) -> tuple[Peer, ...]:
    tf32 = precision == "TF32"
    fused = "convolution and bias in one graph, every plan timed"
    folded = "im2col, then cublasLtMatmul with the bias, heuristics timed"
    batch = "a batch of products by taps with cublasLtMatmul, heuristics timed, then their sum"
    return (
        _peer(f"cuDNN {precision}", _cudnn(tf32, False), cudnn.cudnn(ALGORITHM, precision), precision, True),
        _peer(
            f"cuDNN {precision} NHWC",
            _cudnn(tf32, True),
            cudnn.cudnn(f"{ALGORITHM}, NHWC", precision),
            precision,
            False,
        ),
        # Swept are the calls of PyTorch, and the forms that are fastest at some layer in some precision.
        _peer(f"cuDNN {precision} fused", _graph(tf32), cudnn_graph.cudnn_graph(fused, precision), precision, tf32),
        _peer(
            f"im2col + cuBLAS {precision}",
            _product(unfolded.unfolded, precision),
            cublas.cublas(folded, precision),
            precision,
            True,
        ),
        _peer(
            f"batched cuBLAS {precision}",
            _product(unfolded.by_taps, precision),
            cublas.cublas(batch, precision),
            precision,
            False,
        ),
    )


PEERS = (*_both("fp32"), *_both("TF32"))
