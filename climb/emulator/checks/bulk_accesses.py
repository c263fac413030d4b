"""Comparisons for accesses of one thread to many cells, as a bulk copy makes them.

Earlier accesses to neighbouring cells were mostly made together: by one thread, at one time. So runs of equal stamps
are compared, not each stamp.
"""

from __future__ import annotations

import numpy as np

from ..simt.lanes import Lanes
from .happens_before import Clock

LONG = 256  # stamps; for fewer, finding the runs takes longer than it saves


def one_thread(block: np.ndarray, thread: np.ndarray) -> bool:
    """Return whether all of these lanes, which ascend, are one thread."""
    return thread.flat[0] == thread.flat[-1] and block.flat[0] == block.flat[-1]


def runs(stamps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first stamp of each run of equal stamps, and the number of the run of each of `stamps`, (n,)."""
    starts = np.concatenate(([True], stamps[1:] != stamps[:-1]))
    return stamps[starts], np.cumsum(starts) - 1


def unordered(clock: Clock, before: np.ndarray, lanes: Lanes, ids: np.ndarray, reads: bool) -> np.ndarray:
    """Return `clock.unordered` of accesses in the block or cluster of the lanes."""
    if before.size < LONG or before.shape[:2] != lanes.shape or not one_thread(lanes.block, lanes.thread):
        return clock.unordered(before, lanes, ids, False, reads)
    one = Lanes(lanes.block[:1, :1], lanes.thread[:1, :1], lanes.threads, True)
    first, run = runs(before.ravel())
    return clock.unordered(first[None, None], one, ids[:1, :1], False, reads).ravel()[run].reshape(before.shape)
