"""Who of a few has waited for whom: lanes of a warp at an operation that names some of them, warps of a block at a
barrier for some of them.

Those who meet know of each other what each knew: that is how order carries over from one meeting to the next.
"""

from __future__ import annotations

import numpy as np


class Meetings:
    """Of `groups` of `members` each. `since[g, t, u]`: what u did before it is ordered before what t does now."""

    def __init__(self, groups: int, members: int) -> None:
        self.since = np.zeros((groups, members, members), np.int64)

    def meet(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, arrived: np.ndarray | None = None
    ) -> None:
        """Members of `groups` wait for each other: those who are `waiting`, bool (n, members).

        `groups` (n,) ascend; where one is there several times, its meetings come one after the other. `base` (groups,
        members): since when each has known of all others anyway. `arrived` (n, members): when a member came that did
        not wait for the others, who wait for it; 0 for the rest.
        """
        if arrived is None:
            arrived = np.zeros(waiting.shape, np.int64)
        turn = np.arange(groups.size) - np.searchsorted(groups, groups)
        for each in range(int(turn.max(initial=-1)) + 1):
            one = turn == each
            self._meet(groups[one], waiting[one], base[groups[one]], now, arrived[one])

    def _meet(self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, arrived: np.ndarray) -> None:
        known = np.maximum(self.since[groups], base[:, :, None])
        there = waiting | (arrived != 0)
        joint = np.maximum(np.where(there[:, :, None], known, 0).max(axis=1), arrived)
        joint[waiting] = now
        self.since[groups] = np.where(waiting[:, :, None], joint[:, None, :], known)

    def times(self, group: np.ndarray, to: np.ndarray, of: np.ndarray, one: np.ndarray) -> np.ndarray:
        """`since`, of arrays of one shape; where `of` is not `one` but several members, the latest of all."""
        return np.where(one, self.since[group, to, of], self.since.max(axis=2)[group, to])
