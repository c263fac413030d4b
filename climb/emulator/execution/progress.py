"""Whether anything can still change: loops that will never end, found long before a limit on steps.

What decides whether lanes leave a loop are the registers that its branches depend on, directly or through others. If a
group is back at the head of a loop with the same lanes and the same values of those registers, and no memory that they
are loaded from has changed since, it will be back for ever. The loop may have any period, so a later visit is compared
with one that is remembered for longer and longer (Brent, BIT 20, 1980).

That proves nothing about a wait whose registers never repeat, such as one that counts its attempts or reads a clock.
Such a wait is given up when every lane of the batch waits in a loop, and no memory has changed for many rounds.
"""

from __future__ import annotations

import time
from functools import cache
from typing import NamedTuple

import numpy as np

from ..ptx.control_flow import MEMORY, Block
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..translation.registers import roles

PATIENCE = 5000  # steps before loops that do not wait are watched
ROUNDS, SECONDS = 4000, 6.0  # after so many rounds without a change, or so much time, a wait is given up
FEWEST_ROUNDS = 64  # ... but not before
LEAP = 1000  # what each round without a change adds to the clock, times the rounds so far: waits with a deadline end
_OTHERS = ("shfl.", "vote.", "match.", "redux.", "activemask", "elect.", "bar.", "barrier.", "call", "setmaxnreg")
_CONSTANT = ("ld.param", "ld.const")


class Loop(NamedTuple):
    """What decides whether lanes leave a loop: registers at its head, and whether the values of other lanes, of memory
    or of a clock come in. Waits at mbarriers count as clocks: `runtime.polls` watches them. So does recursion, whose
    frames change: it ends, or overflows the stack."""

    registers: tuple[str, ...]
    others: bool
    memory: bool
    clock: bool


class _Visit(NamedTuple):
    at: int
    lanes: Lanes
    values: list[np.ndarray]
    changes: int


class Progress:
    """Watches the groups of a batch at the heads of their loops."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.loop = cache(lambda head: loop_at(batch.kernel.code.blocks, head))
        self._seen: _Visit | None = None
        self._visits, self._power = 0, 1
        #: How often a group that repeats itself has let others run since memory last changed.
        self.postponed = 0
        self._rounds, self._changes, self._since = 0, -1, 0.0
        self._waits: dict[int, _Visit] = {}

    def repeats(self, at: int, group: Group, alone: bool) -> bool:
        """Whether a group at the head of loop `at` will be there for ever, unless others change memory.

        `alone`: no other group exists.
        """
        self.batch.watching = True
        if self._seen is not None and self._seen.at == at and self._same(self._seen, at, group, alone):
            return True
        self._visits += 1
        if self._visits >= self._power:
            self._visits, self._power = 0, min(2 * self._power, 1 << 16)
            if self._seen is not None and self._seen.changes != self.batch.changes:
                self.postponed = 0
            self._seen = self._visit(at, group)
        return False

    def idle(self, waiting: list[tuple[int, Group]]) -> bool:
        """Called when all groups have repeated their waiting loops: whether they will wait for ever."""
        batch = self.batch
        batch.watching = True
        if batch.changes != self._changes or not all(self._idles(at, group) for at, group in waiting):
            self._rounds, self._changes, self._since = 0, batch.changes, time.monotonic()
            self._waits = {}
            return False
        self._rounds += 1
        batch.timer += LEAP * self._rounds
        if len({at for at, _ in waiting}) == len(waiting) and self._rounds & self._rounds - 1 == 0:
            before, self._waits = self._waits, {at: self._visit(at, group) for at, group in waiting}
            repeats = (at in before and self._same(before[at], at, group, len(waiting) == 1) for at, group in waiting)
            if self._rounds >= FEWEST_ROUNDS and all(repeats):
                return True
        spent = time.monotonic() - self._since
        return self._rounds >= ROUNDS or (self._rounds >= FEWEST_ROUNDS and spent > SECONDS)

    def _idles(self, at: int, group: Group) -> bool:
        """Whether a group does nothing in its loop but wait, or will repeat it for ever."""
        loop = self.loop(at)
        return loop.memory or loop.clock or self.repeats(at, group, False)

    def _visit(self, at: int, group: Group) -> _Visit:
        values = [group.value(name) for name in self.loop(at).registers]
        return _Visit(at, group.lanes, values, self.batch.changes)

    def _same(self, seen: _Visit, at: int, group: Group, alone: bool) -> bool:
        """Whether nothing that matters to the loop at `at` has changed since a visit."""
        loop = self.loop(at)
        if loop.clock or (loop.others and not alone) or (loop.memory and seen.changes != self.batch.changes):
            return False
        if not _same_lanes(seen.lanes, group.lanes):
            return False
        values = (group.value(name) for name in loop.registers)
        return all(_same_bits(one, other) for one, other in zip(seen.values, values, strict=True))


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())


def _same_lanes(one: Lanes, other: Lanes) -> bool:
    if one is other:
        return True
    return one.count == other.count and np.array_equal(one.linear(), other.linear())


def loop_at(blocks: list[Block], head: int) -> Loop:
    """What decides whether lanes leave the loop whose first block is `head`."""
    body = _body(blocks, head)
    inside = [one for index in body for one in blocks[index].instructions]
    guards = {blocks[index].guard[0].name for index in body if blocks[index].guard is not None}
    found, parts, known = set(guards), [], -1
    while len(found) > known:
        known = len(found)
        parts = [one for one in inside if not found.isdisjoint(roles(one)[0])]
        for one in parts:
            found.update(roles(one)[1])
    loads = [one for one in parts if one.opcode.startswith(MEMORY) and not one.opcode.startswith(_CONSTANT)]
    return Loop(
        tuple(sorted(found & blocks[head].live)),
        any(one.opcode.startswith(_OTHERS) for one in parts),
        bool(loads),
        any("%clock" in one.text or "%globaltimer" in one.text or one.opcode.startswith("mbarrier.") for one in parts)
        or any(one.opcode.startswith("frame.") for one in inside),
    )


def _body(blocks: list[Block], head: int) -> set[int]:
    """The blocks of a loop: those from `head` on that `head` leads to and that lead back to it."""
    ahead, stack = {head}, [head]
    while stack:
        for one in blocks[stack.pop()].successors:
            if one > head and one not in ahead:
                ahead.add(one)
                stack.append(one)
    body = {index for index in ahead if head in blocks[index].successors} | {head}
    grown = True
    while grown:
        more = {index for index in ahead - body if not body.isdisjoint(blocks[index].successors)}
        body |= more
        grown = bool(more)
    return body
