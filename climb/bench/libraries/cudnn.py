"""cuDNN as PyTorch calls it: every algorithm that cuDNN's heuristics list is tried, in the requested layout.

PyTorch tries the first ten by default (``torch.backends.cudnn.benchmark_limit``); here the limit is lifted.
``cudnn_graph`` asks cuDNN itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.cublas import NO_TF32
from climb.bench.libraries.description import Description, describe, dotted

BENCHMARKED = "cudnn_convolution, benchmark mode, all algorithms tried"


def cudnn(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for cuDNN through PyTorch, with both versions."""

    def found() -> Description:
        import torch

        version = dotted(torch.backends.cudnn.version(), 10000, 100, 1)
        return describe("cuDNN", version, f"{algorithm}, through PyTorch {torch.__version__}", precision)

    return found


def convolution(
    source: Any,
    weights: Any,
    target: Any,
    padding: tuple[int, ...],
    *,
    bias: Any = None,
    tf32: bool = False,
    channels_last: bool = False,
) -> Prepared:
    """Return a launch that convolves ``source`` into ``target``, both (batch, channels, ...) with one to three extents
    more.

    ``weights`` are (channels out, channels in, ...), on the host or on the GPU; ``padding`` has a number for each
    extent. A ``bias`` (channels out) is added by a second kernel, as PyTorch's ``conv2d`` does it. With
    ``channels_last``, arrays are brought into that layout now, and only the first result is brought back, to be
    verified. With ``tf32``, the faster of TF32 and fp32 is taken.
    """
    import torch

    torch.backends.cudnn.benchmark_limit = 0

    def with_setting(allowed: bool, chosen: Description) -> Callable[[], Prepared]:
        return lambda: _convolution(source, weights, target, padding, bias, allowed, channels_last, chosen)

    if not tf32:
        return with_setting(False, {})()
    return fastest((with_setting(False, {"precision": "fp32", "choice": NO_TF32}), with_setting(True, {})))


def _convolution(
    source: Any,
    weights: Any,
    target: Any,
    padding: tuple[int, ...],
    bias: Any,
    tf32: bool,
    channels_last: bool,
    chosen: Description,
) -> Prepared:
    import torch

    given, result = torch.from_dlpack(source), torch.from_dlpack(target)
    taps = torch.as_tensor(weights, device=given.device)
    out = result
    if channels_last:
        layout = {4: torch.channels_last, 5: torch.channels_last_3d}[given.dim()]
        given, taps = given.contiguous(memory_format=layout), taps.contiguous(memory_format=layout)
        out = torch.empty_like(result, memory_format=layout)
    offsets = None if bias is None else torch.from_dlpack(bias).reshape(1, -1, *[1] * len(padding))
    ones = [1] * len(padding)
    benchmark, deterministic = True, False

    def enqueue() -> None:
        torch.ops.aten.cudnn_convolution.out(
            given, taps, list(padding), ones, ones, 1, benchmark, deterministic, tf32, out=out
        )
        if offsets is not None:
            out.add_(offsets)

    enqueue()
    torch.cuda.synchronize()
    return Prepared(enqueue, chosen, (lambda: result.copy_(out)) if channels_last else None)


def convolution_of_image(
    image: Any, weights: Any, result: Any, border: str = "zero", tf32: bool = False
) -> Callable[[], None]:
    """Return a launch that convolves one image (rows, columns) with one filter of odd extents, all CuPy arrays.

    ``border`` is ``"zero"``, which cuDNN handles itself, or ``"clamp"`` or ``"reflect"``: then each call first writes
    the wider image with PyTorch, as ``conv2d`` with a ``padding_mode`` does, into memory that is allocated now.
    """
    import cupy
    import torch

    rows, cols = image.shape
    down, across = (extent // 2 for extent in weights.shape)
    taps = cupy.asnumpy(weights).reshape(1, 1, *weights.shape)
    source, target = image.reshape(1, 1, rows, cols), result.reshape(1, 1, rows, cols)
    if border == "zero":
        return convolution(source, taps, target, padding=(down, across), tf32=tf32)
    wide = cupy.zeros((1, 1, rows + 2 * down, cols + 2 * across), dtype=cupy.float32)
    given, padded = torch.from_dlpack(source), torch.from_dlpack(wide)
    convolve = convolution(wide, taps, target, padding=(0, 0), tf32=tf32)
    aten = torch.ops.aten
    pad = {"clamp": aten.replication_pad2d.out, "reflect": aten.reflection_pad2d.out}[border]

    def enqueue() -> None:
        pad(given, [across, across, down, down], out=padded)
        convolve()

    return Prepared(enqueue, convolve.chosen)


def module_convolution(source: Any, weights: Any, target: Any, padding: int, benchmark: bool) -> Prepared:
    """Return a launch of ``torch.nn.Conv3d(1, 1, ...)`` on a cube, as a user's code calls it, with a bias of zero.

    Without ``benchmark`` these are PyTorch's defaults: cuDNN's first heuristic choice, TF32 allowed. The result is a
    new tensor in each call; the first is copied into ``target``, to be verified.
    """
    import torch

    given, result = (torch.from_dlpack(array)[None, None] for array in (source, target))
    module = torch.nn.Conv3d(1, 1, weights.shape[0], padding=padding, device=given.device)
    module.weight.data.copy_(torch.from_dlpack(weights)[None, None])
    module.bias.data.zero_()
    made: list[Any] = [None]

    def enqueue() -> None:
        torch.backends.cudnn.benchmark = benchmark
        torch.backends.cudnn.benchmark_limit = 0
        torch.backends.cudnn.allow_tf32 = True
        made[0] = None  # its memory serves the next result: an allocation could wait for a blocked stream
        made[0] = module(given)

    enqueue()
    torch.cuda.synchronize()
    return Prepared(enqueue, {}, lambda: result.copy_(made[0].detach()))
