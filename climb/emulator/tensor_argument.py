"""A tensor map as an argument of `run`: an array, and the box that the kernel's tensor copies move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .memory.tensor_map import TensorMap, encode


@dataclass(frozen=True)
class Tensor:
    """A parameter `const __grid_constant__ CUtensorMap`: the tensor map of `array`, which is copied in and back.

    `box` and `element_strides` are in the order of `array.shape`; the other fields are those of `TensorMap`. `dtype`:
    the element type if it is not the array's, such as "bfloat16" for 16-bit integers.
    """

    array: np.ndarray
    box: Sequence[int]
    swizzle: int = 0
    element_strides: Sequence[int] | None = None
    nan_fill: bool = False
    dtype: str | None = None

    def encode(self, address: int) -> bytes:
        """Return the 128 bytes of the tensor map for the packed array at a device address. Raises TensorMapError."""
        shape, size = self.array.shape, self.array.itemsize
        strides = [size * int(np.prod(shape[axis:], dtype=np.int64)) for axis in range(len(shape) - 1, 0, -1)]
        steps = self.element_strides if self.element_strides is not None else (1,) * len(shape)
        one = TensorMap(
            self.dtype or str(self.array.dtype), address, tuple(reversed(shape)), tuple(strides),
            tuple(reversed(self.box)), tuple(reversed(steps)), self.swizzle, 0, self.nan_fill,
        )  # fmt: skip
        return encode(one)
