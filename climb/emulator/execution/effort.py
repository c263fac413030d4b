"""Decide whether a kernel that runs for a long time still makes progress.

No proof finds every endless loop. A kernel without such a proof (`progress`) is given up after some seconds of
computing in which nothing points to an end:

- no thread has left the kernel, and no part of it has run for the first time;
- nothing in memory has changed that had not changed before;
- no loop has come closer to a bound that it compares with, fast enough to reach it. `for (i = 0; i < n; ++i)` comes
  closer in every round, whatever it computes, and so does an outer loop around it; a loop that only starts others anew
  does not. A loop is too slow if it would not end within the limit on steps even at `FASTER` times its pace, as in
  `while (x < 1) x += 1e-9 * (1 - x)`.

So a kernel that is merely long runs to its end, or to the limit on steps. Raising that limit raises the seconds in
proportion.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import thread_time

import numpy as np

from ..ptx.control_flow import Block
from ..ptx.model import Immediate, Instruction, Register
from ..simt.batch import Batch
from ..simt.changed_places import ChangedPlaces
from ..simt.groups import Group
from .progress import body_between, decisions

WINDOW = 1.6  # seconds of this thread's CPU time that are judged together
WINDOWS = 4  # without any sign of an end before a kernel is given up, for the usual limit on steps
EVERY = 16  # steps between looks at the clock
PAUSE = 0.005  # least seconds between samples of a loop
PAUSES = 10  # ... and least multiple of the last sample's time, as far as a window has room for its samples
SAMPLES = 8  # fewest samples that tell whether a loop comes closer to its bound
FASTER = 16
STEPS = 1024  # fewest steps without a sign of an end
USUAL_STEPS = 2_000_000

_DTYPES = {"b": "u", "u": "u", "s": "i", "f": "f"}


@dataclass
class _Approach:
    """The distance of lanes from the bound of a loop: first, last, how often; and whether they ever moved away.

    `begun` and `steps`: the steps of the batch at the first and the last sample.
    """

    first: float
    last: float
    begun: int
    steps: int
    samples: int = 1
    away: bool = False

    def add(self, distance: float, steps: int) -> None:
        self.away |= not distance <= self.last
        self.last, self.steps = distance, steps
        self.samples += 1

    def closer(self, left: int) -> bool:
        """Return whether the lanes come steadily closer, and may reach the bound in `left` more steps."""
        if self.samples < SAMPLES or self.away or not self.last < self.first:
            return False
        pace = (self.first - self.last) / max(self.steps - self.begun, 1)
        return self.last <= FASTER * pace * left


class Effort:
    """Judges a batch whose scheduler may run `max_steps` basic blocks."""

    def __init__(self, batch: Batch, max_steps: int) -> None:
        self.batch, self.max_steps = batch, max_steps
        self.windows = max(WINDOWS, round(WINDOWS * max_steps / USUAL_STEPS))
        self._start = self._end = self._next = 0.0
        self._approaches: dict[tuple[int, int, int, int], _Approach] = {}
        self._seen = (0, 0)
        self._fruitless, self._since = 0, 0

    def review(self, steps: int, at: int, group: Group) -> str:
        """Explain why a kernel is given up that has run `steps` and whose `group` is at block `at`; empty if it is
        not."""
        now = thread_time()
        if not self._end:
            self._start, self._end = now, now + WINDOW
        if now >= self._end:
            if self._judge(steps, now):
                return ""
            self._fruitless += 1
            if self._fruitless >= self.windows and steps - self._since >= STEPS:
                return self._why(now)
        elif now >= self._next and self._fruitless_so_far():
            self._sample(steps, at, group.dense())
            after = thread_time()
            self._next = after + max(PAUSE, min(PAUSES * (after - now), WINDOW / (4 * SAMPLES)))
        return ""

    def _fruitless_so_far(self) -> bool:
        """Return whether only loops that approach their bounds can still show progress in this window."""
        batch = self.batch
        return batch.places is not None and not batch.places.grown and len(batch.exited) == self._seen[0]

    def _judge(self, steps: int, now: float) -> bool:
        """End a window; return whether anything in it points to an end."""
        batch, first = self.batch, self.batch.places is None
        seen = len(batch.exited), sum(1 for count in batch.counts.executed if count[0])
        fruitful = first or batch.places.settle() or seen != self._seen
        fruitful = fruitful or any(each.closer(self.max_steps - steps) for each in self._approaches.values())
        if first:
            batch.places, batch.watching = ChangedPlaces(), True
        self._seen, self._end = seen, now + WINDOW
        self._approaches.clear()
        if fruitful:
            self._fruitless, self._start, self._since = 0, now, steps
        return fruitful

    def _sample(self, steps: int, at: int, group: Group) -> None:
        lane = group.lanes.at(0)
        distances: dict[Bound, float] = {}  # nested loops have bounds in common
        for head in self._loops_at(at):
            for number, bound in enumerate(self._bounds(head)):
                if bound not in distances:
                    left, right = (_value(group, each, bound[2]) for each in bound[:2])
                    distances[bound] = float(np.abs(left - right).max())
                distance = distances[bound]
                key = head, number, group.lanes.count, hash(lane)
                if key in self._approaches:
                    self._approaches[key].add(distance, steps)
                else:
                    self._approaches[key] = _Approach(distance, distance, steps, steps)

    def _loops_at(self, at: int) -> list[int]:
        """Return the heads of the loops that contain a block."""
        code = self.batch.kernel.code
        if code.loops.heads is None:
            code.loops.heads = _heads_by_block(code.blocks)
        return code.loops.heads.get(at, [])

    def _bounds(self, head: int) -> tuple[Bound, ...]:
        code = self.batch.kernel.code
        if head not in code.loops.bounds:
            code.loops.bounds[head] = bounds_of(code.blocks, head)
        return code.loops.bounds[head]

    def _why(self, now: float) -> str:
        return (
            f"no end in sight: in {now - self._start:.0f} seconds of computing, no thread has left the kernel, nothing "
            "has been stored in a new place, and no loop has come closer to the bound that it compares with, or it has "
            "so slowly that it cannot get there within max_steps"
        )


def _heads_by_block(blocks: list[Block]) -> dict[int, list[int]]:
    """Return, for each block in a loop, the heads of the loops that contain it."""
    found: dict[int, list[int]] = {}
    successors = [block.successors for block in blocks]
    for head in {one for index, after in enumerate(successors) for one in after if one <= index}:
        for index in body_between(successors, head):
            found.setdefault(index, []).append(head)
    return found


Bound = tuple[Register | Immediate, Register | Immediate, str]


def bounds_of(blocks: list[Block], head: int) -> tuple[Bound, ...]:
    """Return the operands, and their type, that the loop at `head` compares to decide whether to go on."""
    return tuple(_operands(one) for one in decisions(blocks, head) if _compares(one))


def _compares(instruction: Instruction) -> bool:
    kind = instruction.opcode.rsplit(".", 1)[-1]
    return (
        instruction.opcode.startswith("setp.") and len(instruction.operands) == 3
        and kind[0] in _DTYPES and kind[1:] in ("16", "32", "64")
        and all(isinstance(each, Register | Immediate) for each in instruction.operands[1:])
        and any(isinstance(each, Register) for each in instruction.operands[1:])
    )  # fmt: skip


def _operands(instruction: Instruction) -> Bound:
    _, one, other = instruction.operands
    return one, other, instruction.opcode.rsplit(".", 1)[-1]


def _value(group: Group, operand: Register | Immediate, kind: str) -> np.ndarray:
    """Return the operand of a comparison as float64."""
    if isinstance(operand, Immediate):
        if operand.bits:
            return np.array(operand.value, f"u{operand.bits // 8}").view(f"f{operand.bits // 8}").astype(np.float64)
        return np.array(operand.value, np.float64)
    value = group.value(operand.name)
    dtype = np.dtype(f"{_DTYPES[kind[0]]}{int(kind[1:]) // 8}")
    return (value.view(dtype) if value.dtype.itemsize == dtype.itemsize else value).astype(np.float64)
