"""The threads that know that an mbarrier has been initialised, after a relaxed barrier of the cluster.

fence.mbarrier_init publishes the initialisations of its thread, and nothing else. A thread may use those mbarriers once
it has waited at a barrier of the cluster at which the thread of the fence arrived afterwards, even by
barrier.cluster.arrive.relaxed. PTX ISA, section "membar / fence".
"""

from __future__ import annotations

import numpy as np

from .cluster_barrier import ClusterBarrier
from .lanes import Lanes


class PublishedMbarriers:
    """The initialised mbarriers of a batch, by word (see `Asynchronous`)."""

    def __init__(self) -> None:
        self._unpublished: dict[int, list[int]] = {}  # words that each thread has initialised since its last fence
        self._phases: dict[int, int] = {}  # the number of barriers of its cluster that a thread must have passed

    def initialised(self, lanes: Lanes, words: np.ndarray) -> None:
        """Record that each lane has initialised the mbarrier of a word, int64 in the shape of the lanes."""
        for thread, word in zip(lanes.linear().tolist(), words.ravel().tolist(), strict=True):
            self._unpublished.setdefault(thread, []).append(word)
            self._phases.pop(word, None)

    def fence(self, lanes: Lanes, barrier: ClusterBarrier) -> None:
        """Record that lanes execute fence.mbarrier_init."""
        if not self._unpublished:
            return
        arrived = np.broadcast_to(barrier.arrived[lanes.block, lanes.thread], lanes.shape).ravel().tolist()
        for thread, before in zip(lanes.linear().tolist(), arrived, strict=True):
            self._phases.update(dict.fromkeys(self._unpublished.pop(thread, ()), before + 1))

    def known(self, lanes: Lanes, words: np.ndarray, barrier: ClusterBarrier) -> np.ndarray:
        """Return the lanes that have waited for the initialisation of their word: bool, the shape of the lanes."""
        if not self._phases:
            return np.zeros(lanes.shape, np.bool_)
        waited = np.broadcast_to(barrier.waited[lanes.block, lanes.thread], lanes.shape)
        every = np.broadcast_to(words, lanes.shape)
        found, places = np.unique(every, return_inverse=True)
        never = np.iinfo(np.int64).max
        needed = np.array([self._phases.get(word, never) for word in found.tolist()], np.int64)
        return waited >= needed[places].reshape(lanes.shape)
