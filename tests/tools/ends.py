"""Run the ends of a launch whose arrays have more than 2^31 elements, in memory that is reserved and hardly touched."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from climb import BoundRung, cp
from climb.bench.problem import Size

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
        context.setattr("climb.emulator.memory.buffer", _untouched)
        memory = Memory(device_memory.allocate(nbytes), owned=True)
    return cp.ndarray(shape, dtype, MemoryPointer(memory, 0))


def run_ends(rung: BoundRung, size: Size, corner: Mapping[str, np.ndarray]) -> Any:
    """Launch the blocks at the first and at the last corner of a rung's grid, and return its one output on the device.

    ``corner`` has, for every input, the values of its last elements along each axis; the elements before are zeros.
    """
    from climb.emulator import module

    batch = module.Batch

    class Ends:
        """A batch that has the first block or one of the last corner's four, or one that does nothing."""

        def __init__(self, kernel: Any, grid: Any, block: Any, start: int, blocks: int, *rest: Any) -> None:
            last = int(np.prod(grid, dtype=np.int64)) - 1
            wanted = (0, last, last - 1, last - grid[0], last - grid[0] - 1)
            ours = any(start <= index < start + blocks for index in wanted)
            self._batch = batch(kernel, grid, block, start, blocks, *rest) if ours else None

        def run(self) -> None:
            if self._batch is not None:
                self._batch.run()

    arrays = {a.name: empty(a.extents(size), a.dtype) for a in rung.ladder.problem.arguments}
    for name, values in corner.items():
        arrays[name][tuple(slice(-extent, None) for extent in values.shape)] = cp.asarray(values)
    launch = rung.prepare(arrays, size)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(module, "Batch", Ends)
        launch()
    (output,) = rung.ladder.problem.outputs
    return arrays[output.name]
