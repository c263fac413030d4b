"""The vendor's libraries as peers. Everything here needs a GPU and imports its library when called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def cublas(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for cuBLAS, with the version that is loaded."""

    def describe() -> dict[str, str]:
        import cupy
        from cupy_backends.cuda.libs import cublas as library

        version = library.getVersion(cupy.cuda.device.get_cublas_handle())
        return _library("cuBLAS", f"{version // 10000}.{version // 100 % 100}.{version % 100}", algorithm, precision)

    return describe


def cublas_product(tf32: bool) -> Callable[[dict[str, Any], Any], Callable[[], None]]:
    """A peer's ``prepare`` for C = A B, float32 and row-major, with the algorithm that cuBLAS chooses.

    Without ``tf32`` the products are fp32 FMAs; with it, tensor cores round each factor to 11 bits.
    """

    def prepare(arrays: dict[str, Any], size: Any) -> Callable[[], None]:
        import torch

        a, b, c = (torch.from_dlpack(arrays[name]) for name in ("A", "B", "C"))

        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.matmul(a, b, out=c)

        return enqueue

    return prepare


def torch(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for PyTorch's own kernels."""

    def describe() -> dict[str, str]:
        import torch as library

        return _library("PyTorch", library.__version__, algorithm, precision)

    return describe


def cupy(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for CuPy's own kernels."""

    def describe() -> dict[str, str]:
        import cupy as library

        return _library("CuPy", library.__version__, algorithm, precision)

    return describe


def cub(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for the CUB inside CuPy, with CUB's own version."""

    def describe() -> dict[str, str]:
        from cupy.cuda import cub as library

        version = library.get_build_version()
        return _library("CUB", f"{version // 100000}.{version // 100 % 1000}.{version % 100}", algorithm, precision)

    return describe


def cub_reduction(source: Any, method: str, out: Any) -> Callable[[], None]:
    """A peer's launch: a reduction of a CuPy array to one element by CUB, never by CuPy's own kernels.

    ``method`` is a method of the array (``"sum"``, ``"max"``, ``"argmax"``). Raises RuntimeError without CUB.
    """
    import cupy
    from cupy import _core

    if not cupy.cuda.cub.available:
        raise RuntimeError("this CuPy was built without CUB")
    _core.set_reduction_accelerators(["cub"])
    _core.set_routine_accelerators(["cub"])
    scalar = out.reshape(())
    reduce = getattr(source, method)
    return lambda: reduce(out=scalar)


def cudnn(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for cuDNN as PyTorch calls it."""

    def describe() -> dict[str, str]:
        import torch as library

        number = library.backends.cudnn.version()
        version = f"{number // 10000}.{number // 100 % 100}.{number % 100}"
        return _library("cuDNN", version, f"{algorithm}, through PyTorch {library.__version__}", precision)

    return describe


def cudnn_convolution(
    source: Any, weights: Any, target: Any, padding: tuple[int, ...], tf32: bool = False
) -> Callable[[], None]:
    """A function that convolves ``source`` into ``target``, both (batch, channels, rows, columns) on the GPU.

    There may be more or fewer dimensions: ``padding`` has one number for each dimension after the channels. The weights
    are on the host or on the GPU.

    PyTorch's ``conv2d`` makes the same call, but allocates the array that it writes to. cuDNN's benchmark mode chooses
    the algorithm now.
    """
    import torch

    given, out = torch.from_dlpack(source), torch.from_dlpack(target)
    taps = torch.as_tensor(weights, device=given.device)
    ones = [1] * len(padding)
    benchmark, deterministic = True, False

    def enqueue() -> None:
        torch.ops.aten.cudnn_convolution.out(
            given, taps, list(padding), ones, ones, 1, benchmark, deterministic, tf32, out=out
        )

    enqueue()
    torch.cuda.synchronize()
    return enqueue


def cudnn_convolution_of_image(
    image: Any, weights: Any, result: Any, border: str = "zero", tf32: bool = False
) -> Callable[[], None]:
    """A function that convolves one image (rows, columns) with one filter of odd extents, all arrays on the GPU.

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
        return cudnn_convolution(source, taps, target, padding=(down, across), tf32=tf32)
    wide = cupy.zeros((1, 1, rows + 2 * down, cols + 2 * across), dtype=cupy.float32)
    given, padded = torch.from_dlpack(source), torch.from_dlpack(wide)
    convolve = cudnn_convolution(wide, taps, target, padding=(0, 0), tf32=tf32)
    aten = torch.ops.aten
    pad = {"clamp": aten.replication_pad2d.out, "reflect": aten.reflection_pad2d.out}[border]

    def enqueue() -> None:
        pad(given, [across, across, down, down], out=padded)
        convolve()

    return enqueue


def cudnn_layer(
    source: Any, weights: Any, bias: Any, target: Any, padding: tuple[int, int], tf32: bool = False
) -> Callable[[], None]:
    """A function that convolves ``source`` into ``target`` and adds the bias of each output channel, all on the GPU.

    Shapes: (batch, channels in, rows, columns), weights (channels out, channels in, taps down, taps across), bias
    (channels out), target (batch, channels out, rows, columns). These are the two kernels that PyTorch's ``conv2d``
    launches; cuDNN's benchmark mode chooses the algorithm now.
    """
    import torch

    given, taps, out = (torch.from_dlpack(array) for array in (source, weights, target))
    offsets = torch.from_dlpack(bias).reshape(1, -1, 1, 1)
    benchmark, deterministic = True, False

    def enqueue() -> None:
        torch.ops.aten.cudnn_convolution.out(
            given, taps, list(padding), [1, 1], [1, 1], 1, benchmark, deterministic, tf32, out=out
        )
        out.add_(offsets)

    enqueue()
    torch.cuda.synchronize()
    return enqueue


def driver(algorithm: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for work that the CUDA driver does itself."""

    def describe() -> dict[str, str]:
        import cupy

        version = cupy.cuda.runtime.driverGetVersion()
        return _library("CUDA driver", f"{version // 1000}.{version % 1000 // 10}", algorithm, "bytes")

    return describe


def _library(name: str, version: str, algorithm: str, precision: str) -> dict[str, str]:
    return {"name": name, "version": version, "algorithm": algorithm, "precision": precision}
