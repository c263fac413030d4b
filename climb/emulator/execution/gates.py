"""Gates: barriers and warp operations, at which lanes wait until the lanes that they wait for have arrived."""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import numpy as np

from ..checks.faults import place
from ..errors import WarpMismatch
from ..ptx.control_flow import Block
from ..ptx.model import Immediate, Instruction
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.warps import bits_of, from_rows, missing, names_exited, present, to_rows

WARPGROUP = 128  # threads


class Gates:
    """The gates of a batch. Raises WarpMismatch for a mask that no lanes can satisfy."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        #: The lanes that have taken part in a warp operation since a group first waited at one; None until then.
        self.elsewhere: np.ndarray | None = None

    def ready(self, group: Group, at: int) -> np.ndarray | bool:
        """Return which lanes need not wait at the gate of block `at`: True for all, otherwise bool (lanes,)."""
        lanes, batch = group.lanes, self.batch
        gate = batch.kernel.code.blocks[at].gate
        if gate == "named":
            ready = np.zeros((1, 1), np.bool_)  # `NamedBarriers` releases them
        elif gate == "barrier":
            if not lanes.ragged and lanes.shape[1] == batch.threads:
                return True
            ready = lanes.per_block(batch.blocks)[lanes.block] == batch.threads
        elif gate == "cluster":
            ready = batch.cluster_barrier.complete(lanes, batch.alive())
        elif gate == "warpgroup":
            ready = self._warpgroup_ready(group, at)
            if ready is True:
                return True
        else:
            ready = self._warp_ready(group, at)
            if ready is True:
                return True
        ready = np.broadcast_to(ready, lanes.shape).reshape(-1)
        return True if ready.all() else ready

    def _warp_ready(self, group: Group, at: int) -> np.ndarray | bool:
        """Return the lanes whose mask names no lane that is still on its way.

        As in CUDA, lanes that have left the kernel are not waited for. If the operation combines values of the lanes in
        the mask (all but `__syncwarp`), a lane that has left is noted, because the mask relies on it. It is an error if
        that lane was still running when others waited for it here, and took part in another warp operation instead; and
        if a shuffle reads its value.
        """
        instruction = self.batch.kernel.code.blocks[at].first
        mask, lanes = mask_of(group, instruction), group.lanes
        own = mask >> (lanes.thread % 32).astype(np.uint32) & np.uint32(1)
        if not own.all():
            self.mismatch(group, instruction, own == 0, "a lane is not in its own mask")
        absent = missing(group, mask)
        if not absent.any():
            return True
        alive = self._bits(self.batch.alive())
        warp = lanes.thread // 32
        elsewhere = alive[lanes.block, warp] & absent
        exited = absent & self._existing[0, warp] & ~alive[lanes.block, warp]
        if exited.any() and not instruction.opcode.startswith("bar.warp."):
            what = names_exited(exited)
            if self.batch.strict_masks:
                self.mismatch(group, instruction, exited != 0, what)
            if self.elsewhere is not None and (exited & self._bits(self.elsewhere)[lanes.block, warp]).any():
                self.mismatch(group, instruction, exited != 0, what)
            self.batch.counts.warn(f"line {instruction.location.line}: {what}; the operation goes on without it")
        if self.elsewhere is None and elsewhere.any():
            self.elsewhere = np.zeros((self.batch.blocks, self.batch.threads), np.bool_)
        (rows,) = to_rows(lanes, np.broadcast_to(elsewhere, lanes.shape))
        waits = (np.where(present(lanes, rows.shape[0]), rows, 0) != 0).any(axis=1, keepdims=True)
        return from_rows(lanes, np.broadcast_to(~waits, rows.shape))

    def _warpgroup_ready(self, group: Group, at: int) -> np.ndarray | bool:
        """Return the lanes whose whole warpgroup, 128 threads from a multiple of 128 on, has arrived.

        Raises WarpMismatch if the block ends within the warpgroup of a lane.
        """
        lanes, threads = group.lanes, self.batch.threads
        if not lanes.ragged and lanes.shape[1] % WARPGROUP == 0:
            ends = lanes.thread[0].reshape(-1, WARPGROUP)[:, [0, -1]]
            if (ends[:, 0] % WARPGROUP == 0).all() and (ends[:, 1] - ends[:, 0] == WARPGROUP - 1).all():
                return True
        first = threads // WARPGROUP * WARPGROUP
        if (lanes.thread >= first).any():
            what = f"a matrix product of a warpgroup needs 128 threads, {first}-{first + WARPGROUP - 1}"
            instruction = self.batch.kernel.code.blocks[at].first
            self.mismatch(group, instruction, lanes.thread >= first, f"{what}; the block has {threads} threads")
        per_block = -(-lanes.threads // WARPGROUP)
        number = np.broadcast_to(lanes.block * per_block + lanes.thread // WARPGROUP, lanes.shape)
        ready = np.bincount(number.ravel())[number] == WARPGROUP
        return True if ready.all() else ready

    def passed(self, block: Block, group: Group) -> None:
        """Tell the checks that the lanes of a group have waited for each other at the gate of a block."""
        lanes, batch = group.lanes, self.batch
        if block.gate == "cluster":
            return  # `runtime.cluster_barriers` tells them
        if block.gate == "warpgroup":
            return  # it orders no accesses
        if block.gate != "barrier":
            instruction = block.first
            writes = instruction.opcode.startswith("bar.warp.")
            mask, every = mask_of(group, instruction), self._existing[0, lanes.thread // 32]
            if ((mask & every) != every).any():
                batch.clock.synchronize_masks(lanes, mask, writes)
                return
            if not writes:
                batch.clock.exchange(lanes)
                return
        (batch.shared_shadow or batch.clock).synchronize(block.gate, lanes)

    def mismatch(self, group: Group, instruction: Instruction, bad: np.ndarray, what: str) -> NoReturn:
        """Raise WarpMismatch for the lanes for which `bad` holds."""
        bad = np.broadcast_to(bad, group.lanes.shape).reshape(-1)
        block, thread = group.lanes.at(int(np.flatnonzero(bad)[0]))
        where = place(self.batch, instruction.location, block, thread, int(np.count_nonzero(bad)))
        raise WarpMismatch(f"warp mismatch: {what}", where)

    @cached_property
    def _existing(self) -> np.ndarray:
        """Return the lanes that each warp of a block has, as bit masks: uint32 (1, warps)."""
        return self._bits(np.ones((1, self.batch.threads), np.bool_))

    def _bits(self, flags: np.ndarray) -> np.ndarray:
        """Return bool (n, threads) as bit masks, uint32 (n, warps)."""
        warps = -(-self.batch.threads // 32)
        padded = np.zeros((flags.shape[0], warps * 32), np.bool_)
        padded[:, : self.batch.threads] = flags
        return bits_of(padded.reshape(-1, 32)).reshape(-1, warps)


def mask_of(group: Group, instruction: Instruction) -> np.ndarray:
    """Return the mask of a warp operation, its last operand: uint32, broadcasting to the lanes' shape."""
    operand = instruction.operands[-1]
    if isinstance(operand, Immediate):
        return np.array([[operand.value & 0xFFFFFFFF]], np.uint32)
    return group.value(operand.name).view(np.uint32)
