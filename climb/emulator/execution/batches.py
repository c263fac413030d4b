"""The batches of a launch: blocks that run together, one batch after the other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..checks.hooks import LaunchChecks
from ..memory.device_memory import Allocation, DeviceMemory
from ..memory.footprint import Footprint
from ..runtime import warpgroups
from ..runtime.bulk_copies import check_left
from ..simt.batch import Batch
from ..simt.code import TranslatedKernel
from ..simt.launch_counts import LaunchCounts
from ..simt.observers import Trace
from .scheduler import Scheduler
from .schedules import BatchSchedule, Schedule

LANES = 1 << 15  # a launch of more lanes is divided into batches, an even number of them, for two processes
MOST_LANES = 1 << 16  # lanes of a batch: a register takes 256 KiB, so that some fit into the L2 cache of a CPU


def batch_size(blocks: int, threads: int, cluster: int, wide: bool = False) -> int:
    """Return the number of blocks of a batch, in a launch of `blocks` blocks of `threads` threads: whole clusters.

    It depends only on the launch, because the results of racing blocks depend on it. `wide`: batches may be twice as
    large, which takes fewer calls of NumPy.
    """
    lanes = blocks * threads
    if lanes <= LANES:
        return blocks
    batches = 2 * -(-lanes // (2 * MOST_LANES << wide))
    return -(-blocks // cluster // batches) * cluster


@functools.cache
def keep_freed_pages() -> None:
    """Let this process keep the pages of arrays that it has freed, for the next ones.

    When glibc frees so large a block, it stops returning smaller ones to the system (mallopt(3), M_MMAP_THRESHOLD).
    Without that, the pages of each array of registers would be faulted in again: half the time of a large batch.
    """
    np.empty((32 << 20) - (64 << 10), np.uint8)


@dataclass
class Batches:
    """Runs the batches of a launch of `blocks` blocks, `size` of them at a time.

    `registers`: the number of a thread at the start, 0 if unknown. `workspace`: that of a cooperative launch.
    """

    kernel: TranslatedKernel
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    blocks: int
    size: int
    parameters: np.ndarray
    memory: DeviceMemory
    shared_bytes: int
    registers: int
    max_steps: int
    trace: Trace | None
    schedule: Schedule | None
    checks: LaunchChecks
    workspace: Allocation | None = None

    @property
    def number(self) -> int:
        """The number of batches."""
        return -(-self.blocks // self.size)

    @property
    def threads(self) -> int:
        """The threads of a batch, except that the last may have fewer."""
        return self.size * self.block[0] * self.block[1] * self.block[2]

    def run(
        self,
        number: int,
        counts: LaunchCounts,
        footprint: Footprint | None = None,
        tick: Callable[[Batch], None] | None = None,
    ) -> None:
        """Run one batch; add to its launch's counts. Raises one of `errors` for a fault of the kernel."""
        keep_freed_pages()
        start = number * self.size
        batch = Batch(
            self.kernel, self.grid, self.block, start, min(self.size, self.blocks - start), self.parameters,
            self.memory, self.shared_bytes, counts, self.trace, self.cluster,
        )  # fmt: skip
        batch.grid_barrier, batch.footprint, batch.tick = self.workspace, footprint, tick
        self.checks.attach(batch)
        if self.schedule is not None:
            batch.schedule = BatchSchedule(self.schedule, start)
        Scheduler(batch, self.max_steps).run()
        check_left(batch)
        warpgroups.check_left(batch, self.registers)
        if batch.shared_shadow is not None:
            batch.shared_shadow.check_left(batch)
