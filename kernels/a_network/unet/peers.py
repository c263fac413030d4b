"""PyTorch on the same network: call by call, as a CUDA graph, compiled, and with the book's operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from climb.bench.libraries.captured import captured
from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description
from climb.bench.libraries.frameworks import pytorch
from climb.bench.problem import Peer, Size
from kernels.a_network.unet.network import network
from kernels.a_network.unet.torch_network import Convolve, as_product, forward, parameters_of

#: PyTorch's network with the book's operator in place of its conv1d.
OURS = "PyTorch graph, our conv1d"

CUDNN, TRIED, PRODUCTS = "cuDNN by its heuristics", "cuDNN in benchmark mode", "convolutions as matrix products"
#: Ways in which PyTorch computes the convolutions: whether cuDNN tries its algorithms, what replaces conv1d.
WAYS: dict[str, tuple[bool, Convolve | None]] = {
    CUDNN: (False, None),
    TRIED: (True, None),
    PRODUCTS: (False, as_product),
}


def _tolerance_tf32(size: Size) -> float:
    # TF32 rounds each factor to 11 bits, a relative error of 2^-11; the errors of all layers add up like a random walk.
    return 4 * 2.0**-11 * len(network(size["width"]).convolutions) ** 0.5


@contextmanager
def _settings(tried: bool, tf32: bool) -> Iterator[None]:
    import torch

    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=tried, allow_tf32=tf32):
            yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _call(arrays: dict[str, Any], size: Size, convolve: Convolve | None) -> tuple[Callable[[], Any], Any]:
    """A pass as a function of no arguments, and the tensor for its result."""
    import torch

    given = {name: torch.from_dlpack(array) for name, array in arrays.items()}
    p = parameters_of(size["width"], given["parameters"])
    inputs = (given[name] for name in ("sample", "timestep", "observation"))
    sample, timestep, observation = inputs
    return lambda: forward(size["width"], p, sample, timestep, observation, convolve), given["noise"]


def _eager(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
    import torch

    function, target = _call(arrays, size, None)

    def run() -> None:
        with torch.no_grad(), _settings(True, False):
            target.copy_(function())

    return run


def _graph(tf32: bool, compiled: bool) -> Callable[[dict[str, Any], Size], Callable[[], None]]:
    def prepare(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
        import torch

        def one(way: str) -> Callable[[], Prepared]:
            tried, convolve = WAYS[way]

            def make() -> Prepared:
                function, target = _call(arrays, size, convolve)
                if compiled:
                    torch._dynamo.reset()
                    function = torch.compile(function, dynamic=False)
                with _settings(tried, tf32):
                    return captured(function, target, {"choice": way})

            return make

        return fastest(one(way) for way in WAYS if not (compiled and way == TRIED))

    return prepare


def _with_our_operator(arrays: dict[str, Any], size: Size) -> Callable[[], None]:
    from climb.torch import conv1d

    function, target = _call(arrays, size, conv1d)
    with _settings(False, False):
        return captured(function, target)


def _described() -> Description:
    """A library of its own, so that it never passes for the best of PyTorch."""
    algorithm = "one CUDA graph, convolutions by climb.torch.conv1d where it takes them"
    return {**pytorch(algorithm, "fp32")(), "name": "PyTorch with our conv1d"}


PEERS = (
    Peer("PyTorch eager", _eager, pytorch("each operation called, cuDNN in benchmark mode", "fp32"), swept=False),
    Peer("PyTorch graph", _graph(False, False), pytorch("all operations as one CUDA graph", "fp32")),
    Peer(
        "PyTorch graph TF32", _graph(True, False), pytorch("all operations as one CUDA graph", "TF32"), _tolerance_tf32
    ),
    Peer(
        "torch.compile graph",
        _graph(False, True),
        pytorch("torch.compile, then one CUDA graph", "fp32"),
        swept=False,
    ),
    Peer(OURS, _with_our_operator, _described, swept=False),
)
