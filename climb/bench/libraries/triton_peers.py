"""Peers written in Triton, which comes with PyTorch: descriptions, and launches on CuPy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.description import Description, describe
from climb.bench.problem import PeerUnavailable


def triton(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for a Triton kernel of ours, with Triton's version."""

    def found() -> Description:
        import triton as library

        return describe("Triton", library.__version__, f"{algorithm}, autotuned", precision)

    return found


def product(a: Any, b: Any, c: Any, precision: str = "ieee") -> Prepared:
    """Return a launch of c = a b on CuPy arrays, c float32, a and b float32 or float16.

    ``precision`` is ``"ieee"``, ``"tf32"`` or ``"tf32x3"``; products of float16 ignore it.
    """
    import torch

    from climb.bench.libraries import triton_kernels

    return triton_kernels.product(*(torch.from_dlpack(array) for array in (a, b, c)), precision)


def layer(weights: Any, given: Any, out: Any, precision: str = "ieee") -> Prepared:
    """Return a launch of out = given weights^T: weights (outputs, inputs), given (batch, inputs), out (batch, outputs).

    A batch of one is a matrix-vector product, whose sums are float32 or int32 as the arrays are.
    """
    import torch

    from climb.bench.libraries import triton_kernels

    w, x, y = (torch.from_dlpack(array) for array in (weights, given, out))
    if x.shape[0] == 1:
        return triton_kernels.vector_product(w, x[0], y[0])
    return triton_kernels.product(x, w.t(), y, precision)


def histogram(values: Any, counts: Any) -> Prepared:
    """Return a launch that counts each of 0 ... bins - 1 among unsigned ``values``, CuPy arrays; counts are 32-bit
    integers.

    Raises :class:`PeerUnavailable` unless bins is a power of two: Triton has histograms only for those.
    """
    import torch

    from climb.bench.libraries import triton_kernels

    if counts.size.bit_count() != 1:
        raise PeerUnavailable("Triton has histograms of powers of two bins alone")
    # PyTorch has few operations on uint16, and Triton none on its pointers; bins end far below the sign.
    signed = values.view("int16") if values.dtype == "uint16" else values
    return triton_kernels.histogram(torch.from_dlpack(signed), torch.from_dlpack(counts.view("int32")))
