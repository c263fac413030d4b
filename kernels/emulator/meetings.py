"""Who of a few has waited for whom: lanes of a warp at an operation that names some of them, warps of a block at a
barrier for some of them.

Those who meet know of each other what each knew: that is how order carries over from one meeting to the next.
"""

from __future__ import annotations

import numpy as np

WARP = 32
_MEMBERS = np.arange(WARP, dtype=np.uint32)


class Meetings:
    """Of `groups` with up to 32 members each. `since[g, t, u]`: what u did before this time is ordered before what t
    does now."""

    def __init__(self, groups: int) -> None:
        self.since = np.zeros((groups, WARP, WARP), np.int64)

    def meet(
        self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int, arrived: np.ndarray | None = None
    ) -> None:
        """In each of `groups` (n,), no two of which are the same, members wait for each other: those whose bits are set
        in `waiting` (n,). `base` (n, 32): since when each has known of all others anyway. `arrived` (n, 32): when a
        member came that did not wait for the others, who wait for it; 0 for the rest."""
        here = _bits(waiting)
        there = here if arrived is None else here | (arrived != 0)
        known = np.maximum(self.since[groups], base[:, :, None])
        joint = np.where(there[:, :, None], known, 0).max(axis=1)
        if arrived is not None:
            joint = np.maximum(joint, arrived)
        joint[here] = now
        self.since[groups] = np.where(here[:, :, None], joint[:, None, :], known)

    def meet_all(self, groups: np.ndarray, waiting: np.ndarray, base: np.ndarray, now: int) -> None:
        """As `meet`, for groups (n,) that may be the same ones, each with another mask."""
        pairs = np.unique(np.stack([groups, waiting.astype(np.int64)]), axis=1)
        groups, waiting = pairs[0], pairs[1].astype(np.uint32)
        first = np.searchsorted(groups, groups)
        turn = np.arange(groups.size) - first
        for each in range(int(turn.max(initial=-1)) + 1):
            one = turn == each
            self.meet(groups[one], waiting[one], base[groups[one]], now)

    def times(self, group: np.ndarray, to: np.ndarray, of: np.ndarray, one: np.ndarray) -> np.ndarray:
        """`since`, of arrays of one shape; where `of` is not `one` but several members, the latest of all."""
        return np.where(one, self.since[group, to, of], self.since.max(axis=2)[group, to])


def _bits(masks: np.ndarray) -> np.ndarray:
    """bool (n, 32): the members whose bits are set."""
    return (masks.astype(np.uint32)[:, None] >> _MEMBERS & np.uint32(1)).astype(np.bool_)
