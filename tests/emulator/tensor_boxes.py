"""Boxes of tensors through the copy engine: cases, what NumPy makes of them, and how the emulator runs them."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import numpy as np

from climb.emulator import DeviceMemory, Module, load
from climb.emulator.memory.tensor_map import TensorMap, encode
from climb.toolchain import Compiled, compile_cuda

from hopper_kernels import FOLDER  # isort: skip

#: NumPy dtypes with the bits of each type of a tensor map.
BITS = {
    "uint8": "u1", "uint16": "u2", "uint32": "u4", "int32": "i4", "uint64": "u8", "int64": "i8", "float16": "f2",
    "float32": "f4", "float64": "f8", "bfloat16": "u2",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A box at coordinates `start` of a tensor of `dims` elements, innermost first, whose rows are padded to 16 bytes.

    `offset`: of the box in shared memory, from a multiple of 1024. `how`: "load", "store", or a reduction. `special`:
    zeros, subnormal numbers, infinities and NaNs occur.
    """

    name: str
    dtype: str
    dims: tuple[int, ...]
    box: tuple[int, ...]
    start: tuple[int, ...]
    how: str = "load"
    steps: tuple[int, ...] = ()
    swizzle: int = 0
    nan_fill: bool = False
    offset: int = 0
    special: bool = False

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours along each dimension but the first."""
        size = -(-np.dtype(BITS[self.dtype]).itemsize * self.dims[0] // 16) * 16
        out = []
        for extent in self.dims[1:]:
            out.append(size)
            size *= extent
        return tuple(out)

    @property
    def tensor_bytes(self) -> int:
        """The bytes from the first element to the end of the last row."""
        size = -(-np.dtype(BITS[self.dtype]).itemsize * self.dims[0] // 16) * 16
        return size * int(np.prod(self.dims[1:], dtype=np.int64))

    def tensor(self, address: int) -> TensorMap:
        """The tensor map of the tensor at a device address."""
        steps = self.steps or (1,) * self.rank
        return TensorMap(self.dtype, address, self.dims, self.strides, self.box, steps, self.swizzle, 0, self.nan_fill)

    @property
    def box_bytes(self) -> int:
        """The bytes of the box in shared memory."""
        return self.tensor(0).tile_bytes

    @property
    def shared_bytes(self) -> int:
        """The shared memory that the case fills, in bytes."""
        return -(-(self.offset + self.tensor(0).shared_bytes) // 1024) * 1024

    def contents(self) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the tensor and of the box, the same at every call."""
        rng = np.random.default_rng(len(self.name) + 7 * self.tensor_bytes)
        kind = np.dtype(BITS[self.dtype])
        out = []
        for nbytes in (self.tensor_bytes, self.box_bytes):
            if self.dtype == "bfloat16":
                values = (rng.standard_normal(nbytes // 2).astype("f4").view("u4") >> 16).astype("u2")
            elif kind.kind == "f":
                values = rng.standard_normal(nbytes // kind.itemsize).astype(kind)
            else:
                values = np.frombuffer(rng.bytes(nbytes), kind)
                values = values % 100 if self.how in ("inc", "dec") else values
            if self.special:
                values = np.ascontiguousarray(values).view(f"u{kind.itemsize}").copy()
                where = rng.random(values.size) < 0.7
                values[where] = rng.choice(_specials(self.dtype), np.count_nonzero(where))
            out.append(np.ascontiguousarray(values).view(np.uint8).copy())
        return out[0], out[1]

    @property
    def coordinates(self) -> tuple[int, ...]:
        """The coordinates, padded to five."""
        return (*self.start, 0, 0, 0, 0)[:5]


def _specials(dtype: str) -> np.ndarray:
    """The bits of zeros, the smallest and largest subnormal and normal numbers, infinity and NaN, of both signs."""
    exponent, fraction = {"float16": (5, 10), "bfloat16": (8, 7), "float32": (8, 23)}[dtype]
    one, most = 1 << fraction, (1 << exponent) - 1 << fraction
    bits = np.array([0, 1, one - 1, one, most - 1, most, most | one >> 1, 5, one + 7])
    kind = f"u{(exponent + fraction + 1) // 8}"
    return np.concatenate((bits, bits | 1 << exponent + fraction)).astype(kind)


def _loads() -> list[Case]:
    types = [Case(f"type {t}", t, (40, 6), (16, 4), (16 // np.dtype(BITS[t]).itemsize, 1)) for t in BITS]
    outside = [
        Case(f"outside {t} {'nan' if nan else 'zero'}", t, (40, 6), (16, 4), (32, 4), nan_fill=nan)
        for t in ("float16", "bfloat16", "float32", "float64")
        for nan in (False, True)
    ]
    swizzles = [
        Case(f"swizzle {bytes_} at {offset}", "float32", (64, 24), (bytes_ // 4, 24), (4, 0), swizzle=bytes_,
             offset=offset)
        for bytes_ in (32, 64, 128) for offset in (0, 128, 512)
    ]  # fmt: skip
    narrow = [Case(f"swizzle {s} of 16 bytes", "uint16", (64, 24), (8, 24), (8, 0), swizzle=s) for s in (32, 64, 128)]
    ranks = [
        Case("rank 1", "int32", (100,), (64,), (52,)),
        Case("rank 1 negative", "int32", (100,), (64,), (-12,)),
        Case("rank 3", "uint16", (24, 7, 5), (16, 3, 2), (8, 5, 4), swizzle=32),
        Case("rank 4", "float16", (16, 6, 5, 4), (16, 3, 2, 2), (-8, 4, 3, -1)),
        Case("rank 5", "uint8", (48, 3, 4, 3, 2), (32, 2, 3, 2, 2), (16, 1, -1, 2, 1), swizzle=64),
    ]
    steps = [
        Case("step 2", "float32", (32, 20), (16, 8), (4, 3), steps=(1, 2)),
        Case("step 3 of 8", "float32", (32, 20), (16, 8), (4, 15), steps=(1, 3)),
        Case("step 2 negative", "float32", (32, 20), (16, 8), (0, -3), steps=(1, 2)),
        Case("inner step is ignored", "float32", (32, 20), (16, 4), (4, 3), steps=(2, 1)),
    ]
    return types + outside + swizzles + narrow + ranks + steps


def _stores() -> list[Case]:
    reductions = {
        "add": ("uint32", "int32", "uint64", "float16", "bfloat16", "float32"),
        "min": ("uint32", "int32", "uint64", "int64", "float16", "bfloat16"),
        "max": ("uint32", "int32", "uint64", "int64", "float16", "bfloat16"),
        "inc": ("uint32",), "dec": ("uint32",), "and": ("uint32", "uint64"), "or": ("int32", "uint64"),
        "xor": ("uint32", "uint64"),
    }  # fmt: skip
    return [
        Case("store", "float32", (40, 6), (16, 4), (4, 1), "store"),
        Case("store outside", "float16", (40, 6), (16, 4), (32, 4), "store"),
        Case("store swizzled", "uint16", (64, 24), (64, 16), (8, 3), "store", swizzle=128),
        Case("store step", "float32", (32, 20), (16, 8), (4, 3), "store", steps=(1, 2)),
        Case("store rank 5", "uint8", (48, 3, 4, 3, 2), (32, 2, 3, 2, 2), (16, 1, 2, 2, 1), "store"),
        *(Case(f"{how} {t}", t, (40, 6), (16, 4), (32, 3), how) for how, types in reductions.items() for t in types),
    ]


#: Reductions whose rounding, subnormals and NaNs only a GPU can tell.
SPECIALS = [
    Case(f"special {how} {t}", t, (40, 6), (16, 4), (8, 1), how, special=True)
    for t, operations in (
        ("float32", ("add",)),
        ("float16", ("add", "min", "max")),
        ("bfloat16", ("add", "min", "max")),
    )
    for how in operations
]
LOADS, STORES = _loads(), _stores()


@functools.cache
def compiled(rank: int) -> Compiled:
    """The kernels for tensors of a rank."""
    source = (FOLDER / "boxes.cu").read_text(encoding="utf-8")
    options = (f"-DRANK={rank}",)
    return compile_cuda(source, filename="boxes.cu", include_dirs=(FOLDER,), arch="sm_90a", options=options)


@functools.cache
def _module(rank: int) -> Module:
    return load(compiled(rank).ptx, compiled(rank).sources)


def arguments(case: Case, out: int) -> tuple[int, ...]:
    """The arguments of a case's kernel after the tensor map, given the address of the other array."""
    if case.how == "load":
        return (out, case.offset, case.box_bytes, case.shared_bytes, *case.coordinates)
    return (out, case.box_bytes, *case.coordinates)


def emulate(case: Case) -> np.ndarray:
    """The bytes that a case leaves: of shared memory for a load, of the tensor for a store."""
    memory = DeviceMemory()
    whole, box = case.contents()
    tensor = memory.allocate(whole.size, "tensor")
    tensor.data[:] = whole
    other = memory.allocate(case.shared_bytes if case.how == "load" else box.size, "box")
    other.data[: box.size] = box
    packed = [encode(case.tensor(tensor.address))]
    packed += [struct.pack("<Q" if n == 0 else "<i", value) for n, value in enumerate(arguments(case, other.address))]
    kernel = _module(case.rank).kernel(compiled(case.rank).lowered(f"{case.how}_box"))
    kernel.launch(1, 128, packed, memory=memory, shared_bytes=case.shared_bytes)
    return (other if case.how == "load" else tensor).data.copy()
