"""Which waiting group runs next: the one rule that decides where lanes meet again.

Groups wait at blocks; the lowest block goes first. Blocks are numbered so that everything which can run before the
paths of a branch join comes before the join, so lanes wait for each other there, as they do on the hardware.
"""

from __future__ import annotations

from heapq import heappop, heappush

from .groups import Group


class Waiting:
    """Groups that can run, by the block they are at."""

    def __init__(self) -> None:
        self._heap: list[int] = []
        self._groups: dict[int, list[Group]] = {}

    def __bool__(self) -> bool:
        return bool(self._heap)

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
        block = heappop(self._heap)
        return block, self._groups.pop(block)

    def may_continue(self, block: int) -> bool:
        """Whether a group that is about to enter `block` goes first anyway and meets none there."""
        return not self._heap or block < self._heap[0]

    def lanes_at(self) -> list[tuple[int, Group]]:
        """Every waiting group with its block, for error messages."""
        return [(block, group) for block, groups in self._groups.items() for group in groups]
