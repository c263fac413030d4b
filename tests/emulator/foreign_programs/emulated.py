"""Run foreign programs on the emulator with all checks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from foreign_harness import FOREIGN, values
from harness import Device

from climb.emulator import ALL_CHECKS, Allocation, Counters, DeviceMemory, checking

from .program import Empty, Program


@lru_cache(maxsize=4)
def _device(file: str, fault: int, names: tuple[str, ...]) -> Device:
    return Device((FOREIGN / f"{file}.cu").read_text(), names, (f"-DFAULT={fault}",))


def run(program: Program, fault: int = 0) -> list[Counters]:
    """Launch the program, check its outputs, return the counters of each launch.

    Raises
    ------
    AssertionError
        an output is wrong or was not written
    EmulatorError
        the emulator found a fault
    """
    device, steps = _device(program.file, fault, program.names), program.steps()
    device.memory = DeviceMemory()
    held: dict[int, Allocation] = {}

    def upload(arg: object) -> object:
        if not isinstance(arg, np.ndarray | Empty):
            return arg
        if id(arg) not in held:
            if isinstance(arg, Empty):
                size = int(np.prod(arg.shape)) * np.dtype(arg.dtype).itemsize
                held[id(arg)] = device.memory.allocate(size, "out", initialised=False)
            else:
                held[id(arg)] = device.upload(arg)
        return held[id(arg)]

    counters = []
    with checking(ALL_CHECKS):
        for one in steps.launches:
            args = [upload(arg) for arg in one.args]
            counters.append(device.launch(one.kernel, one.grid, one.block, *args, shared=one.shared))
    for each in steps.expected:
        each.check(values(held[id(each.buffer)], each.buffer.dtype))
    return counters
