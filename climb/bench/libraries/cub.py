"""CUB: the one inside CuPy, and the one that ``cuda.compute`` compiles for the argument types as a C++ program does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.description import Description, describe, dotted
from climb.bench.problem import PeerUnavailable
from climb.toolchain.packages import preload


def inside_cupy(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for the CUB inside CuPy, with CUB's own version."""

    def found() -> Description:
        from cupy.cuda import cub

        return describe("CUB", dotted(cub.get_build_version(), 100000, 100, 1), algorithm, precision)

    return found


def compute(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for CUB through ``cuda.compute``, with the version of the package that contains it."""

    def found() -> Description:
        from importlib.metadata import version

        return describe("CUB", f"cuda-cccl {version('cuda-cccl')}", algorithm, precision)

    return found


def cupy_reduction(source: Any, method: str, out: Any) -> Callable[[], None]:
    """Return a launch: a reduction of a CuPy array to one element by CUB, never by CuPy's own kernels.

    ``method`` is a method of the array (``"sum"``, ``"max"``, ``"argmax"``). Raises :class:`PeerUnavailable` without
    CUB.
    """
    import cupy
    from cupy import _core

    if not cupy.cuda.cub.available:
        raise PeerUnavailable("this CuPy was built without CUB")
    _core.set_reduction_accelerators(["cub"])
    _core.set_routine_accelerators(["cub"])
    scalar = out.reshape(())
    reduce = getattr(source, method)
    return lambda: reduce(out=scalar)


def reduction(source: Any, operation: str, out: Any) -> Callable[[], None]:
    """Return a launch of CUB's ``DeviceReduce::Reduce`` on ``source`` into the one element of ``out``, in ``out``'s
    type.

    ``operation`` is ``"PLUS"`` or ``"MAXIMUM"``. The type of the initial value is that of the accumulator, so a
    float64 ``out`` sums float32 values in float64. Storage is allocated and code compiled now.
    """
    import cupy

    _load()
    from cuda.compute import OpKind, make_reduce_into

    first = {"PLUS": 0, "MAXIMUM": -np.inf}[operation]
    how: dict[str, Any] = {
        "d_in": source,
        "d_out": out,
        "op": OpKind[operation],
        "h_init": np.array([first], dtype=out.dtype),
    }
    reduce = make_reduce_into(**how)
    how["num_items"] = source.size
    storage = cupy.empty(max(1, reduce(temp_storage=None, **how)), dtype=cupy.uint8)
    return _on_current_stream(reduce, storage, how)


def histogram(values: Any, counts: Any) -> Callable[[], None]:
    """Return a launch that counts each of ``0 ... counts.size - 1`` among ``values``, both arrays on the GPU.

    It calls CUB's ``DeviceHistogram::HistogramEven`` with one bin per integer; its storage is allocated now.
    """
    import cupy

    _load()
    from cuda.compute import make_histogram_even

    how: dict[str, Any] = {
        "d_samples": values,
        "d_histogram": counts,
        "h_num_output_levels": np.array([counts.size + 1], dtype=np.int32),
        "h_lower_level": np.array([0], dtype=np.int32),
        "h_upper_level": np.array([counts.size], dtype=np.int32),
        "num_samples": values.size,
    }
    count = make_histogram_even(**how)
    storage = cupy.empty(max(1, count(temp_storage=None, **how)), dtype=cupy.uint8)
    return _on_current_stream(count, storage, how)


def _load() -> None:
    """Load the libraries that ``cuda.compute`` links with, of its own CUDA version: PyTorch may have loaded another."""
    for part in ("nvrtc", "nvjitlink", "cuda_runtime"):
        preload(part)


def _on_current_stream(algorithm: Any, storage: Any, how: dict[str, Any]) -> Prepared:
    import cupy

    def enqueue() -> None:
        algorithm(temp_storage=storage, stream=cupy.cuda.get_current_stream(), **how)

    return Prepared(enqueue)
