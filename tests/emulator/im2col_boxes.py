"""Pixels of tensors through the copy engine in im2col mode: cases, what plain Python makes of them, and a launcher."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from climb.emulator import DeviceMemory, Module, load
from climb.emulator.memory.tensor_map import Im2col, TensorMap, encode
from climb.toolchain import Compiled, compile_cuda

from hopper_kernels import FOLDER  # isort: skip


@dataclass(frozen=True)
class Case:
    """Pixels of a packed tensor of `dims` elements (C, W, H, D, images), as in PTX innermost first.

    `start`: the first channel, and the coordinates of the first pixel.
    """

    name: str
    dims: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int
    start: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    nan_fill: bool = False
    dtype: str = "float32"
    how: str = "load"

    @property
    def kind(self) -> np.dtype:
        """The type of an element."""
        return np.dtype(self.dtype)

    def tensor(self, address: int) -> TensorMap:
        """The tensor map of the tensor at a device address."""
        strides = [self.kind.itemsize * int(np.prod(self.dims[:axis])) for axis in range(1, len(self.dims))]
        return TensorMap(
            self.dtype, address, self.dims, tuple(strides), (), self.steps or (1,) * len(self.dims), self.swizzle, 0,
            self.nan_fill, Im2col(self.lower, self.upper, self.channels, self.pixels),
        )  # fmt: skip

    @property
    def box_bytes(self) -> int:
        """The bytes that the copy moves."""
        return self.channels * self.pixels * self.kind.itemsize

    @property
    def shared_bytes(self) -> int:
        """The shared memory that is shown."""
        return -(-self.box_bytes // 1024) * 1024

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The tensor, outermost dimension first, and the bytes of the box."""
        rng = np.random.default_rng(len(self.name))
        whole = rng.integers(1, 1000, tuple(reversed(self.dims))).astype(self.kind)
        return whole, rng.integers(1, 1000, self.channels * self.pixels).astype(self.kind).view(np.uint8)

    def walk(self) -> Iterator[tuple[int, ...]]:
        """The coordinates W, H, D, image of each pixel in turn, before its offset."""
        at = list(self.start[1:])
        steps = (self.steps or (1,) * len(self.dims))[1:]
        ends = [dim + up for dim, up in zip(self.dims[1:], self.upper, strict=False)]
        for _ in range(self.pixels):
            yield tuple(at)
            for axis, end in enumerate(ends):
                at[axis] += steps[axis]
                if at[axis] < end:
                    break
                at[axis] = self.lower[axis]
            else:
                at[-1] += steps[-1]

    def places(self) -> Iterator[tuple[tuple[int, ...], bool, int]]:
        """For each element: its index in the tensor, outermost first, whether that is inside, its byte in shared."""
        size, number = self.kind.itemsize, 0
        for pixel in self.walk():
            moved = [a + o for a, o in zip(pixel, (*self.offsets, *(0,) * len(pixel)), strict=False)]
            for channel in range(self.start[0], self.start[0] + self.channels):
                at = (channel, *moved)
                byte, chunks = number * size, self.swizzle // 16
                if chunks:
                    row, chunk = byte // 128, byte // 16 % 8
                    byte = row * 128 + (chunk ^ row % chunks) * 16 + byte % 16
                yield tuple(reversed(at)), all(0 <= a < d for a, d in zip(at, self.dims, strict=True)), byte
                number += 1

    def expected(self) -> np.ndarray:
        """The bytes of shared memory that a load leaves."""
        whole, _ = self.contents()
        size = self.kind.itemsize
        out = np.full(self.shared_bytes, 0xEE, np.uint8)
        for index, inside, byte in self.places():
            fill = np.full(size // 2, 0x7FF7, np.uint16).tobytes() if self.nan_fill else bytes(size)
            out[byte : byte + size] = np.frombuffer(whole[index].tobytes() if inside else fill, np.uint8)
        return out


#: A convolution with a filter of 3 x 3 and a padding of 1, over images of 7 x 5 pixels with 16 channels.
_CONV = ((16, 7, 5, 3), (-1, -1), (-1, -1))
CASES = [
    Case("filter corner", *_CONV, 8, 24, (0, -1, -1, 0), (0, 0)),
    Case("filter centre", *_CONV, 8, 24, (8, 2, 1, 0), (1, 1)),
    Case("filter end", *_CONV, 16, 40, (0, 3, 2, 1), (2, 2)),
    Case("into the next image", *_CONV, 8, 64, (0, 5, 3, 0), (2, 0)),
    Case("beyond the last image", *_CONV, 8, 64, (0, 4, 3, 2), (0, 2), nan_fill=True),
    Case("no padding", (16, 7, 5, 3), (0, 0), (-2, -2), 8, 30, (0, 0, 0, 0), (2, 1)),
    Case("corners that differ", (16, 9, 6, 2), (-2, 1), (3, -1), 8, 40, (0, -2, 1, 0), (0, 0)),
    Case("step 2", *_CONV, 8, 20, (0, -1, -1, 0), (1, 1), steps=(1, 2, 2, 1)),
    Case("step 3 and 2", (16, 9, 6, 3), (-1, 0), (0, 0), 8, 24, (0, -1, 0, 0), (0, 0), steps=(1, 3, 2, 1)),
    Case("step from within", *_CONV, 8, 20, (0, 2, 0, 0), (0, 0), steps=(1, 2, 1, 1)),
    Case("swizzle 32", *_CONV, 8, 24, (0, 1, 0, 0), (1, 0), swizzle=32),
    Case("swizzle 128", (64, 7, 5, 2), (-1, -1), (-1, -1), 32, 24, (32, 1, 0, 0), (1, 2), swizzle=128),
    Case("channels beyond", (24, 7, 5, 2), (-1, -1), (-1, -1), 16, 12, (16, 0, 0, 0), (1, 1)),
    Case("half", (16, 7, 5, 3), (-1, -1), (-1, -1), 16, 24, (0, 0, 0, 0), (2, 2), dtype="float16", nan_fill=True),
    Case("three dimensions", (16, 20, 3), (-2,), (-2,), 8, 48, (0, 3, 0), (4,)),
    Case("five dimensions", (8, 5, 4, 3, 2), (-1, -1, -1), (-1, -1, -1), 8, 64, (0, 2, 1, 0, 0), (1, 2, 0)),
]


@functools.cache
def compiled(rank: int) -> Compiled:
    """The kernels for tensors of a rank."""
    source = (FOLDER / "im2col.cu").read_text(encoding="utf-8")
    options = (f"-DRANK={rank}",)
    return compile_cuda(source, filename="im2col.cu", include_dirs=(FOLDER,), arch="sm_90a", options=options)


@functools.cache
def _module(rank: int) -> Module:
    return load(compiled(rank).ptx, compiled(rank).sources)


def arguments(case: Case, other: int) -> tuple[int, ...]:
    """The arguments of a case's kernel after the tensor map, given the address of the other array."""
    start = (*case.start, 0, 0)[:5]
    if case.how == "load":
        return (other, case.box_bytes, case.shared_bytes, *start, *(*case.offsets, 0, 0, 0)[:3])
    return (other, case.box_bytes, *start)


def emulate(case: Case) -> np.ndarray:
    """The bytes that the emulator leaves, as in `Case.expected`."""
    memory = DeviceMemory()
    whole, box = case.contents()
    tensor = memory.allocate(whole.nbytes, "tensor")
    tensor.data[:] = whole.reshape(-1).view(np.uint8)
    other = memory.allocate(case.shared_bytes if case.how == "load" else box.size, "box")
    other.data[: box.size] = box
    packed = [encode(case.tensor(tensor.address))]
    packed += [struct.pack("<Q" if n == 0 else "<i", value) for n, value in enumerate(arguments(case, other.address))]
    made = compiled(len(case.dims))
    kernel = _module(len(case.dims)).kernel(made.lowered(f"{case.how}_pixels"))
    kernel.launch(1, 128, packed, memory=memory, shared_bytes=case.shared_bytes)
    return (other if case.how == "load" else tensor).data.copy()
