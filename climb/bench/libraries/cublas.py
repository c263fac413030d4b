"""cuBLAS: products as PyTorch calls them, and the routines that PyTorch has no call for, through nvmath's bindings.

All peers use the one cuBLAS that PyTorch loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from climb.bench.libraries.choosing import Prepared, fastest
from climb.bench.libraries.description import Description, describe, dotted

#: The text in a record if TF32 was allowed and does not pay.
NO_TF32 = "TF32 allowed, but no faster than fp32 here"


def cublas(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for cuBLAS, with the version that is loaded."""

    def found() -> Description:
        import torch  # noqa: F401 - loads the cuBLAS that is described
        from nvmath.bindings import cublasLt

        return describe("cuBLAS", dotted(cublasLt.get_version(), 10000, 100, 1), algorithm, precision)

    return found


def product(tf32: bool) -> Callable[[dict[str, Any], Any], Callable[[], None]]:
    """A peer's ``prepare`` for C = A B, float32 and row-major, with the algorithm that cuBLAS chooses.

    Without ``tf32`` the products are fp32 FMAs; with it, tensor cores may round each factor to 11 bits, and the faster
    of both is taken.
    """

    def prepare(arrays: dict[str, Any], size: Any) -> Callable[[], None]:
        import torch

        a, b, c = (torch.from_dlpack(arrays[name]) for name in ("A", "B", "C"))
        return matmul(a, b, c, tf32)

    return prepare


def matmul(a: Any, b: Any, out: Any, tf32: bool) -> Prepared:
    """Return a launch of ``torch.matmul`` on tensors: in fp32, or in TF32 if that is allowed and faster."""
    import torch

    def with_setting(allowed: bool, chosen: Description) -> Callable[[], Prepared]:
        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = allowed
            torch.matmul(a, b, out=out)

        return lambda: Prepared(enqueue, chosen)

    if not tf32:
        return with_setting(False, {})()
    return fastest((with_setting(False, {"precision": "fp32", "choice": NO_TF32}), with_setting(True, {})))


def product_in_doubles(arrays: dict[str, Any], size: Any) -> Callable[[], None]:
    """A peer's ``prepare`` for C = A B, float32 in and out, multiplied in float64: each call also converts A, B and
    C."""
    import torch

    a, b, c = (torch.from_dlpack(arrays[name]) for name in ("A", "B", "C"))
    wide_a, wide_b, wide_c = (torch.empty_like(matrix, dtype=torch.float64) for matrix in (a, b, c))

    def enqueue() -> None:
        wide_a.copy_(a)
        wide_b.copy_(b)
        torch.mm(wide_a, wide_b, out=wide_c)
        c.copy_(wide_c)

    return Prepared(enqueue)


def product_of_halves(arrays: dict[str, Any], size: Any) -> Callable[[], None]:
    """A peer's ``prepare`` for C = A B, float16 factors and a float32 result, by the algorithm that cuBLAS chooses."""
    import torch

    a, b, c = (torch.from_dlpack(arrays[name]) for name in ("A", "B", "C"))
    return Prepared(lambda: torch.mm(a, b, out_dtype=torch.float32, out=c))


def transposition(source: Any, target: Any) -> Callable[[], None]:
    """Return a launch of ``cublasSgeam`` that writes the transpose of the matrix ``source`` into ``target``, CuPy
    arrays."""
    import cupy
    import torch  # noqa: F401 - loads the library
    from nvmath.bindings import cublas as library

    rows, cols = source.shape
    handle = library.create()
    one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
    transpose, keep = 1, 0  # CUBLAS_OP_T and CUBLAS_OP_N

    def enqueue() -> None:
        library.set_stream(handle, cupy.cuda.get_current_stream().ptr)
        # Column-major with the extents exchanged: a row-major matrix is its own transpose there.
        library.sgeam(
            handle, transpose, keep, rows, cols,
            one.ctypes.data, source.data.ptr, cols, zero.ctypes.data, target.data.ptr, rows, target.data.ptr, rows,
        )  # fmt: skip

    return Prepared(enqueue)


def saxpy(factor: float, x: Any, y: Any) -> Callable[[], None]:
    """Return a launch of ``cublasSaxpy``: ``y`` becomes ``factor * x + y``, both CuPy vectors of float32."""
    import cupy
    import torch  # noqa: F401 - loads the library
    from nvmath.bindings import cublas as library

    handle = library.create()
    scale = np.full(1, factor, np.float32)

    def enqueue() -> None:
        library.set_stream(handle, cupy.cuda.get_current_stream().ptr)
        library.saxpy(handle, x.size, scale.ctypes.data, x.data.ptr, 1, y.data.ptr, 1)

    return Prepared(enqueue)
