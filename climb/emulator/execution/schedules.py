"""Adverse schedules: orders of warps, blocks and asynchronous copies that a GPU may choose, but this emulator usually
does not.

Usually all lanes run together, and an asynchronous copy takes effect when a thread waits for it. Under a `Schedule`,
warps and blocks run in teams, one team after another in an order that a seed chooses, and copies take effect as early
or as late as possible. A result that depends on the schedule is not determined by the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from random import Random

import numpy as np

from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import WARP, Lanes, Selection
from .policy import Waiting

COPIES = ("early", "late", "mixed")
TEAMS = 4  # sets of warps, and sets of blocks, whose pairs are the teams
STAYS = 0.75  # the probability that a team goes on after a basic block


@dataclass(frozen=True)
class Schedule:
    """One order of execution, the same in every launch with the same `seed`.

    `copies`: when asynchronous copies take effect: "early" (when they are issued), "late" (when a thread waits for
    them), or "mixed"; by default one of them, by the seed. Raises ValueError for another word.
    """

    seed: int
    copies: str = ""

    def __post_init__(self) -> None:
        if not self.copies:
            object.__setattr__(self, "copies", COPIES[self.seed % len(COPIES)])
        if self.copies not in COPIES:
            raise ValueError(f"copies is {self.copies!r}; expected one of {', '.join(COPIES)}")

    def __str__(self) -> str:
        return f"seed {self.seed} ({self.copies} copies)"


@dataclass(frozen=True)
class Schedules:
    """`number` schedules with consecutive seeds from `seed` on."""

    number: int
    seed: int = 0

    def __iter__(self) -> Iterator[Schedule]:
        return (Schedule(self.seed + each) for each in range(self.number))


_current: ContextVar[Schedule | None] = ContextVar("schedule", default=None)


def current() -> Schedule | None:
    """Return the schedule of launches that are given none; None for the usual order."""
    return _current.get()


@contextmanager
def scheduling(schedule: Schedule | None) -> Iterator[None]:
    """Run the launches inside the `with` block under a schedule, from any caller: `with scheduling(Schedule(3)):
    ...`"""
    token = _current.set(schedule)
    try:
        yield
    finally:
        _current.reset(token)


class BatchSchedule:
    """A schedule's choices for one batch."""

    def __init__(self, schedule: Schedule, start: int) -> None:
        self._copies = schedule.copies
        self.random = Random(schedule.seed * (1 << 32) + start)

    def lands_early(self) -> bool:
        """Return whether the operation issued now takes effect at once."""
        return self._copies == "early" or (self._copies == "mixed" and self.random.random() < 0.5)


class Teams(Waiting):
    """Groups that can run, by team: a set of warps in a set of blocks. Within a team the usual policy holds, so that
    the lanes of a warp reconverge as usual; which team runs is chosen at random."""

    def __init__(self, batch: Batch, random: Random) -> None:
        super().__init__()
        self._batch, self._random = batch, random
        warps = -(-batch.threads // WARP)
        self._of_block = np.array([random.randrange(TEAMS) for _ in range(batch.blocks)])
        self._of_warp = np.array([random.randrange(TEAMS) for _ in range(warps)])
        self._teams: dict[int, Waiting] = {}
        self._passed: list[tuple[int, Group]] = []  # parts of groups that have passed a gate together

    def __bool__(self) -> bool:
        return bool(self._passed) or any(self._teams.values())

    @property
    def runnable(self) -> bool:
        """Return whether a group can run that is not postponed."""
        return bool(self._passed) or any(team.runnable for team in self._teams.values())

    @property
    def postponed(self) -> list[tuple[int, Group]]:
        """The postponed groups, with their blocks."""
        return [each for team in self._teams.values() for each in team.postponed]

    def postpone(self, block: int, group: Group) -> None:
        """Let a group that repeats a waiting loop run only after all others."""
        for team, part in self._split(block, group):
            self._team(team).postpone(block, part)

    def push(self, block: int, group: Group) -> None:
        """Let a group wait at a block."""
        for team, part in self._split(block, group):
            self._team(team).push(block, part)

    def pop(self) -> tuple[int, list[Group]]:
        """Return the block to run next, and the groups of one team that wait there."""
        teams = self._teams.values()
        ready: list[Waiting | None] = [team for team in teams if team.runnable] + [None] * len(self._passed)
        chosen = self._random.choice(ready or [team for team in teams if team])
        if chosen is not None:
            return chosen.pop()
        block, group = self._passed.pop(self._random.randrange(len(self._passed)))
        return block, [group]

    def spread(self, block: int, group: Group) -> bool:
        """Let the teams of a group that has passed the barrier of a block go on one by one; return False for a single
        team, or if the barrier is a vote, which combines the values of all."""
        if ".red." in self._batch.kernel.code.blocks[block].first.opcode:
            return False
        parts = self._split(block, group)
        if len(parts) == 1:
            return False
        for _, part in parts:
            self.push_passed(block, part)
        return True

    def push_passed(self, block: int, group: Group) -> None:
        """Let a group that has passed the gate of a block go on."""
        group.passed = True
        self._passed.append((block, group))

    def may_continue(self, block: int, group: Group) -> bool:
        """Return whether a group of one team that is about to enter `block` goes on."""
        teams = self._teams_of(group.lanes)
        if (teams != teams.flat[0]).any() or self._random.random() > STAYS:
            return False
        return self._team(int(teams.flat[0])).may_continue(block, group)

    def _team(self, number: int) -> Waiting:
        return self._teams.setdefault(number, Waiting())

    def _teams_of(self, lanes: Lanes) -> np.ndarray:
        return self._of_block[lanes.block] * TEAMS + self._of_warp[lanes.thread // WARP]

    def _split(self, block: int, group: Group) -> list[tuple[int, Group]]:
        """Return the parts of a group by team."""
        lanes, live = group.lanes, self._batch.kernel.code.blocks[block].live
        teams = self._teams_of(lanes)
        numbers = np.unique(teams).tolist()
        if len(numbers) == 1:
            return [(numbers[0], group)]
        if lanes.ragged:
            parts = [Selection(columns=np.flatnonzero(teams[0] == number)) for number in numbers]
        else:
            parts = [_rectangle(teams == number) for number in numbers]
        return list(zip(numbers, group.split([(part, live) for part in parts]), strict=True))


def _rectangle(here: np.ndarray) -> Selection:
    """Return the rows and columns of a rectangle of lanes, bool (blocks, threads)."""
    rows, columns = np.flatnonzero(here.any(axis=1)), np.flatnonzero(here.any(axis=0))
    every_row, every_column = rows.size == here.shape[0], columns.size == here.shape[1]
    return Selection(rows=None if every_row else rows, columns=None if every_column else columns)
