"""The barrier of each cluster, at which threads arrive first and wait later."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .lanes import Lanes

_NEVER = np.iinfo(np.int64).max


class ClusterBarrier:
    """The barriers of the clusters of a batch, of `size` blocks each. All arrays are int64 (blocks, threads)."""

    def __init__(self, blocks: int, threads: int, size: int) -> None:
        self.size, self._shape = size, (3, blocks, threads)

    @cached_property
    def _times(self) -> np.ndarray:
        return np.zeros(self._shape, np.int64)

    @property
    def arrived(self) -> np.ndarray:
        """How often each thread has arrived."""
        return self._times[0]

    @property
    def waited(self) -> np.ndarray:
        """How often each thread has passed a wait."""
        return self._times[1]

    @property
    def when(self) -> np.ndarray:
        """When each thread arrived last; 0 if that was relaxed."""
        return self._times[2]

    def arrive(self, lanes: Lanes, now: int) -> np.ndarray:
        """Lanes arrive at time `now`. Returns those that have arrived before without waiting: bool, lanes' shape."""
        at = lanes.block, lanes.thread
        again = self.arrived[at] != self.waited[at]
        self.arrived[at] += 1
        self.when[at] = now
        return again

    def absent(self, lanes: Lanes) -> np.ndarray:
        """The lanes that wait without having arrived: bool, the shape of the lanes."""
        at = lanes.block, lanes.thread
        return self.arrived[at] == self.waited[at]

    def complete(self, lanes: Lanes, alive: np.ndarray) -> np.ndarray:
        """The lanes for whose wait all threads of the cluster have arrived, or have left: bool, the lanes' shape.

        `alive`: bool (blocks, threads).
        """
        counts = np.where(alive, self.arrived, _NEVER)
        least = counts.reshape(-1, self.size * counts.shape[1]).min(axis=1)
        return least[lanes.block // self.size] > self.waited[lanes.block, lanes.thread]

    def passed(self, lanes: Lanes) -> None:
        """Lanes have passed their wait."""
        self.waited[lanes.block, lanes.thread] += 1
