"""Run foreign programs on the emulator with all checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from foreign_harness import values
from harness import Device

from climb.emulator import ALL_CHECKS, Allocation, Counters, DeviceMemory, checking
from climb.toolchain import Compiled
from climb.validation.foreign import Empty, Program, Steps


@dataclass(frozen=True)
class Run:
    """A program that ran: its launches, code, the counters of each launch, and its outputs as in `Steps.expected`."""

    steps: Steps
    compiled: Compiled
    counters: list[Counters]
    outputs: list[np.ndarray]


@lru_cache(maxsize=4)
def _device(compiled: Compiled) -> Device:
    return Device.of(compiled)


def run(program: Program, fault: int = 0) -> Run:
    """Launch the program and check its outputs.

    Raises
    ------
    AssertionError
        an output is wrong or was not written
    EmulatorError
        the emulator found a fault
    """
    device, steps = _device(program.compiled(fault)), program.steps()
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
    outputs = [values(held[id(each.buffer)], each.buffer.dtype) for each in steps.expected]
    for each, output in zip(steps.expected, outputs, strict=True):
        each.check(output)
    return Run(steps, device.compiled, counters, outputs)
