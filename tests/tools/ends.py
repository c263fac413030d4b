"""Run the ends of a launch whose arrays have more than 2^31 elements, in memory that is reserved and hardly touched."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from climb import BoundRung, cp
from climb.bench.problem import Size
from climb.emulator import DeviceMemory
from climb.emulator.execution.batches import Batches
from climb.emulator.execution.workers import workers

#: MAP_NORESERVE, which Python's mmap has no name for before 3.13. Only Linux needs it.
_NO_RESERVE = 0x4000 if sys.platform == "linux" else 0


def _untouched(nbytes: int) -> np.ndarray:
    """Zeroed bytes that take no memory before they are written. Raises OSError where the system reserves none."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, nbytes, flags=flags), np.uint8)


def empty(shape: tuple[int, ...], dtype: str) -> Any:
    """An array of zeros in emulated memory that has no pages yet."""
    from climb.fake_cupy.memory import Memory, MemoryPointer, device_memory

    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    with pytest.MonkeyPatch.context() as context:
        context.setattr(sys.modules[DeviceMemory.__module__], "buffer", _untouched)
        memory = Memory(device_memory.allocate(nbytes), owned=True)
    return cp.ndarray(shape, dtype, MemoryPointer(memory, 0))


def run_ends(rung: BoundRung, size: Size, corner: Mapping[str, np.ndarray]) -> Any:
    """Launch the blocks at the first and at the last corner of a rung's grid, and return its one output on the device.

    ``corner`` has, for every input, the values of its last elements along each axis; the elements before are zeros.
    """
    run = Batches.run

    def run_end(batches: Batches, number: int, *others: Any) -> None:
        """Run the first block and the last corner's four, where this batch holds them, each by itself: most of a
        batch's hundreds of blocks are in no corner."""
        assert batches.cluster == (1, 1, 1), "a block of a cluster cannot run by itself"
        last, across, start = batches.blocks - 1, batches.grid[0], number * batches.size
        alone = replace(batches, size=1)
        for block in sorted({0, last - across - 1, last - across, last - 1, last}):
            if start <= block < start + batches.size:
                run(alone, block, *others)

    arrays = {a.name: empty(a.extents(size), a.dtype) for a in rung.ladder.problem.arguments}
    for name, values in corner.items():
        arrays[name][tuple(slice(-extent, None) for extent in values.shape)] = cp.asarray(values)
    launch = rung.prepare(arrays, size)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(Batches, "run", run_end)
        with workers(1):
            launch()
    (output,) = rung.ladder.problem.outputs
    return arrays[output.name]
