"""The steps of the scheduler: the lanes of a warp that run each basic block, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..memory.device_memory import DeviceMemory
from ..simt.groups import Group
from ..simt.lanes import WARP
from .kernel import Kernel
from .workers import workers


@dataclass(frozen=True)
class Step:
    """One step: basic block `block`, from the source lines `lines`, run by `lanes`, bool (32,)."""

    block: int
    lines: tuple[int, ...]
    lanes: np.ndarray


def follow(
    kernel: Kernel,
    grid: Sequence[int] | int,
    block: Sequence[int] | int,
    args: Sequence[bytes],
    *,
    memory: DeviceMemory,
) -> tuple[Step, ...]:
    """Launch the kernel; return the steps in which the first warp of the first block took part, in order."""
    code, steps = kernel.code, []
    original = list(code.functions)

    def watched(index: int, function: Callable[[Group], np.ndarray | None]) -> Callable[[Group], np.ndarray | None]:
        lines = tuple(sorted({i.location.line for i in code.blocks[index].instructions if i.location.line}))

        def run(group: Group) -> np.ndarray | None:
            shape = group.lanes.shape
            block_of = np.broadcast_to(group.lanes.block, shape).ravel()
            thread = np.broadcast_to(group.lanes.thread, shape).ravel()
            mine = thread[(block_of == 0) & (thread < WARP)]
            if mine.size:
                steps.append(Step(index, lines, np.isin(np.arange(WARP), mine)))
            return function(group)

        return run

    code.functions[:] = [watched(index, function) for index, function in enumerate(original)]
    try:
        with workers(1):  # `steps` is filled in this process
            kernel.launch(grid, block, args, memory=memory)
    finally:
        code.functions[:] = original
    return tuple(steps)
