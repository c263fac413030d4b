"""Relaxed and volatile loads: with a fence after them they acquire (PTX ISA, "Acquire Pattern"); alone they do not.

A thread's fence counts for its own loads and for those that it has waited for: one thread may poll, and after a barrier
another one may execute the fence.
"""

from __future__ import annotations

import numpy as np

from ..simt.lanes import WARP, Lanes
from .partial_synchronization import turns


class RelaxedLoads:
    """The time of the last relaxed or volatile load known to each thread: int64 (blocks, threads), 0 if none."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.times = np.zeros(shape, np.int64)

    def note(self, lanes: Lanes, now: int) -> None:
        """Record that lanes execute such a load."""
        self.times[lanes.block, lanes.thread] = now

    def of(self, lanes: Lanes) -> np.ndarray:
        """Return the times of lanes, in their shape."""
        return np.broadcast_to(self.times[lanes.block, lanes.thread], lanes.shape)

    def met_at_barrier(self, lanes: Lanes) -> None:
        """Record that threads of these blocks have waited for each other."""
        blocks = np.unique(lanes.block)
        self.times[blocks] = self.times[blocks].max(axis=1, keepdims=True)

    def met_in_warps(self, lanes: Lanes) -> None:
        """Record that lanes of a warp have waited for each other."""
        spread_in_warps(self.times, lanes)


def spread_in_warps(times: np.ndarray, lanes: Lanes) -> None:
    """Give each of `lanes` the latest of the times (blocks, threads) that lanes of its warp have."""
    blocks, threads = times.shape
    rows = np.zeros((blocks, -(-threads // WARP) * WARP), np.int64)
    here = lanes.block, lanes.thread
    rows[here] = times[here]
    latest = rows.reshape(blocks, -1, WARP).max(axis=2).repeat(WARP, axis=1)
    times[here] = np.maximum(times[here], latest[here])


def spread_over_barrier(times: np.ndarray, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray) -> None:
    """Give each thread that has waited at a barrier for some warps the latest of the times (blocks, threads) that any
    of the others has; see `Clock.synchronize_warps`."""
    threads = times.shape[1]
    for one in turns(blocks):
        masks = waiting[one] | arrived[one], waiting[one]
        present, waited = (each.repeat(WARP, axis=1)[:, :threads] for each in masks)
        here = times[blocks[one]]
        latest = np.where(present, here, 0).max(axis=1, keepdims=True)
        times[blocks[one]] = np.where(waited, np.maximum(here, latest), here)
