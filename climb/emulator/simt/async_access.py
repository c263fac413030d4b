"""Asynchronous operations: their accesses, and the commit groups by which threads wait for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from .lanes import Lanes, Selection, take
from .site import Site

PIECE = 16  # bytes of a piece of a long range


def _unknown(block: int, thread: int, number: int) -> str:
    return "nothing has waited for it"


@dataclass(frozen=True, eq=False)
class AsyncAccess:
    """One access of an asynchronous operation, which may happen at any time until a wait covers it.

    Each lane accesses `site.width` bytes at `address + site.offset`; `site.space` ("shared" or "global") says where,
    `site.action` whether it reads ("load") or writes. A longer range has a lane for each of its `pieces`, so a thread
    may appear several times in `lanes`. `value`: the containers to be written, if they are known at the start; two
    copies that write the same value to the same place do not race. `number`, int64 (lanes,): the commit group of each
    lane, or another number that identifies its completion. `home`: the block of the batch whose shared memory is
    accessed, if it is not the lane's own. `collective`: a read for many threads at once; when it is complete, any of
    them may hand the memory on, so it does not count as an ordinary read by its lane. `some`, bool: the lanes that
    access any byte, if not all do; the others' addresses may lie anywhere. `why` tells (block, thread, number) why the
    access of a lane is still in flight, as the last part of a sentence.
    """

    site: Site
    lanes: Lanes
    address: np.ndarray
    number: np.ndarray
    value: np.ndarray | None = None
    home: np.ndarray | None = None
    collective: bool = False
    some: np.ndarray | None = None
    why: Callable[[int, int, int], str] = _unknown

    @property
    def writes(self) -> bool:
        """Return whether the access writes memory."""
        return self.site.action != "load"

    @property
    def block(self) -> np.ndarray:
        """Return the block whose shared memory each lane accesses; it broadcasts to the lanes' shape."""
        return self.lanes.block if self.home is None else self.home

    def part(self, where: np.ndarray) -> AsyncAccess:
        """Return the access restricted to the lanes for which `where`, bool (lanes,), holds."""
        flat, shape = np.flatnonzero(where), self.lanes.shape
        selection = Selection(columns=flat) if self.lanes.ragged else Selection(flat=flat)
        cut = {
            name: None if each is None else take(each, selection, shape)
            for name, each in (
                ("address", self.address),
                ("value", self.value),
                ("home", self.home),
                ("some", self.some),
            )
        }
        return replace(self, lanes=selection.lanes(self.lanes), number=self.number[flat], **cut)


def pieces(lanes: Lanes, start: np.ndarray, nbytes: np.ndarray | int) -> tuple[Lanes, np.ndarray]:
    """Cut ranges of `nbytes` bytes from `start` on into pieces of 16 bytes: a lane for each, and its address.

    `start` and `nbytes` broadcast to the shape of the lanes; `nbytes` are multiples of 16. A lane appears once for each
    of its pieces, in order.
    """
    block, thread, first, size = (
        np.broadcast_to(each, lanes.shape).reshape(-1) for each in (lanes.block, lanes.thread, start, nbytes)
    )
    count = size // PIECE
    owner = np.repeat(np.arange(count.size), count)
    inside = np.arange(owner.size) - np.repeat(np.cumsum(count) - count, count)
    flat = Lanes(block[owner].reshape(1, -1), thread[owner].reshape(1, -1), lanes.threads, True)
    return flat, (first[owner] + PIECE * inside).reshape(1, -1)


@dataclass(eq=False)
class Pending:
    """An operation that was issued and not waited for: its `accesses`, all of the same threads. A thread may have a
    lane in each, or several: one for each piece of memory.

    `land` moves the bytes of the accesses that it is given, without counting or checking anything; `landed` tells
    whether it has been called already, before a wait.
    """

    accesses: tuple[AsyncAccess, ...]
    land: Callable[[tuple[AsyncAccess, ...]], None]
    landed: bool = False


@dataclass(frozen=True, eq=False)
class Covered:
    """An operation, or a part of one, that a wait covers: the accesses as they were, the part that is `done`, and the
    part of other lanes that is `left` pending; None if there is none. All three list the same accesses in order."""

    operation: Pending
    accesses: tuple[AsyncAccess, ...]
    done: tuple[AsyncAccess, ...]
    left: tuple[AsyncAccess | None, ...]


def _of_each(accesses: tuple[AsyncAccess, ...], which: Callable[[AsyncAccess], np.ndarray]) -> list[np.ndarray]:
    """Yield `which` of each access; once for those of the same lanes and commit groups."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for access in accesses:
        key = id(access.lanes), id(access.number)
        if key not in found:
            found[key] = which(access)
    return [found[id(access.lanes), id(access.number)] for access in accesses]


class CommitGroups:
    """Operations that each thread collects in groups; a wait leaves the latest few groups open.

    cp.async, bulk copies and wgmma each have their own groups. `commits`, int64 (threads of the batch,), counts the
    groups that a thread has committed; that is also the number of its open group. `names`: the instructions that commit
    and wait, as messages call them.
    """

    def __init__(self, threads: int, names: tuple[str, str] = ("commit", "wait")) -> None:
        self.commits = np.zeros(threads, np.int64)
        self.pending: list[Pending] = []
        self.names = names
        self._waits: list[tuple[Site, int]] = []
        self._last: np.ndarray | None = None  # int64 (threads, 2): number of the latest wait from 1 on, commits by then

    def open_group(self, lanes: Lanes) -> np.ndarray:
        """Return the number of the group to which operations of these lanes belong until the next commit."""
        return self.commits[lanes.linear()]

    def commit(self, lanes: Lanes) -> None:
        """Close the open group of each lane."""
        self.commits[lanes.linear()] += 1

    def wait(self, lanes: Lanes, number: int, site: Site) -> list[Covered]:
        """Wait until at most the latest `number` groups of each lane are open; return the operations that this
        covers."""
        if not self.pending:
            return []
        linear = lanes.linear()
        if self._last is None:
            self._last = np.zeros((self.commits.size, 2), np.int64)
        self._waits.append((site, number))
        self._last[linear, 0] = len(self._waits)
        self._last[linear, 1] = self.commits[linear]
        done = np.full(self.commits.size, -1, np.int64)
        done[linear] = self.commits[linear] - number
        return self._cover(lambda access: access.number < done[access.lanes.linear()])

    def take(self, lanes: Lanes, operations: list[Pending]) -> list[Covered]:
        """Complete `operations`, as far as they are pending, for these lanes; return the operations that this
        covers."""
        mine, wanted = np.zeros(self.commits.size, np.bool_), {id(each) for each in operations}
        mine[lanes.linear()] = True
        return self._cover(lambda access: mine[access.lanes.linear()], wanted)

    def _cover(self, which: Callable[[AsyncAccess], np.ndarray], wanted: set[int] | None = None) -> list[Covered]:
        """Remove the lanes for which `which`, bool (lanes of the access,), holds from the accesses of pending
        operations, and return them. `wanted`: only from those with these ids."""
        covered, pending = [], []
        for each in self.pending:
            if wanted is not None and id(each) not in wanted:
                pending.append(each)
                continue
            accesses = each.accesses
            arrived = _of_each(accesses, which)
            if all(lanes.all() for lanes in arrived):
                covered.append(Covered(each, accesses, accesses, (None,) * len(accesses)))
            elif any(lanes.any() for lanes in arrived):
                done = tuple(one.part(lanes) for one, lanes in zip(accesses, arrived, strict=True))
                left = tuple(one.part(~lanes) for one, lanes in zip(accesses, arrived, strict=True))
                each.accesses = left
                covered.append(Covered(each, accesses, done, left))
                pending.append(each)
            else:
                pending.append(each)
        self.pending = pending
        return covered

    def why(self, thread: int, number: int) -> str:
        """Explain why group `number` of a thread of the batch is still open, as the last part of a sentence."""
        commit, wait = self.names
        if number >= self.commits[thread]:
            return f"no {commit} has closed its group"
        last, committed = (0, 0) if self._last is None else self._last[thread].tolist()
        if not last or number >= committed:
            return f"no {wait} has covered its group"
        site, open_groups = self._waits[last - 1]
        file = site.location.file.rsplit("/", 1)[-1]
        groups = "latest group" if open_groups == 1 else f"latest {open_groups} groups"
        such = "that one" if open_groups == 1 else "one of them"
        return f"the {wait} at {file}:{site.location.line} left the {groups} open, and its group is {such}"
