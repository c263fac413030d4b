"""The barrier of each cluster, at which threads arrive first and wait later."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .lanes import Lanes

_NEVER = np.iinfo(np.int64).max


class ClusterBarrier:
    """The barriers of the clusters of a batch, of `size` blocks each. All arrays are int64 (blocks, threads)."""

    def __init__(self, blocks: int, threads: int, size: int) -> None:
        self.size, self._shape = size, (4, blocks, threads)

    @cached_property
    def _times(self) -> np.ndarray:
        return np.zeros(self._shape, np.int64)

    @property
    def arrived(self) -> np.ndarray:
        """The number of times each thread has arrived."""
        return self._times[0]

    @property
    def waited(self) -> np.ndarray:
        """The number of times each thread has passed a wait."""
        return self._times[1]

    def phase(self, lanes: Lanes) -> np.ndarray:
        """Return whether the number of the last phase that lanes saw end is odd, for each block of their clusters:
        int64 (blocks,), 0 or 1; the values for other clusters are arbitrary."""
        odd = np.zeros(self._shape[1] // self.size, np.int64)
        odd[np.broadcast_to(lanes.block // self.size, lanes.shape)] = self.waited[lanes.block, lanes.thread] & 1
        return odd.repeat(self.size)

    def when(self, phase: np.ndarray) -> np.ndarray:
        """Return the time when each thread last arrived in an even or odd phase, 0 or 1 for each block; 0 if that was
        relaxed.

        Some threads that have waited may have arrived for the next phase, but not for the one after that.
        """
        return np.where(phase[:, None] == 1, self._times[3], self._times[2])

    def arrive(self, lanes: Lanes, now: int) -> np.ndarray:
        """Record that lanes arrive at time `now`. Returns those that have arrived before without waiting: bool, lanes'
        shape."""
        at = lanes.block, lanes.thread
        again = self.arrived[at] != self.waited[at]
        self._times[(2 + (self.arrived[at] & 1), *at)] = now
        self.arrived[at] += 1
        return again

    def absent(self, lanes: Lanes) -> np.ndarray:
        """Return the lanes that wait without having arrived: bool, the shape of the lanes."""
        at = lanes.block, lanes.thread
        return self.arrived[at] == self.waited[at]

    def complete(self, lanes: Lanes, alive: np.ndarray) -> np.ndarray:
        """Return the lanes for whose wait all threads of the cluster have arrived, or have left: bool, the lanes'
        shape.

        `alive`: bool (blocks, threads).
        """
        counts = np.where(alive, self.arrived, _NEVER)
        least = counts.reshape(-1, self.size * counts.shape[1]).min(axis=1)
        return least[lanes.block // self.size] > self.waited[lanes.block, lanes.thread]

    def passed(self, lanes: Lanes) -> None:
        """Record that lanes have passed their wait."""
        self.waited[lanes.block, lanes.thread] += 1
