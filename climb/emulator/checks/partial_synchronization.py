"""Order between members of a group when only some of them synchronise.

Members are the lanes of a warp, at a warp operation whose mask names some of them, or the warps of a block, at a
barrier for some of them. Members that synchronise also learn what each of the others knew, so order is transitive.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def turns(groups: np.ndarray) -> Iterator[np.ndarray]:
    """Masks that select each of `groups`, which ascend, at most once; the first occurrences come first."""
    turn = np.arange(groups.size) - np.searchsorted(groups, groups)
    for each in range(int(turn.max(initial=-1)) + 1):
        yield turn == each


class PartialSynchronization:
    """What the members of each group know: after synchronising, an earlier action is ordered before a later one.

    `since`, int64 (groups, members, members): what member u did before time `since[g, t, u]` is ordered before what
    member t of group g does now.
    """

    def __init__(self, groups: int, members: int) -> None:
        self.since = np.zeros((groups, members, members), np.int64)

    def synchronize(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, arrived: np.ndarray | None = None
    ) -> None:
        """Members of `groups` wait for each other: those for which `waiting`, bool (n, members), holds.

        `groups` (n,) ascend; if one appears several times, its synchronisations happen one after the other. `base`
        (groups, members): the time since which each member knows what all others did before. `arrived` (n, members):
        when a member arrived without waiting for the others, who wait for it; 0 for the rest.
        """
        if arrived is None:
            arrived = np.zeros(waiting.shape, np.int64)
        for one in turns(groups):
            self._synchronize(groups[one], waiting[one], base[groups[one]], now, arrived[one])

    def _synchronize(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, arrived: np.ndarray
    ) -> None:
        known = np.maximum(self.since[groups], base[:, :, None])
        present = waiting | (arrived != 0)
        joint = np.maximum(np.where(present[:, :, None], known, 0).max(axis=1), arrived)
        joint[waiting] = now
        self.since[groups] = np.where(waiting[:, :, None], joint[:, None, :], known)

    def learn(self, waiting: np.ndarray, base: np.ndarray, arrived: np.ndarray) -> None:
        """Members for which `waiting`, bool (groups, members), holds have seen that all others had arrived.

        `base` as for `synchronize`; `arrived` (groups, members): when each member arrived; 0 if that tells nothing.
        """
        known = np.maximum(self.since, base[:, :, None])
        joint = np.maximum(np.where((arrived != 0)[:, :, None], known, 0).max(axis=1), arrived)
        self.since = np.where(waiting[:, :, None], np.maximum(known, joint[:, None, :]), self.since)

    def times(self, group: np.ndarray, to: np.ndarray, of: np.ndarray, one: np.ndarray) -> np.ndarray:
        """`since[group, to, of]`, all broadcast; the latest over all members where `one` does not hold."""
        found = self.since[group, to, of]
        return found if one.all() else np.where(one, found, self.since.max(axis=2)[group, to])
