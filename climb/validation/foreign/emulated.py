"""Run foreign programs on the emulator with all checks."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from climb.emulator import ALL_CHECKS, Allocation, Counters, DeviceMemory, Module, checking, load
from climb.toolchain import Compiled
from climb.validation.foreign.program import Empty, Program, Steps

MAX_STEPS = 200_000


@dataclass(frozen=True)
class Run:
    """A program that ran: its launches, code, the counters of each launch, and its outputs as in `Steps.expected`."""

    steps: Steps
    compiled: Compiled
    counters: list[Counters]
    outputs: list[np.ndarray]


@functools.lru_cache(maxsize=4)
def _module(compiled: Compiled) -> Module:
    return load(compiled.ptx, compiled.sources)


def run(program: Program, fault: int = 0) -> Run:
    """Launch the program, with a planted ``fault`` or (0) with none, and check its outputs.

    Raises
    ------
    AssertionError
        an output is wrong or was not written
    EmulatorError
        the emulator found a fault
    """
    compiled, steps, memory = program.compiled(fault), program.steps(), DeviceMemory()
    held: dict[int, Allocation] = {}
    counters = []
    with checking(ALL_CHECKS):
        for one in steps.launches:
            kernel = _module(compiled).kernel(compiled.lowered(one.kernel))
            args = _packed(one.args, memory, held)
            counters.append(
                kernel.launch(
                    one.grid, one.block, args, memory=memory, shared_bytes=one.shared, max_steps=MAX_STEPS
                )
            )  # fmt: skip
    outputs = []
    for each in steps.expected:
        found = held[id(each.buffer)]
        assert found.written is None or found.written.all(), "part of an output was never written"
        outputs.append(found.data.view(each.buffer.dtype))
        each.check(outputs[-1])
    return Run(steps, compiled, counters, outputs)


def _packed(args: Sequence[object], memory: DeviceMemory, held: dict[int, Allocation]) -> list[bytes]:
    """Arguments as bytes; buffers that are used for the first time get memory."""
    out = []
    for number, arg in enumerate(args):
        if isinstance(arg, np.ndarray | Empty) and id(arg) not in held:
            nbytes = int(np.prod(arg.shape)) * np.dtype(arg.dtype).itemsize
            empty = isinstance(arg, Empty)
            held[id(arg)] = memory.allocate(nbytes, "out" if empty else f"argument {number}", initialised=not empty)
            if not empty:
                held[id(arg)].data[:] = np.ascontiguousarray(arg).reshape(-1).view(np.uint8)
        if id(arg) in held:
            out.append(struct.pack("<Q", held[id(arg)].address))
        elif isinstance(arg, np.generic):
            out.append(arg.tobytes())
        else:
            out.append(struct.pack("<f" if isinstance(arg, float) else "<i", arg))
    return out
