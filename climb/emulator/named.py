"""Barriers for some threads of a block: sixteen of them, by number, each waiting for as many threads as it is told.

PTX ISA, "bar, barrier": a warp has come when all of its lanes that are alive have, and counts for 32 threads; threads
may come to a barrier at different places of the program, and those that only arrive do not wait. Here `bar.sync n`
with n other than 0, and every form with a number of threads, is such a barrier; `__syncthreads()` is not, it is held
to what CUDA promises: all threads of the block, at one place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from . import ptx
from .errors import BarrierDivergence, UnsupportedInstruction
from .groups import Group, merge
from .lanes import WARP, Selection

if TYPE_CHECKING:
    from .policy import Waiting
    from .schedule import Batch

BARRIERS = 16
PREFIX = "named."
_OPCODES = ("bar.", "barrier.")
_OTHERS = ("bar.warp.", "barrier.cluster.")
Parked = dict[int, Group]


def name_barriers(function: ptx.Function) -> ptx.Function:
    """The function with an opcode of their own for the barriers that are not of all threads at one place."""

    def one(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        if not isinstance(item, ptx.Instruction) or not item.opcode.startswith(_OPCODES):
            return item
        if item.opcode.startswith(_OTHERS):
            return item
        operands = item.operands[".red." in item.opcode :]
        values = len(operands) - (".red." in item.opcode)
        if ".arrive" not in item.opcode and values == 1 and operands[0] == ptx.Immediate(0):
            return item
        return replace(item, opcode=PREFIX + item.opcode)

    return replace(function, body=[one(item) for item in function.body])


class NamedBarriers:
    """Of a batch: `arrivals`, lanes of each (block, barrier, warp) that came without waiting; `wanted`, threads that
    each (block, barrier) is told to wait for."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.warps = -(-batch.threads // WARP)
        self.arrivals = np.zeros((batch.blocks, BARRIERS, self.warps), np.int64)
        self.wanted = np.zeros((batch.blocks, BARRIERS), np.int64)
        self.arrived = np.zeros_like(self.arrivals)  # when

    def come(self, group: Group, at: int, parked: Parked, waiting: Waiting) -> None:
        """Lanes have come to a barrier: they wait, or go on if they only arrive; whoever may go on does."""
        blocks = self.batch.kernel.code.blocks
        instruction = blocks[at].instructions[0]
        block, warp, number = self._places(group, instruction)
        wanted = self._wanted(group, instruction)
        known = self.wanted[block, number]
        self.wanted[block, number] = wanted
        if ((known != 0) & (known != wanted)).any() or (self.wanted[block, number] != wanted).any():
            self._wrong(group, at, "threads disagree on how many it is to wait for")
        if ".arrive" in instruction.opcode:
            np.add.at(self.arrivals, (block, number, warp), 1)
            if self.batch.clock is not None:
                self.arrived[block, number, warp] = self.batch.clock.events.now
            self.batch.enter(at, group)
            self._push(waiting, at, group)
        elif at in parked:
            parked[at] = merge([parked.pop(at), group], blocks[at].live)
        else:
            parked[at] = group
        self.release(parked, waiting)

    def release(self, parked: Parked, waiting: Waiting) -> bool:
        """Let those go on whose barrier has what it waits for; whether there were any."""
        blocks = self.batch.kernel.code.blocks
        places = {
            at: self._places(group, blocks[at].instructions[0])
            for at, group in parked.items()
            if blocks[at].gate == "named"
        }
        lanes = self.arrivals.copy()
        for place in places.values():
            block, warp, number = place
            np.add.at(lanes, (block, number, warp), 1)
        complete, done = self._complete(lanes)
        if not done.any():
            return False
        for at, (block, warp, number) in places.items():
            free = done[block, number] & complete[block, number, warp]
            if not free.any():
                continue
            group = parked.pop(at)
            if ".red." in blocks[at].instructions[0].opcode:
                self._alone(group, at, lanes, block[free], number[free])
            if not free.all():
                live = blocks[at].live
                parts = [(_selection(group, free), live), (_selection(group, ~free), live)]
                group, parked[at] = group.split(parts)
            if self.batch.clock is not None:
                self.batch.clock.passed("warp", group.lanes)
            self.batch.enter(at, group)
            self._push(waiting, at, group)
        self.batch.counts.barriers += int(np.count_nonzero(done))
        if self.batch.clock is not None:
            block, number = np.nonzero(done)
            came, waiting = self.arrivals[done] > 0, complete[done] & (self.arrivals[done] == 0)
            self.batch.clock.met_at_barrier(block, waiting, np.where(came, self.arrived[done], 0))
        self.arrivals[done] = self.arrived[done] = 0
        self.wanted[done] = 0
        return True

    def stuck(self, parked: Parked) -> None:
        """Raise BarrierDivergence where threads wait at such a barrier."""
        blocks = self.batch.kernel.code.blocks
        for at, group in parked.items():
            if blocks[at].gate == "named":
                block, _, number = self._places(group, blocks[at].instructions[0])
                lanes = self.arrivals.copy()
                for other, waiting in parked.items():
                    if blocks[other].gate == "named":
                        place = self._places(waiting, blocks[other].instructions[0])
                        np.add.at(lanes, (place[0], place[2], place[1]), 1)
                complete, _ = self._complete(lanes)
                come = WARP * int(complete[block[0], number[0]].sum())
                wanted = int(self.wanted[block[0], number[0]])
                self._wrong(group, at, f"barrier {number[0]} waits for {wanted} threads, of which {come} have come")

    # Inside

    def _complete(self, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of lanes that have come, by (block, barrier, warp): which warps have, and which (block, barrier) is done."""
        alive = self.batch._alive()
        padded = np.zeros((alive.shape[0], self.warps * WARP), np.int64)
        padded[:, : alive.shape[1]] = alive
        per_warp = padded.reshape(alive.shape[0], 1, self.warps, WARP).sum(axis=3)
        complete = (lanes > 0) & (lanes >= per_warp)
        return complete, (self.wanted > 0) & (WARP * complete.sum(axis=2) >= self.wanted)

    def _places(self, group: Group, instruction: ptx.Instruction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(block, warp, number of the barrier) of each lane."""
        lanes = group.lanes
        number = self._value(group, instruction, 0)
        if (number >= BARRIERS).any():
            self._wrong(group, None, f"there is no barrier {int(number.max())}, they end at 15", instruction)
        each = (lanes.block, lanes.thread // WARP, number)
        block, warp, number = (np.broadcast_to(one, lanes.shape).reshape(-1) for one in each)
        return block, warp, number

    def _wanted(self, group: Group, instruction: ptx.Instruction) -> np.ndarray:
        lanes = group.lanes
        if len(_numbers(instruction)) < 2:
            return np.full(lanes.count, WARP * self.warps)
        found = np.broadcast_to(self._value(group, instruction, 1), lanes.shape).reshape(-1)
        if (found % WARP).any() or not found.all():
            bad = int(found[(found % WARP != 0) | (found == 0)][0])
            self._wrong(group, None, f"a barrier waits for whole warps, not for {bad} threads", instruction)
        return found

    def _value(self, group: Group, instruction: ptx.Instruction, which: int) -> np.ndarray:
        operand = _numbers(instruction)[which]
        if isinstance(operand, ptx.Immediate):
            return np.array([[operand.value]], np.int64)
        return group.value(operand.name).view(np.uint32).astype(np.int64)

    def _alone(self, group: Group, at: int, lanes: np.ndarray, block: np.ndarray, number: np.ndarray) -> None:
        """Raise UnsupportedInstruction where a vote would need the flags of lanes at another place."""
        here = np.zeros(lanes.shape[:2], np.int64)
        np.add.at(here, (block, number), 1)
        if (here[block, number] != lanes.sum(axis=2)[block, number]).any():
            location = self.batch.kernel.code.blocks[at].instructions[0].location
            what = "a vote over threads that are at different places of the program is not supported"
            raise UnsupportedInstruction(
                what, self.batch._place(location, group.lanes, int(block[0]), group.lanes.count)
            )

    def _push(self, waiting: Waiting, at: int, group: Group) -> None:
        after = self.batch.kernel.code.blocks[at].next
        if after < 0:
            self.batch.gone.append(group.lanes)
        else:
            waiting.push(after, group)

    def _wrong(self, group: Group, at: int | None, what: str, instruction: ptx.Instruction | None = None) -> None:
        instruction = instruction or self.batch.kernel.code.blocks[at].instructions[0]
        first = int(np.broadcast_to(group.lanes.block, group.lanes.shape).ravel()[0])
        place = self.batch._place(instruction.location, group.lanes, first, group.lanes.count)
        raise BarrierDivergence(f"barrier divergence: {what}", place, waiting=group.lanes.count, exited=0)


def _numbers(instruction: ptx.Instruction) -> tuple[ptx.Operand, ...]:
    """The operands that are the barrier's number and how many threads it waits for."""
    if ".red." in instruction.opcode:
        return instruction.operands[1:-1]
    return instruction.operands


def _selection(group: Group, which: np.ndarray) -> Selection:
    flat = np.flatnonzero(which)
    return Selection(columns=flat) if group.lanes.ragged else Selection(flat=flat)


def vote(group: Group, how: str, number: np.ndarray, flag: np.ndarray) -> np.ndarray:
    """bar.red.{popc,and,or} over the lanes of each block that have come to the same barrier."""
    lanes = group.lanes
    flags, block, numbers = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (flag, lanes.block, number))
    place = block.astype(np.int64) * BARRIERS + numbers
    size = group.batch.blocks * BARRIERS
    true, every = (np.bincount(place, weights=each, minlength=size) for each in (flags, flags | True))
    found: dict[str, Callable[[], np.ndarray]] = {
        "popc": lambda: true.astype(np.uint32),
        "and": lambda: true == every,
        "or": lambda: true > 0,
    }
    return found[how]()[place].reshape(lanes.shape)


RUNTIME = {"named_vote": vote}
