"""Kernels with Hopper's copy engine, barriers and clusters: how each is launched, and what it should compute."""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from climb.emulator import Counters, DeviceMemory, load
from climb.emulator.execution.schedules import Schedule
from climb.emulator.memory.tensor_map import TensorMap, encode
from climb.toolchain import Compiled, compile_cuda

FOLDER = Path(__file__).parent / "hopper"


@dataclass(frozen=True)
class Tensor:
    """An argument: a tensor map of the array argument `of`, a matrix, with boxes of `box` elements."""

    of: int
    box: tuple[int, int]
    swizzle: int = 0
    dtype: str = "float32"


@dataclass(frozen=True)
class Example:
    """A launch of the kernel `name` in the file of that name. `arrays` are copied; `args` are indices of arrays,
    tensor maps of them, and NumPy scalars. `results`: the arrays that must equal what `expected` makes of them all."""

    name: str
    grid: int | tuple[int, ...]
    block: int
    arrays: tuple[np.ndarray, ...]
    args: tuple[int | Tensor | np.generic, ...]
    results: tuple[int, ...]
    expected: Callable[..., tuple[np.ndarray, ...]]
    shared: int = 0
    edits: tuple[tuple[str, str], ...] = field(default=())

    @property
    def source(self) -> str:
        """The CUDA source, with the edits made."""
        text = (FOLDER / f"{self.name}.cu").read_text(encoding="utf-8")
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.name}.cu has {text.count(old)} times {old!r}")
            text = text.replace(old, new)
        return text


@functools.cache
def compiled(source: str, name: str) -> Compiled:
    """The source, compiled for Hopper's own instructions."""
    return compile_cuda(source, filename=f"{name}.cu", include_dirs=(FOLDER,), arch="sm_90a")


def tensor_map(tensor: Tensor, address: int, array: np.ndarray) -> TensorMap:
    """The tensor map of a matrix at a device address."""
    rows, columns = array.shape
    return TensorMap(tensor.dtype, address, (columns, rows), (array.strides[0],), tensor.box, (1, 1), tensor.swizzle)


def emulate(example: Example, schedule: Schedule | None = None) -> tuple[list[np.ndarray], Counters]:
    """Launch an example on the emulator: its arrays afterwards, and the counters."""
    made = compiled(example.source, example.name)
    memory = DeviceMemory()
    held = []
    for number, array in enumerate(example.arrays):
        held.append(memory.allocate(array.nbytes, f"array {number}"))
        held[-1].data[:] = array.reshape(-1).view(np.uint8)
    args = []
    for arg in example.args:
        if isinstance(arg, Tensor):
            args.append(encode(tensor_map(arg, held[arg.of].address, example.arrays[arg.of])))
        else:
            args.append(struct.pack("<Q", held[arg].address) if isinstance(arg, int) else arg.tobytes())
    kernel = load(made.ptx, made.sources).kernel(made.lowered(example.name))
    counters = kernel.launch(
        example.grid, example.block, args, memory=memory, shared_bytes=example.shared, schedule=schedule
    )
    return [
        each.data.view(array.dtype).reshape(array.shape).copy()
        for each, array in zip(held, example.arrays, strict=True)
    ], counters


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def transpose() -> Example:
    """96 x 64 floats, six tiles."""
    a = _random(96, 64)
    return Example(
        "transpose", (2, 3), 128, (a, np.zeros((64, 96), np.float32)),
        (Tensor(0, (32, 32), 128), Tensor(1, (32, 32), 128)), (1,), lambda a, b: (a.T,),
    )  # fmt: skip


def cluster_histogram() -> Example:
    """1000 values in 64 bins, by two clusters of two blocks."""
    values = np.random.default_rng(3).integers(0, 1 << 32, 1000, dtype=np.uint32)
    return Example(
        "cluster_histogram", 4, 96, (values, np.zeros(64, np.uint32)), (0, 1, np.int32(values.size)), (1,),
        lambda values, bins: (np.bincount(values % 64, minlength=64).astype(np.uint32),),
    )  # fmt: skip


def ring() -> Example:
    """Nine tiles of 512 floats through a ring of three, by two blocks."""
    a = _random(9 * 512)
    return Example("ring", 2, 256, (a, np.zeros_like(a)), (0, 1, np.int32(9)), (1,), lambda a, b: (2 * a,))


def multicast() -> Example:
    """Two clusters of two blocks; each block adds the same 32 x 32 tile to its rows."""
    tile, a = _random(32, 32), _random(4 * 32, 32)
    return Example(
        "multicast", 4, 128, (tile, a, np.zeros_like(a)), (Tensor(0, (32, 16)), 1, 2), (2,),
        lambda tile, a, b: (a + np.tile(tile, (4, 1)),),
    )  # fmt: skip


def bulk_sum() -> Example:
    """Ten rows of whole numbers, whose sums are exact, by four blocks."""
    rows = np.random.default_rng(5).integers(-100, 100, (10, 256)).astype(np.float32)
    return Example(
        "bulk_sum", 4, 256, (rows, np.ones(256, np.float32)), (0, 1, np.int32(10)), (1,),
        lambda rows, out: (rows.sum(axis=0) + 1,),
    )  # fmt: skip


ALL = (transpose, ring, cluster_histogram, multicast, bulk_sum)
