"""Tensor maps for kernels that copy boxes of tensors with the copy engine (TMA)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from climb.emulator.memory.tensor_map import L2_PROMOTIONS, SWIZZLES, TYPES, TensorMap, check, encode

from .cuda import backend

#: The kernel's parameter: a structure of 128 bytes, passed by value as a `const __grid_constant__` parameter.
DTYPE = np.dtype([("opaque", "<u8", 16)])


def tensor_map(
    array: Any,
    box: Sequence[int],
    *,
    swizzle: int = 0,
    element_strides: Sequence[int] | None = None,
    l2_promotion: int = 0,
    nan_fill: bool = False,
    dtype: str | None = None,
    interleave: int = 0,
) -> np.ndarray:
    """Make the tensor map of a device array of one to five dimensions, as an argument of a kernel.

    `box` has the extents of the boxes that copies move, and `element_strides` the distances between copied elements
    within a box, in the order of `array.shape`. `swizzle`: 0, 32, 64 or 128 bytes. `l2_promotion`: 0, 64, 128 or 256
    bytes. `nan_fill`: elements outside the array are read as NaN instead of zero. `dtype`: the element type, if it is
    not the array's, such as "bfloat16" for an array of 16-bit integers.

    On a GPU the driver encodes it (`cuTensorMapEncodeTiled`), elsewhere the emulator; both by the same rules. Raises
    TensorMapError, a ValueError, if the tensor map breaks one of them; NotImplementedError for an `interleave` of 16 or
    32 bytes, which no kernel of the book uses.
    """
    if interleave:
        raise NotImplementedError(f"tensor maps with an interleave of {interleave} bytes are not supported")
    return encoded(describe(array, box, swizzle, element_strides, l2_promotion, nan_fill, dtype))


def encoded(one: TensorMap) -> np.ndarray:
    """Encode a tensor map as an argument of a kernel, by the driver or the emulator. Raises TensorMapError."""
    data = encode_by_driver(one) if backend == "cupy" else encode(one)
    return np.frombuffer(bytearray(data), DTYPE)


def describe(
    array: Any,
    box: Sequence[int],
    swizzle: int = 0,
    element_strides: Sequence[int] | None = None,
    l2_promotion: int = 0,
    nan_fill: bool = False,
    dtype: str | None = None,
) -> TensorMap:
    """Return the fields of a tensor map, innermost dimension first; arguments as for `tensor_map`. Raises ValueError
    for an array whose innermost dimension is not contiguous."""
    kind = dtype or str(array.dtype)
    size = array.dtype.itemsize
    if array.strides and array.strides[-1] != size and array.shape[-1] > 1:
        raise ValueError(f"the elements of the last dimension are {array.strides[-1]} bytes apart; they must touch")
    steps = tuple(element_strides) if element_strides is not None else (1,) * array.ndim
    return TensorMap(
        kind, int(array.data.ptr), tuple(reversed(array.shape)), tuple(reversed(array.strides[:-1])),
        tuple(int(extent) for extent in reversed(box)), tuple(int(step) for step in reversed(steps)), swizzle,
        l2_promotion, nan_fill,
    )  # fmt: skip


def encode_by_driver(one: TensorMap) -> bytes:
    """Encode a tensor map as 128 bytes by the CUDA driver.

    Raises TensorMapError if the tensor map breaks a rule, which the driver would not name, and RuntimeError if the
    driver refuses it all the same.
    """
    check(one)
    from cuda.bindings import driver

    whole, half = driver.cuuint64_t, driver.cuuint32_t
    status, found = driver.cuTensorMapEncodeTiled(
        driver.CUtensorMapDataType(TYPES.index(one.dtype)),
        one.rank,
        one.address,
        [whole(each) for each in one.dims],
        [whole(each) for each in one.strides],
        [half(each) for each in one.box],
        [half(each) for each in one.element_strides],
        driver.CUtensorMapInterleave(0),
        driver.CUtensorMapSwizzle(SWIZZLES.index(one.swizzle)),
        driver.CUtensorMapL2promotion(L2_PROMOTIONS.index(one.l2_promotion)),
        driver.CUtensorMapFloatOOBfill(int(one.nan_fill)),
    )
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuTensorMapEncodeTiled gives {status.name} for {one}")
    return b"".join(int(each).to_bytes(8, "little") for each in found.opaque)
