"""Tensor maps whose fields a thread replaces: cases, what NumPy makes of them, and a launcher."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass, replace

import numpy as np

from climb.emulator import DeviceMemory, Module, load
from climb.emulator.memory.tensor_map import TensorMap, encode
from climb.toolchain import Compiled, compile_cuda

from hopper_kernels import FOLDER  # isort: skip

WIDTH, HEIGHT, BYTES = 64, 8, 4096
#: The tensor map that the host makes, of 16-bit integers, and the fields that the kernel replaces, by bit.
BEFORE = TensorMap("uint16", 0, (WIDTH, HEIGHT), (2 * WIDTH,), (16, 8), (1, 1))
FIELDS = (
    {"address": 1}, {"dims": (20, None)}, {"dims": (None, 5)}, {"strides": (256,)}, {"box": (None, 4)},
    {"element_strides": (None, 2)}, {"swizzle": 32}, {"nan_fill": True}, {"dtype": "bfloat16"},
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """The fields that are replaced, as bits of `what`, and where: in shared or (`direct`) in global memory."""

    name: str
    what: int
    start: tuple[int, int]
    direct: bool = False

    def after(self, address: int, other: int) -> TensorMap:
        """The tensor map after the replacements, of the tensor at `address`, or at `other`."""
        one = replace(BEFORE, address=address)
        for bit, change in enumerate(FIELDS):
            if self.what >> bit & 1:
                ((field, value),) = change.items()
                if isinstance(value, tuple):
                    value = tuple(b if a is None else a for a, b in zip(value, getattr(one, field), strict=True))
                one = replace(one, **{field: other if field == "address" else value})
        return one

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The tensor at each address."""
        rng = np.random.default_rng(8)
        return tuple(rng.integers(0, 1 << 16, BYTES // 2).astype(np.uint16) for _ in range(2))

    def expected(self) -> np.ndarray:
        """The box as uint8 (4096,)."""
        one = self.after(0, 1)
        data, out = self.contents()[one.address], np.full(BYTES, 0xEE, np.uint8)
        fill, number = 0x7FF7 if one.nan_fill else 0, 0
        for row in range(one.tile[1]):
            y = self.start[1] + row * one.element_strides[1]
            for column in range(one.tile[0]):
                x = self.start[0] + column
                inside = 0 <= x < one.dims[0] and 0 <= y < one.dims[1]
                value = data[y * one.strides[0] // 2 + x] if inside else fill
                byte = 2 * number
                if one.swizzle:
                    byte ^= byte >> 3 & 16
                out[byte : byte + 2] = np.array([value], np.uint16).view(np.uint8)
                number += 1
        return out


_NAMES = ("address", "width", "height", "stride", "box", "step", "swizzle")
CASES = [
    Case("nothing", 0, (8, 2)),
    *(Case(name, 1 << bit, (8, 2)) for bit, name in enumerate(_NAMES)),
    Case("fill and type", 1 << 7 | 1 << 8, (56, 4)),
    Case("all of a problem", 0b1111, (8, 1)),
    Case("all", 0b111111111, (8, 2)),
    Case("in global memory", 0b111111111, (8, 2), direct=True),
]


@functools.cache
def compiled() -> Compiled:
    """The kernel."""
    source = (FOLDER / "replace.cu").read_text(encoding="utf-8")
    return compile_cuda(source, filename="replace.cu", include_dirs=(FOLDER,), arch="sm_90a")


@functools.cache
def _module() -> Module:
    return load(compiled().ptx, compiled().sources)


def emulate(case: Case, before: TensorMap = BEFORE) -> np.ndarray:
    """The box that the emulator leaves, as in `Case.expected`."""
    memory = DeviceMemory()
    one, other = (memory.allocate(BYTES, name) for name in ("one", "other"))
    for held, data in zip((one, other), case.contents(), strict=True):
        held.data[:] = data.view(np.uint8)
    held, out = memory.allocate(128, "held"), memory.allocate(BYTES, "out")
    nbytes = case.after(0, 1).tile_bytes
    packed = [encode(replace(before, address=one.address))]
    packed += [struct.pack("<Q", each.address) for each in (held, other, out)]
    packed += [struct.pack("<i", each) for each in (case.what, case.direct, nbytes, *case.start)]
    _module().kernel("load_replaced").launch(1, 128, packed, memory=memory)
    return out.data.copy()
