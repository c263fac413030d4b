"""The elements that a tensor copy moves, and the place of each in shared memory.

PTX ISA, section "Tensors": tile mode, im2col mode, and the swizzling modes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..memory.tensor_map import TensorMap


def swizzled(address: np.ndarray, swizzle: int) -> np.ndarray:
    """Return the place of the byte at a shared address with a swizzle of 32, 64 or 128 bytes (0: none).

    Bits 4, 4 to 5, or 4 to 6 of the address are exclusive-ored with the same number of bits from bit 7 on: 16-byte
    chunks change places within `swizzle` bytes, differently in each of 2, 4 or 8 rows of 128 bytes.
    """
    if not swizzle:
        return address
    return address ^ (address >> 3 & swizzle - 16)


@dataclass(frozen=True)
class Box:
    """The elements of one copy, in their order in shared memory, as int64 (n,).

    `inside`: which are in the tensor. `address`: global addresses of those. `offset`: bytes from the start of the box
    in shared memory, before the swizzle.
    """

    inside: np.ndarray
    address: np.ndarray
    offset: np.ndarray


def box_at(tensor: TensorMap, start: tuple[int, ...]) -> Box:
    """Return the box whose first element has the coordinates `start`, innermost first."""
    steps, strides = (1, *tensor.element_strides[1:]), (tensor.itemsize, *tensor.strides)
    address, inside = np.zeros(1, np.int64), np.ones(1, np.bool_)
    each = zip(start, tensor.tile, steps, strides, tensor.dims, strict=True)
    for first, extent, step, stride, dim in each:
        at = first + step * np.arange(extent, dtype=np.int64)
        address = ((at * stride)[:, None] + address).ravel()
        inside = (((at >= 0) & (at < dim))[:, None] & inside).ravel()
    rows = np.arange(inside.size // tensor.tile[0], dtype=np.int64) * tensor.row_bytes
    offset = rows[:, None] + np.arange(tensor.tile[0], dtype=np.int64) * tensor.itemsize
    return Box(inside, address[inside] + tensor.address, offset.ravel())


def pixels_at(tensor: TensorMap, start: tuple[int, ...], offsets: tuple[int, ...]) -> Box:
    """Return the channels of some pixels, in im2col mode. `start`: the first channel, then the first pixel: W, H, D,
    image.

    The pixels follow each other in the bounding box, along W first; each is then moved by `offsets` (W, H, D).
    """
    how = tensor.im2col
    pixel, inside, address = np.arange(how.pixels, dtype=np.int64), np.ones(how.pixels, np.bool_), 0
    carry, moved = pixel, (*offsets, 0)
    for axis, (first, step) in enumerate(zip(start[1:], tensor.element_strides[1:], strict=True)):
        dim, stride = tensor.dims[axis + 1], tensor.strides[axis]
        at = first + step * carry
        if axis < len(how.lower):  # beyond the box, it goes on at the lower corner of the next row
            low, end = how.lower[axis], dim + how.upper[axis]
            here = max(-(-(end - first) // step), 0)
            row = max(-(-(end - low) // step), 1)
            rows = np.where(carry < here, 0, 1 + (carry - here) // row)
            at = np.where(carry < here, at, low + step * ((carry - here) % row))
            carry = rows
        at = at + moved[axis]
        inside = inside & (at >= 0) & (at < dim)
        address = address + at * stride
    channel = start[0] + np.arange(how.channels, dtype=np.int64)
    every = (inside[:, None] & ((channel >= 0) & (channel < tensor.dims[0]))).ravel()
    places = (address[:, None] + channel * tensor.itemsize).ravel()
    offset = np.arange(every.size, dtype=np.int64) * tensor.itemsize
    return Box(every, places[every] + tensor.address, offset)


def bounding_box(tensor: TensorMap) -> list[tuple[int, int]]:
    """Return the first pixel and the end of the bounding box in im2col mode, along W, H and D."""
    how = tensor.im2col
    return [(low, dim + up) for low, up, dim in zip(how.lower, how.upper, tensor.dims[1:-1], strict=True)]
