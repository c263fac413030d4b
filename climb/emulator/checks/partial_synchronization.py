"""Order between members of a group when only some of them synchronise.

Members are the lanes of a warp, at a warp operation whose mask names some of them, or the warps of a block, at a
barrier for some of them. Members that synchronise also learn what each of the others knew, so order is transitive. A
member that arrives at a barrier without waiting hands on what it knew then, and not what it has learned since.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

CLUSTER = 1 << 20  # the number of the barrier of the cluster in even phases, one less than in odd ones


def turns(groups: np.ndarray) -> Iterator[np.ndarray]:
    """Yield masks that select each of `groups`, which ascend, at most once; the first occurrences come first."""
    turn = np.arange(groups.size) - np.searchsorted(groups, groups)
    for each in range(int(turn.max(initial=-1)) + 1):
        yield turn == each


class Arrivals:
    """The knowledge of members that arrived at barriers without waiting: by barrier, int64 (groups, columns), the
    latest time per column."""

    def __init__(self) -> None:
        self._rows: dict[int, np.ndarray] = {}

    def add(self, barriers: np.ndarray, groups: np.ndarray, rows: np.ndarray, count: int) -> None:
        """Record that members of `groups`, (n,), out of `count` groups, arrive at `barriers`, (n,), and know `rows`,
        (n, columns)."""
        for each in np.unique(barriers).tolist():
            mine = barriers == each
            if each not in self._rows:
                self._rows[each] = np.zeros((count, rows.shape[1]), np.int64)
            np.maximum.at(self._rows[each], groups[mine], rows[mine])

    def at(self, barriers: np.ndarray, groups: np.ndarray, columns: int, last: bool) -> np.ndarray:
        """Return what has been handed on at `barriers`, (n,), of `groups`, (n,), where all have arrived: (n, columns).

        `last`: this is the last request for it.
        """
        found = np.zeros((groups.size, columns), np.int64)
        for each in np.unique(barriers).tolist():
            if each in self._rows:
                mine = barriers == each
                found[mine] = self._rows[each][groups[mine]]
                if last:
                    self._rows[each][groups[mine]] = 0
        return found


class PartialSynchronization:
    """The knowledge of each group's members: after synchronising, an earlier action is ordered before a later one.

    `since`, int64 (groups, members, members): accesses of member u before time `since[g, t, u]` are ordered before the
    accesses that member t of group g makes now.
    """

    def __init__(self, groups: int, members: int) -> None:
        self.since = np.zeros((groups, members, members), np.int64)
        self._arrivals = Arrivals()

    def arrive(self, groups: np.ndarray, members: np.ndarray, barriers: np.ndarray, base: np.ndarray, now: int) -> None:
        """Record that members of groups arrive at barriers without waiting; the first three arrays are (n,)."""
        rows = np.maximum(self.since[groups, members], base[groups, members, None])
        rows[np.arange(groups.size), members] = now
        self._arrivals.add(barriers, groups, rows, len(self.since))

    def synchronize(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, barriers: np.ndarray | None = None
    ) -> None:
        """Record that members of `groups` wait for each other: those for which `waiting`, bool (n, members), holds.

        `groups` (n,) ascend; if one appears several times, its synchronisations happen one after the other. `base`
        (groups, members): the time since which each member knows what all others did before. `barriers` (n,): the
        barriers where they wait, if others can have arrived there without waiting.
        """
        handed = np.zeros(waiting.shape, np.int64)
        if barriers is not None:
            handed = self._arrivals.at(barriers, groups, waiting.shape[1], True)
        for one in turns(groups):
            self._synchronize(groups[one], waiting[one], base[groups[one]], now, handed[one])

    def _synchronize(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, handed: np.ndarray
    ) -> None:
        known = np.maximum(self.since[groups], base[:, :, None])
        joint = np.maximum(np.where(waiting[:, :, None], known, 0).max(axis=1), handed)
        joint[waiting] = now
        self.since[groups] = np.where(waiting[:, :, None], joint[:, None, :], known)

    def learn(self, waiting: np.ndarray, base: np.ndarray, barriers: np.ndarray) -> None:
        """Record that members for which `waiting`, bool (groups, members), holds have seen that all had arrived at
        `barriers`, (groups,). `base` as for `synchronize`."""
        handed = self._arrivals.at(barriers, np.arange(len(waiting)), waiting.shape[1], False)
        known = np.maximum(self.since, base[:, :, None])
        self.since = np.where(waiting[:, :, None], np.maximum(known, handed[:, None, :]), self.since)

    def times(self, group: np.ndarray, to: np.ndarray, of: np.ndarray, one: np.ndarray) -> np.ndarray:
        """Return `since[group, to, of]`, all broadcast; the latest over all members where `one` does not hold."""
        found = self.since[group, to, of]
        return found if one.all() else np.where(one, found, self.since.max(axis=2)[group, to])
