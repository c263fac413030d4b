"""cuDNN on a convolution layer, in the layout of the problem and in its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries import cudnn, cudnn_graph
from climb.bench.problem import Peer, Size

Prepare = Callable[[dict[str, Any], Size], Callable[[], None]]
Images = Callable[[dict[str, Any]], tuple[Any, Any, Any]]


def _images(arrays: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Input and output as a batch of one, and the weights between them."""
    return arrays["input"][None], arrays["weights"], arrays["output"][None]


def _layer(tf32: bool, channels_last: bool) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        halo = (size["k"] // 2,) * 2
        return cudnn.convolution(*_images(arrays), halo, tf32=tf32, channels_last=channels_last)

    return prepare


def _graph(tf32: bool, images: Images) -> Prepare:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        return cudnn_graph.convolution(*images(arrays), (size["k"] // 2,) * 2, tf32=tf32)

    return prepare


def _peer(name: str, prepare: Prepare, describe: Callable[[], dict[str, str]], precision: str) -> Peer:
    # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
    return Peer(name, prepare, describe, tolerance=(lambda size: 2.0**-10) if precision == "TF32" else None)


def by_layout(precision: str, layout: str) -> Peer:
    """cuDNN in ``"fp32"`` or ``"TF32"``, ``"NCHW"`` or ``"NHWC"``; into the other layout it is brought beforehand."""
    prepare = _layer(precision == "TF32", layout == "NHWC")
    return _peer(
        f"cuDNN {precision} {layout}", prepare, cudnn.cudnn(f"{cudnn.BENCHMARKED}, {layout}", precision), precision
    )


def by_plan(precision: str, images: Images = _images) -> Peer:
    """The fastest of all plans of cuDNN's graph API in ``"fp32"`` or ``"TF32"``, in either layout.

    ``images`` takes input, weights and output, with a batch, from the arrays of the problem.
    """
    describe = cudnn_graph.cudnn_graph("convolution as a graph, every plan timed", precision)
    return _peer(f"cuDNN {precision} best plan", _graph(precision == "TF32", images), describe, precision)


PEERS = (
    by_layout("fp32", "NCHW"),
    by_layout("fp32", "NHWC"),
    by_layout("TF32", "NCHW"),
    by_layout("TF32", "NHWC"),
    by_plan("fp32"),
    by_plan("TF32"),
)
