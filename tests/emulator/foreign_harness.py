"""Launch the programs in `foreign/`, with one planted fault or none, and read their outputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from harness import Device

from climb.emulator import ALL_CHECKS, Allocation, Counters, checking

FOREIGN = Path(__file__).parent / "foreign"
#: Seeded before every test.
RNG = np.random.default_rng()


class Foreign(Device):
    """A file of `foreign/`, with one fault or none."""

    def __init__(self, name: str, fault: int = 0, names: tuple[str, ...] = ()) -> None:
        super().__init__((FOREIGN / f"{name}.cu").read_text(), names, (f"-DFAULT={fault}",))

    def empty(self, shape: int | tuple[int, ...], dtype: type) -> Allocation:
        """Uninitialised memory."""
        return self.memory.allocate(int(np.prod(shape)) * np.dtype(dtype).itemsize, "out", initialised=False)

    def go(self, *args: object, **more: int) -> Counters:
        with checking(ALL_CHECKS):
            return self.launch(*args, **more)


def values(held: Allocation, dtype: type) -> np.ndarray:
    """The output; fails if a part of it was not written."""
    assert held.written is None or held.written.all(), "part of the output was never written"
    return held.data.view(dtype)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    return RNG.integers(low, high, shape).astype(np.int32)
