"""A convolution of rows as matrix products by cuBLASLt: unfolded (im2col), or a batch with a product for each tap.

Before anything is timed, the weights are brought into the product's layout, as a network would keep them, and the bias
is expanded to the result's shape, so that the product can add it.
"""

from __future__ import annotations

from typing import Any

from climb.bench.libraries import cublaslt
from climb.bench.libraries.choosing import Prepared
from climb.bench.libraries.cublaslt import Matrix, matrix


def unfolded(source: Any, weights: Any, bias: Any, target: Any, precision: str = "fp32") -> Prepared:
    """Return a launch that unfolds ``source`` (channels in, length) with PyTorch's ``im2col`` and multiplies.

    ``weights`` (channels out, channels in, taps), ``bias`` (channels out), ``target`` (channels out, length), with
    zeros outside the rows; all float32 CuPy arrays.
    """
    import cupy
    import torch

    channels, length = source.shape
    out, _, taps = weights.shape
    columns = cupy.empty((channels * taps, length), dtype=cupy.float32)
    added = cupy.ascontiguousarray(cupy.broadcast_to(bias[:, None], target.shape))
    given = torch.from_dlpack(source).reshape(1, channels, 1, length)
    made = torch.from_dlpack(columns)[None]
    flat = weights.reshape(out, channels * taps)

    def unfold() -> None:
        torch.ops.aten.im2col.out(given, [1, taps], [1, 1], [0, taps // 2], [1, 1], out=made)

    unfold()
    multiply = cublaslt.product(matrix(flat), matrix(columns), matrix(target), precision, matrix(added))

    def enqueue() -> None:
        unfold()
        multiply.enqueue()

    kept = (flat, columns, added)
    return Prepared(lambda: enqueue() if kept else None, multiply.chosen)


def by_taps(source: Any, weights: Any, bias: Any, target: Any, precision: str = "fp32") -> Prepared:
    """Return a launch that multiplies each tap's weights with the rows moved by that tap, in one batch, and sums the
    products.

    Nothing is unfolded: the batch reads the same padded rows, one element further for each tap. Arrays as in
    :func:`unfolded`.
    """
    import cupy
    import torch

    channels, length = source.shape
    out, _, taps = weights.shape
    wide = length + taps - 1
    padded = cupy.zeros((channels, wide), dtype=cupy.float32)
    inner = torch.from_dlpack(padded)[:, taps // 2 : taps // 2 + length]
    given = torch.from_dlpack(source)
    by_tap = cupy.ascontiguousarray(weights.transpose(2, 0, 1))
    products = cupy.empty((taps, out, length), dtype=cupy.float32)
    parts, result = torch.from_dlpack(products), torch.from_dlpack(target)
    offsets = torch.from_dlpack(bias)[:, None]
    inner.copy_(given)
    multiply = cublaslt.product(
        Matrix(by_tap.data.ptr, out, channels, channels, batch=taps, stride=out * channels),
        Matrix(padded.data.ptr, channels, length, wide, batch=taps, stride=1),
        Matrix(products.data.ptr, out, length, length, batch=taps, stride=out * length),
        precision,
    )

    def enqueue() -> None:
        inner.copy_(given)
        multiply.enqueue()
        torch.sum(parts, dim=0, out=result)
        result.add_(offsets)

    kept = (by_tap, padded, products)
    return Prepared(lambda: enqueue() if kept else None, multiply.chosen)
