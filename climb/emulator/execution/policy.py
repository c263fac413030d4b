"""The scheduling policy: which waiting group runs next. This decides where lanes reconverge.

Groups wait at basic blocks, and the group at the lowest block runs first. Blocks are numbered so that everything that
can run before the paths of a branch join comes before the join; so lanes reconverge there, as they do on hardware.

With that rule alone, lanes that wait in a loop could starve the lanes that they wait for, for example the lane of their
own warp that holds a lock. So a group that has repeated such a loop SPINS times, without a lane leaving it, is
postponed until no other group can run.
"""

from __future__ import annotations

from heapq import heappop, heappush

from ..simt.groups import Group

SPINS = 16


class Waiting:
    """Groups that can run, by the basic block that they are at."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._groups: dict[int, list[Group]] = {}
        self._postponed: list[tuple[int, Group]] = []

    def __bool__(self) -> bool:
        return bool(self._heap or self._postponed)

    @property
    def runnable(self) -> bool:
        """Return whether a group can run that is not postponed."""
        return bool(self._heap)

    @property
    def postponed(self) -> list[tuple[int, Group]]:
        """The postponed groups, with their blocks."""
        return self._postponed

    def postpone(self, block: int, group: Group) -> None:
        """Let a group that repeats a waiting loop run only after all others."""
        group.spins = 0
        self._postponed.append((block, group))

    def push(self, block: int, group: Group) -> None:
        """Let a group wait at a block."""
        found = self._groups.get(block)
        if found is None:
            self._groups[block] = [group]
            heappush(self._heap, block)
        else:
            found.append(group)

    def pop(self) -> tuple[int, list[Group]]:
        """Return the block to run next, and the groups that wait there."""
        if not self._heap:
            postponed, self._postponed = self._postponed, []
            for block, group in postponed:
                self.push(block, group)
        block = heappop(self._heap)
        return block, self._groups.pop(block)

    def may_continue(self, block: int, group: Group) -> bool:
        """Return whether a group about to enter `block` would be first anyway, with no other group waiting there."""
        return not self._heap or block < self._heap[0]
