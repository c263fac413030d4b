"""Times of threads: int64 (1, 1) if all are alike, (1, threads) if all blocks are alike, or (blocks, threads)."""

from __future__ import annotations

import numpy as np

from ..simt.lanes import WARP, Lanes, broadcast_to


def times_of(times: np.ndarray, lanes: Lanes) -> np.ndarray:
    """Return the times of lanes, broadcasting to their shape with a third axis for cells."""
    if times.shape == (1, 1):
        return times[:, :, None]
    if times.shape[0] == 1:
        return times[:, lanes.thread[0], None]
    return times[lanes.block, lanes.thread][:, :, None]


def with_times(
    times: np.ndarray, shape: tuple[int, int], lanes: Lanes, now: int | np.ndarray, whole: bool
) -> np.ndarray:
    """Raise the lanes' times to at least `now`, and return all times.

    `shape`: (blocks, threads) of the batch; `whole`: these are all of its lanes, and no time is later.
    """
    if whole:
        return np.full((1, 1), now, np.int64)
    rows = times.shape[0]
    if lanes.ragged or lanes.shape[0] != shape[0] or np.ndim(now) > 0:
        rows = shape[0]
    times = np.array(broadcast_to(times, (rows, shape[1])))
    at = (0, lanes.thread[0]) if rows == 1 else (lanes.block, lanes.thread)
    times[at] = np.maximum(times[at], now)
    return times


def by_warp(times: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the times by warp, int64 (blocks, warps, 32); 0 for lanes that do not exist. `shape`: (blocks,
    threads)."""
    blocks, threads = shape
    warps = -(-threads // WARP)
    out = np.zeros((blocks, warps * WARP), np.int64)
    out[:, :threads] = times
    return out.reshape(blocks, warps, WARP)
