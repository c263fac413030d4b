"""Named barriers: sixteen barriers of a block, each for as many threads as the instruction says.

PTX ISA, "bar, barrier": a warp has arrived when all of its remaining lanes have, and counts as 32 threads. Threads may
arrive at a barrier from different places of the program, and threads that only arrive do not wait. `ptx.barriers`
decides which instructions are named barriers.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..checks.faults import place_in_block
from ..errors import BarrierDivergence, UnsupportedInstruction
from ..ptx import model as ptx
from ..ptx.barriers import BARRIERS
from ..simt.batch import Batch
from ..simt.groups import Group, merge
from ..simt.lanes import WARP, Selection
from .policy import Waiting

Parked = dict[int, Group]


class NamedBarriers:
    """The named barriers of a batch.

    `arrivals`, int64 (blocks, barriers, warps): lanes that have arrived without waiting. `wanted`, int64 (blocks,
    barriers): the threads that each barrier waits for, 0 before the first arrival.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.warps = -(-batch.threads // WARP)
        self.arrivals = np.zeros((batch.blocks, BARRIERS, self.warps), np.int64)
        self.wanted = np.zeros((batch.blocks, BARRIERS), np.int64)

    def arrive(self, group: Group, at: int, parked: Parked, waiting: Waiting) -> None:
        """Park lanes that arrive at a barrier (or let them continue, if they do not wait), and release complete
        barriers.

        Raises BarrierDivergence if threads disagree about the barrier.
        """
        blocks = self.batch.kernel.code.blocks
        instruction = blocks[at].first
        block, warp, number = self._places(group, instruction)
        wanted = self._wanted(group, instruction)
        known = self.wanted[block, number]
        self.wanted[block, number] = wanted
        if ((known != 0) & (known != wanted)).any() or (self.wanted[block, number] != wanted).any():
            self._wrong(group, instruction, "threads disagree on how many threads the barrier waits for")
        if ".arrive" in instruction.opcode:
            np.add.at(self.arrivals, (block, number, warp), 1)
            if self.batch.clock is not None:
                self.batch.clock.arrive_at(group.lanes, number)
            self._run_block(at, group)
            self._push(waiting, at, group)
        elif at in parked:
            parked[at] = merge([parked.pop(at), group], blocks[at].live)
        else:
            parked[at] = group
        self.release(parked, waiting)

    def release(self, parked: Parked, waiting: Waiting) -> bool:
        """Release the lanes whose barrier is complete; return whether there were any."""
        blocks, clock = self.batch.kernel.code.blocks, self.batch.clock
        places = {
            at: self._places(group, blocks[at].first) for at, group in parked.items() if blocks[at].gate == "named"
        }
        lanes = self.arrivals.copy()
        for block, warp, number in places.values():
            np.add.at(lanes, (block, number, warp), 1)
        complete, done = self._complete(lanes)
        if not done.any():
            return False
        for at, (block, warp, number) in places.items():
            free = done[block, number] & complete[block, number, warp]
            if not free.any():
                continue
            group = parked.pop(at)
            if ".red." in blocks[at].first.opcode:
                self._check_vote(group, at, lanes, block[free], number[free])
            if not free.all():
                live = blocks[at].live
                parts = [(_selection(group, free), live), (_selection(group, ~free), live)]
                group, parked[at] = group.split(parts)
            if clock is not None:
                clock.synchronize("warp", group.lanes)
            self._run_block(at, group)
            self._push(waiting, at, group)
        self.batch.counts.barriers += int(np.count_nonzero(done))
        if clock is not None:
            block, number = np.nonzero(done)
            without_waiting = self.arrivals[done] > 0
            clock.synchronize_warps(block, complete[done] & ~without_waiting, without_waiting, number)
        self.arrivals[done] = 0
        self.wanted[done] = 0
        return True

    def check(self, parked: Parked) -> None:
        """Raise BarrierDivergence if threads wait at a named barrier and no other group can run."""
        blocks = self.batch.kernel.code.blocks
        for at, group in parked.items():
            if blocks[at].gate == "named":
                block, _, number = self._places(group, blocks[at].first)
                lanes = self.arrivals.copy()
                for other, waiting in parked.items():
                    if blocks[other].gate == "named":
                        place = self._places(waiting, blocks[other].first)
                        np.add.at(lanes, (place[0], place[2], place[1]), 1)
                complete, _ = self._complete(lanes)
                arrived = WARP * int(complete[block[0], number[0]].sum())
                wanted = int(self.wanted[block[0], number[0]])
                what = f"barrier {number[0]} waits for {wanted} threads, but only {arrived} have arrived"
                self._wrong(group, blocks[at].first, what)

    def _run_block(self, at: int, group: Group) -> None:
        """Run and count the basic block of a barrier that a group has passed."""
        code, count = self.batch.kernel.code, self.batch.counts.executed[at]
        count[0] += group.lanes.warps
        count[1] += group.lanes.count
        if group.root is not None:
            group.fetch(code.blocks[at].reads)
        code.functions[at](group)
        group.clean -= code.blocks[at].writes

    def _complete(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which warps have arrived and which barriers are complete; `lanes` (blocks, barriers, warps) have
        arrived."""
        alive = self.batch.alive()
        padded = np.zeros((alive.shape[0], self.warps * WARP), np.int64)
        padded[:, : alive.shape[1]] = alive
        per_warp = padded.reshape(alive.shape[0], 1, self.warps, WARP).sum(axis=3)
        complete = (lanes > 0) & (lanes >= per_warp)
        return complete, (self.wanted > 0) & (WARP * complete.sum(axis=2) >= self.wanted)

    def _places(self, group: Group, instruction: ptx.Instruction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the block, the warp, and the number of the barrier, of each lane."""
        lanes = group.lanes
        number = self._value(group, instruction, 0)
        if (number >= BARRIERS).any():
            self._wrong(group, instruction, f"there is no barrier {int(number.max())}; barriers are numbered 0 to 15")
        each = (lanes.block, lanes.thread // WARP, number)
        block, warp, number = (np.broadcast_to(one, lanes.shape).reshape(-1) for one in each)
        return block, warp, number

    def _wanted(self, group: Group, instruction: ptx.Instruction) -> np.ndarray:
        """Return the number of threads for which each lane says the barrier waits."""
        lanes = group.lanes
        if len(_numbers(instruction)) < 2:
            return np.full(lanes.count, WARP * self.warps)
        found = np.broadcast_to(self._value(group, instruction, 1), lanes.shape).reshape(-1)
        if (found % WARP).any() or not found.all():
            bad = int(found[(found % WARP != 0) | (found == 0)][0])
            self._wrong(group, instruction, f"a barrier waits for whole warps, not for {bad} threads")
        return found

    def _value(self, group: Group, instruction: ptx.Instruction, which: int) -> np.ndarray:
        """Return the barrier's number (`which` 0) or thread count (1), int64."""
        operand = _numbers(instruction)[which]
        if isinstance(operand, ptx.Immediate):
            return np.array([[operand.value]], np.int64)
        return group.value(operand.name).view(np.uint32).astype(np.int64)

    def _check_vote(self, group: Group, at: int, lanes: np.ndarray, block: np.ndarray, number: np.ndarray) -> None:
        """Raise UnsupportedInstruction if a vote needs the flags of lanes at another place of the program."""
        here = np.zeros(lanes.shape[:2], np.int64)
        np.add.at(here, (block, number), 1)
        if (here[block, number] != lanes.sum(axis=2)[block, number]).any():
            location = self.batch.kernel.code.blocks[at].first.location
            what = "a vote over threads at different places of the program is not supported"
            place = place_in_block(self.batch, location, group.lanes, int(block[0]), group.lanes.count)
            raise UnsupportedInstruction(what, place)

    def _push(self, waiting: Waiting, at: int, group: Group) -> None:
        """Let a group continue behind the barrier."""
        after = self.batch.kernel.code.blocks[at].next
        if after < 0:
            self.batch.exited.append(group.lanes)
        else:
            waiting.push(after, group)

    def _wrong(self, group: Group, instruction: ptx.Instruction, what: str) -> NoReturn:
        """Raise BarrierDivergence at the group's first lane."""
        block, _ = group.lanes.at(0)
        place = place_in_block(self.batch, instruction.location, group.lanes, block, group.lanes.count)
        raise BarrierDivergence(f"barrier divergence: {what}", place, waiting=group.lanes.count, exited=0)


def _numbers(instruction: ptx.Instruction) -> tuple[ptx.Operand, ...]:
    """Return the operands that hold the barrier's number and the number of threads that it waits for."""
    if ".red." in instruction.opcode:
        return instruction.operands[1:-1]
    return instruction.operands


def _selection(group: Group, which: np.ndarray) -> Selection:
    flat = np.flatnonzero(which)
    return Selection(columns=flat) if group.lanes.ragged else Selection(flat=flat)
