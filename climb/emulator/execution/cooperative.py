"""Cooperative launches: how many blocks fit on the GPU at a time, and the barrier of the whole grid.

`grid.sync()` of cooperative groups is a barrier of the block, then an atomic addition by one thread of each block to a
counter in a workspace, whose address the driver passes in special registers; that thread polls the counter until all
blocks have arrived. The emulator runs this code as it is. A cooperative launch provides the workspace, and runs all
blocks in one batch.
"""

from __future__ import annotations

import numpy as np

from climb.toolchain.occupancy import CannotLaunch, occupancy_of

from ..checks.faults import place_in_block
from ..errors import BarrierDivergence
from ..memory.device_memory import Allocation, DeviceMemory
from ..simt.batch import Batch
from ..simt.groups import Group

MULTIPROCESSORS = 132  # of an H100 SXM or H200, the GPU that the emulator models
WORKSPACE = 64  # bytes; the barrier's counter is the second word
Places = list[tuple[int, Group]]


def resident_blocks(threads: int, shared_bytes: int, registers: int = 0) -> int:
    """Return the largest number of blocks that the GPU runs at a time; `registers` per thread, 0 if unknown."""
    try:
        return MULTIPROCESSORS * occupancy_of(registers, shared_bytes, threads).blocks
    except CannotLaunch:
        return 0


def make_workspace(memory: DeviceMemory) -> Allocation:
    """Allocate the workspace of the grid barrier, zeroed."""
    return memory.allocate(WORKSPACE, "the workspace of the grid barrier")


class GridBarrier:
    """Detects that a grid barrier can never complete: the only remaining groups poll it in vain."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self._counter, self._rounds = b"", 0

    def check(self, polling: Places) -> None:
        """Raise BarrierDivergence if no group can ever pass. Call it when only the groups `polling` memory can run.

        The groups are certain to wait for ever once each has polled an unchanged counter.
        """
        workspace = self.batch.grid_barrier
        counter = workspace.data.tobytes()
        self._rounds = self._rounds + 1 if counter == self._counter else 0
        self._counter = counter
        if self._rounds > 2 * len(polling) and all(self._polls(at) for at, _ in polling):
            self._never(polling)

    def _polls(self, at: int) -> bool:
        """Return whether basic block `at` loads from the workspace."""
        batch = self.batch
        block = batch.kernel.code.blocks[at]
        last = {site.ptx: batch.recent.get(site.index) for site in batch.kernel.code.sites if site.action == "load"}
        return any(last.get(one.text) is batch.grid_barrier for one in block.instructions)

    def _never(self, polling: Places) -> None:
        batch = self.batch
        waiting = np.zeros(batch.blocks, np.bool_)
        for _, group in polling:
            waiting |= group.lanes.per_block(batch.blocks) > 0
        alive = batch.alive().any(axis=1)
        parts = [f"{np.count_nonzero(waiting)} of {batch.blocks} blocks wait at this barrier of the grid"]
        for which, what in ((alive & ~waiting, "waits elsewhere"), (~alive, "has left the kernel")):
            if which.any():
                first, more = int(np.flatnonzero(which)[0]), int(np.count_nonzero(which)) - 1
                others = f" (and so do {more} more)" if what[0] == "w" else f" (and so have {more} more)"
                parts.append(f"block {batch.block_index(first)} {what}" + (others if more else ""))
        at, group = polling[0]
        block, _ = group.lanes.at(0)
        location = batch.kernel.code.blocks[at].first.location
        raise BarrierDivergence(
            "barrier divergence: " + ", ".join(parts),
            place_in_block(batch, location, group.lanes, block, sum(each.lanes.count for _, each in polling)),
            waiting=int(np.count_nonzero(waiting)),
            exited=int(np.count_nonzero(~alive)),
        )
