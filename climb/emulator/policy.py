"""Which waiting group runs next: the one rule that decides where lanes meet again.

Groups wait at blocks; the lowest block goes first. Blocks are numbered so that everything which can run before the
paths of a branch join comes before the join, so lanes wait for each other there, as they do on the hardware.

That rule alone would let lanes that wait in a loop for others starve them, for example for the lane of their own warp
that holds a lock. A group that has gone round such a loop SPINS times without a lane leaving it stands back until no
other can run.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .groups import Group

SPINS = 16


class Waiting:
    """Groups that can run, by the block they are at."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._groups: dict[int, list[Group]] = {}
        self._back: list[tuple[int, Group]] = []

    def __bool__(self) -> bool:
        return bool(self._heap or self._back)

    def stands_back(self, block: int, group: Group) -> bool:
        """Whether a group that has gone round a loop of waiting now waits itself: where others can run."""
        group.spins += 1
        if group.spins < SPINS or not self._heap:
            return False
        group.spins = 0
        self._back.append((block, group))
        return True

    def push(self, block: int, group: Group) -> None:
        """A group waits at a block."""
        found = self._groups.get(block)
        if found is None:
            self._groups[block] = [group]
            heappush(self._heap, block)
        else:
            found.append(group)

    def pop(self) -> tuple[int, list[Group]]:
        """The block to run next, and the groups that wait there."""
        if not self._heap:
            back, self._back = self._back, []
            for block, group in back:
                self.push(block, group)
        block = heappop(self._heap)
        return block, self._groups.pop(block)

    def may_continue(self, block: int) -> bool:
        """Whether a group that is about to enter `block` goes first anyway and meets none there."""
        return not self._heap or block < self._heap[0]
