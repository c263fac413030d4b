"""Find loops that will never end, long before a limit on steps.

The registers that a loop's branches depend on, directly or through others, decide whether lanes leave it. If a group is
back at the head of a loop with the same lanes and the same values of those registers, and no memory that they are
loaded from has changed since, it will be back for ever. If anything has left the loop in between, that holds for the
outermost loop around it and the registers that decide whether lanes leave that one. The loop may have any period, so a
later visit is compared with one that is remembered for longer and longer (Brent, BIT 20, 1980).

A change that no such instruction has read does not matter, if the addresses of the loop's own writes repeat as well: a
loop may count its rounds in memory. Nor do changes that are undone: if all groups wait in loops, and all of their
registers and all of memory are as they were at an earlier time, as when two groups hand a flag to and fro, that time
will come again for ever. And no path may lead out of a loop at all.

That proves nothing about a wait whose registers never repeat, such as one that counts its attempts or reads a clock.
Such a wait is given up when every lane of the batch waits in a loop, and no memory has changed for many rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from .. import ptx
from ..ptx.control_flow import MEMORY, Block
from ..ptx.model import Instruction
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..translation.registers import register_names, roles

NO_CHANGE = "nothing that the loop's condition depends on changes any more"
NOTHING_NEW = "all registers and all of memory are as they were before, and what has happened since will happen again"
NO_EXIT = "no path leads out of this loop"
PATIENCE = 5000  # steps before loops that do not wait are watched
ROUNDS, SECONDS = 4000, 6.0  # a wait is given up after this many rounds without a change, or this much time
FEWEST_ROUNDS = 64  # ... but not before
LEAP = 1000  # added to the clock per round without a change, times the rounds so far: waits with a deadline end
_OTHERS = ("shfl.", "vote.", "match.", "redux.", "activemask", "elect.", "bar.", "barrier.", "call", "setmaxnreg")
_WRITES = ("st.", "atom.", "red.", "cp.", "sust.", "sured.")
_ASSERTS = "__assertfail"
_CONSTANT = ("ld.param", "ld.const")


class Loop(NamedTuple):
    """The inputs that decide whether lanes leave a loop: registers at its head, and whether values of other lanes, of
    memory or of a clock matter. `writers`: these registers and those that the addresses of its writes depend on.
    `readers`: the text of the instructions that read memory for either. `exits`: the blocks to which lanes leave it.

    Waits at mbarriers count as clocks: `runtime.polls` watches them. So does recursion, whose frames change: it ends,
    or overflows the stack.
    """

    registers: tuple[str, ...]
    writers: tuple[str, ...]
    readers: frozenset[str]
    others: bool
    memory: bool
    clock: bool
    exits: tuple[int, ...]


class _Visit(NamedTuple):
    """A group at the head of a loop: the values of all live registers; how many lanes have left the loop so far; the
    changes of memory so far; and the epoch of the journal."""

    at: int
    lanes: Lanes
    live: dict[str, np.ndarray]
    left: list[int]
    changes: int
    epoch: int


class Progress:
    """Watches the groups of a batch at the heads of their loops."""

    def __init__(self, batch: Batch) -> None:
        self.batch, blocks = batch, batch.kernel.code.blocks
        self.loop = cache(lambda head: loop_at(blocks, head, loop_body(blocks, head)))
        self._outermost = cache(lambda head: loop_at(blocks, head, outermost_body(blocks, head)))
        self._seen: _Visit | None = None
        self._visits, self._power = 0, 1
        #: The number of times that a repeating group has let others run since memory last changed.
        self.postponed = 0
        self._rounds, self._changes, self._since = 0, -1, 0.0
        self._waits: dict[int, _Visit] = {}
        self._moment: list[_Visit] = []
        self._moments, self._every = 0, 1

    @cached_property
    def closed(self) -> frozenset[int]:
        """The blocks from which no path leads to the end of the kernel. Few batches run long enough to need them."""
        return closed(self.batch.kernel.code.blocks)

    def repeats(self, at: int, group: Group, alone: bool) -> str:
        """Explain why a group at the head of loop `at` will stay there for ever, unless others change memory; empty if
        unknown.

        `alone`: it is the only group.
        """
        self.batch.watching = True
        seen = self._seen
        if seen is not None and self._same(seen, at, group, alone):
            return NO_CHANGE
        if seen is not None and self._nothing_else() and self._are_back([(seen, at, group)]):
            return NOTHING_NEW
        self._visits += 1
        if self._visits >= self._power:
            self._visits, self._power = 0, min(2 * self._power, 1 << 16)
            if self._seen is not None and self._matters(self._seen, self.loop(self._seen.at)):
                self.postponed = 0
            self.batch.journal.clear(self.batch.changes)
            self._seen = self._visit(at, group)
        return ""

    def idle(self, waiting: list[tuple[int, Group]]) -> str:
        """Explain why groups that have all repeated their waiting loops will wait for ever; empty if they may not."""
        batch = self.batch
        batch.watching = True
        if batch.changes != self._changes or not all(self._idles(at, group) for at, group in waiting):
            self._rounds, self._changes, self._since = 0, batch.changes, time.monotonic()
            self._waits = {}
            return self._recurs(waiting)
        self._rounds += 1
        batch.timer += LEAP * self._rounds
        if len({at for at, _ in waiting}) == len(waiting) and self._rounds & self._rounds - 1 == 0:
            before, self._waits = self._waits, {at: self._visit(at, group) for at, group in waiting}
            repeats = (at in before and self._same(before[at], at, group, len(waiting) == 1) for at, group in waiting)
            if self._rounds >= FEWEST_ROUNDS and all(repeats):
                return NO_CHANGE
        spent = time.monotonic() - self._since
        given_up = self._rounds >= ROUNDS or (self._rounds >= FEWEST_ROUNDS and spent > SECONDS)
        return NO_CHANGE if given_up else ""

    def _idles(self, at: int, group: Group) -> bool:
        """Return whether a group does nothing in its loop but wait, or will repeat it for ever."""
        loop = self.loop(at)
        return loop.memory or loop.clock or bool(self.repeats(at, group, False))

    def _recurs(self, waiting: list[tuple[int, Group]]) -> str:
        """Explain why groups that change memory will do so for ever: nothing that they read has changed since an
        earlier moment, or nothing at all has; empty if this is unknown."""
        batch = self.batch
        if batch.parked or not self._nothing_else():
            return ""
        seen = self._moment
        if len(seen) == len(waiting) and all(each.epoch == batch.journal.epoch for each in seen):
            pairs = [(one, at, group) for one, (at, group) in zip(seen, waiting, strict=True)]
            if all(self._same(*each, len(waiting) == 1) for each in pairs):
                return NO_CHANGE
            if self._are_back(pairs):
                return NOTHING_NEW
        self._moments += 1
        if self._moments >= self._every or any(each.epoch != batch.journal.epoch for each in seen):
            self._moments, self._every = 0, min(2 * self._every, 1 << 16)
            batch.journal.clear(batch.changes)
            self._moment = [self._visit(*each) for each in waiting]
        return ""

    def _nothing_else(self) -> bool:
        """Return whether registers and memory are the complete state of the batch."""
        batch = self.batch
        elsewhere = batch.asynchronous.used or batch.copies.pending or batch.products.pending
        return not elsewhere and batch.schedule is None and batch.grid_barrier is None

    def _are_back(self, pairs: list[tuple[_Visit, int, Group]]) -> bool:
        """Return whether groups are where they were at earlier visits, with the same values in all registers and in
        memory."""
        batch, journal = self.batch, self.batch.journal
        known = all(seen.epoch == journal.epoch for seen, _, _ in pairs) and journal.complete(batch.changes)
        return known and all(self._is_back(*each) for each in pairs) and journal.restored()

    def _is_back(self, seen: _Visit, at: int, group: Group) -> bool:
        """Return whether a group is in the same place with the same values of all registers, and no clock runs."""
        if seen.at != at or self.loop(at).clock or not _same_lanes(seen.lanes, group.lanes):
            return False
        return self._equal(seen, self.batch.kernel.code.blocks[at].live, group)

    def _visit(self, at: int, group: Group) -> _Visit:
        batch = self.batch
        live = {name: group.value(name) for name in batch.kernel.code.blocks[at].live}
        return _Visit(at, group.lanes, live, self._left(at), batch.changes, batch.journal.epoch)

    def _left(self, at: int) -> list[int]:
        """Return how many lanes have left the loop at `at` so far, by exit."""
        return [self.batch.counts.executed[one][1] for one in self.loop(at).exits]

    def _matters(self, seen: _Visit, loop: Loop) -> bool:
        """Return whether memory that decides the loop may have changed since a visit."""
        batch, journal = self.batch, self.batch.journal
        if seen.changes == batch.changes:
            return False
        known = seen.epoch == journal.epoch and journal.complete(batch.changes)
        return not known or journal.matters(loop.readers)

    def _same(self, seen: _Visit, at: int, group: Group, alone: bool) -> bool:
        """Return whether nothing that matters to the loop at `at` has changed since a visit."""
        if seen.at != at:
            return False
        loop = self.loop(at) if seen.left == self._left(at) else self._outermost(at)
        if loop.clock or (loop.others and not alone) or not _same_lanes(seen.lanes, group.lanes):
            return False
        if not self._equal(seen, loop.registers, group):
            return False
        if seen.changes == self.batch.changes:
            return True
        return self._equal(seen, loop.writers, group) and not self._matters(seen, loop)

    @staticmethod
    def _equal(seen: _Visit, names: Iterable[str], group: Group) -> bool:
        """Return whether registers have the values that they had at a visit."""
        return all(_same_bits(seen.live[name], group.value(name)) for name in names)


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    return one is other or (one.shape == other.shape and one.tobytes() == other.tobytes())


def _same_lanes(one: Lanes, other: Lanes) -> bool:
    if one is other:
        return True
    return one.count == other.count and np.array_equal(one.linear(), other.linear())


def closed(blocks: list[Block]) -> frozenset[int]:
    """Return the blocks from which no path leads to the end of the kernel, or to a trap."""
    before: dict[int, list[int]] = {}
    for block in blocks:
        for one in block.successors:
            before.setdefault(one, []).append(block.index)
    stops = (b.index for b in blocks if any(one.opcode == "trap" or _ASSERTS in one.text for one in b.instructions))
    open_ones = {*stops, *(block.index for block in blocks if block.next < 0)}
    stack = list(open_ones)
    while stack:
        new = [one for one in before.get(stack.pop(), ()) if one not in open_ones]
        open_ones.update(new)
        stack += new
    return frozenset(range(len(blocks))) - open_ones


def loop_at(blocks: list[Block], head: int, body: set[int]) -> Loop:
    """Return what decides whether lanes at the block `head` leave a loop with the blocks `body`."""
    inside = [one for index in body for one in blocks[index].instructions]
    guards = _guards(blocks, body)
    found, parts = _dependences(inside, guards)
    loads = _loads(parts)
    targets = {
        name
        for one in inside if one.opcode.startswith(_WRITES)
        for operand in one.operands if isinstance(operand, ptx.Address)
        for name in register_names(operand)
    }  # fmt: skip
    writers, more = _dependences(inside, guards | targets)
    return Loop(
        tuple(sorted(found & blocks[head].live)),
        tuple(sorted(writers & blocks[head].live)),
        frozenset(one.text for one in _loads(more)),
        any(one.opcode.startswith(_OTHERS) for one in parts),
        bool(loads),
        any("%clock" in one.text or "%globaltimer" in one.text or one.opcode.startswith("mbarrier.") for one in parts)
        or any(one.opcode.startswith("frame.") for one in inside),
        tuple(sorted({one for index in body for one in blocks[index].successors} - body)),
    )


def decisions(blocks: list[Block], head: int) -> list[Instruction]:
    """Return the instructions of the loop at `head` that compute what its branches depend on."""
    body = loop_body(blocks, head)
    return _dependences([one for index in body for one in blocks[index].instructions], _guards(blocks, body))[1]


def _guards(blocks: list[Block], body: set[int]) -> set[str]:
    return {blocks[index].guard[0].name for index in body if blocks[index].guard is not None}


def _dependences(inside: list[Instruction], names: set[str]) -> tuple[set[str], list[Instruction]]:
    """Return the registers that these depend on, directly or through others, and the instructions that compute them."""
    found, parts, known = set(names), [], -1
    each = [(one, *roles(one)) for one in inside]
    while len(found) > known:
        known = len(found)
        chosen = [one for one in each if not found.isdisjoint(one[1])]
        for _, _, reads in chosen:
            found.update(reads)
        parts = [one for one, _, _ in chosen]
    return found, parts


def _loads(parts: list[Instruction]) -> list[Instruction]:
    return [one for one in parts if one.opcode.startswith(MEMORY) and not one.opcode.startswith(_CONSTANT)]


def outermost_body(blocks: list[Block], head: int) -> set[int]:
    """Return the blocks of all loops around `head`: those that it leads to and that lead back to it."""
    before: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for one in block.successors:
            before[one].append(block.index)
    return _reached(head, lambda index: blocks[index].successors) & _reached(head, lambda index: before[index])


def _reached(start: int, following: Callable[[int], Iterable[int]]) -> set[int]:
    found, stack = {start}, [start]
    while stack:
        new = [one for one in following(stack.pop()) if one not in found]
        found.update(new)
        stack += new
    return found


def loop_body(blocks: list[Block], head: int) -> set[int]:
    """Return the blocks of a loop: those from `head` on that `head` leads to and that lead back to it."""
    return body_between([block.successors for block in blocks], head)


def body_between(successors: list[tuple[int, ...]], head: int) -> set[int]:
    """Like `loop_body`, from the successors of each block."""
    ahead, stack = {head}, [head]
    before: dict[int, list[int]] = {}
    while stack:
        index = stack.pop()
        for one in successors[index]:
            if one >= head:
                before.setdefault(one, []).append(index)
                if one not in ahead:
                    ahead.add(one)
                    stack.append(one)
    return _reached(head, lambda index: before.get(index, ()))
