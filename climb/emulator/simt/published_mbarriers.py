"""The threads that know that an mbarrier has been initialised, after a relaxed barrier of the cluster.

fence.mbarrier_init publishes the initialisations of its thread, and nothing else. A thread may use those mbarriers once
it has waited at a barrier of the cluster at which the thread of the fence arrived afterwards, even by
barrier.cluster.arrive.relaxed. PTX ISA, section "membar / fence".
"""

from __future__ import annotations

import numpy as np

from .cluster_barrier import ClusterBarrier
from .lanes import Lanes, broadcast_to

_NEVER = np.iinfo(np.int64).max


class PublishedMbarriers:
    """The initialised mbarriers of a batch, by word (see `Asynchronous`)."""

    def __init__(self, words: int) -> None:
        self._unpublished: dict[int, list[int]] = {}  # words that each thread has initialised since its last fence
        #: The number of barriers of its cluster that a thread must have passed to know the mbarrier in a word.
        self._phases = np.full(words, _NEVER, np.int64)

    def initialised(self, lanes: Lanes, words: np.ndarray) -> None:
        """Record that each lane has initialised the mbarrier of a word, int64 in the shape of the lanes."""
        self._phases[words] = _NEVER
        for thread, word in zip(lanes.linear().tolist(), words.ravel().tolist(), strict=True):
            self._unpublished.setdefault(thread, []).append(word)

    def fence(self, lanes: Lanes, barrier: ClusterBarrier) -> None:
        """Record that lanes execute fence.mbarrier_init."""
        arrived = broadcast_to(barrier.arrived[lanes.block, lanes.thread], lanes.shape).ravel()
        for thread, before in zip(lanes.linear().tolist(), arrived.tolist(), strict=True):
            self._phases[self._unpublished.pop(thread, [])] = before + 1

    def known(self, lanes: Lanes, words: np.ndarray, barrier: ClusterBarrier) -> np.ndarray:
        """Return the lanes that have waited for the initialisation of their word: bool, the shape of the lanes."""
        return broadcast_to(barrier.waited[lanes.block, lanes.thread] >= self._phases[words], lanes.shape)
