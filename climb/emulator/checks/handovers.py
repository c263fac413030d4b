"""Knowledge that blocks have of each other's accesses, handed over at places in global memory.

A thread hands over, at a flag or by an atomic, its accesses before its last fence, and those of others that it knew of
through earlier waits. Any thread that uses the place afterwards takes this knowledge and hands it on (PTX ISA, "Memory
Consistency Model": release patterns, acquire patterns, and causality order, which is transitive).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PAIRS = 2048  # most (block, place) pairs of one instruction that are tracked individually
PLACES = 1 << 23  # most places at which blocks hand over, times the blocks of the launch


class Handed(NamedTuple):
    """Known accesses of each block: int64 arrays, by block or by lane.

    All threads' accesses before time `base`; those of the thread that handed over, `thread`, before `own`, and those of
    its warp before `mates`. If several threads of a block have handed over, `base` includes the knowledge of all of
    them.
    """

    base: np.ndarray
    thread: np.ndarray
    own: np.ndarray
    mates: np.ndarray

    def join(self, other: Handed) -> Handed:
        """Return the union of the two states of knowledge."""
        several = (self.thread != other.thread) & (self.own > 0) & (other.own > 0)
        base = np.maximum(self.base, other.base)
        base = np.where(several, np.maximum(base, np.maximum(self.own, other.own)), base)
        later = other.own > self.own
        return Handed(
            base,
            np.where(later, other.thread, self.thread),
            np.maximum(self.own, other.own),
            np.where(several, np.where(later, other.mates, self.mates), np.maximum(self.mates, other.mates)),
        )

    def gather(self, of: np.ndarray, count: int) -> Handed:
        """Combine what lanes hand over, where lane i belongs to number `of[i]` of `count`."""
        out = nothing(count)
        last = np.zeros(count, np.int64)
        last[of] = np.arange(of.size)
        for into, each in zip(out, self, strict=True):
            into[:] = each[last]
        several = np.bincount(of, minlength=count)[of] > 1
        np.maximum.at(out.base, of, np.where(several, np.maximum(self.base, self.own), self.base))
        return out


def nothing(count: int) -> Handed:
    """Return the state in which nothing is known."""
    return Handed(*np.zeros((4, count), np.int64))


class Handovers:
    """The places at which blocks hand over, and the knowledge of each block. `known` is by block, `places` by place.

    `fences`: the time of each block's last fence for other blocks.
    """

    def __init__(self, blocks: int) -> None:
        self.fences = np.zeros(blocks, np.int64)
        self.places: dict[int, Handed] = {}
        self.known: dict[int, Handed] = {}
        self._pending: dict[int, list[tuple[int, Handed]]] = {}  # taken by relaxed loads, with the time of each
        self._taken: dict[tuple[int, int, bool], Handed] = {}  # the last that a block took at a place, and how
        self._coarse = False

    def blocks_have_ended(self) -> None:
        """Forget what only earlier blocks know: no block that has run so far will take anything."""
        self.known.clear()
        self._pending.clear()
        self._taken.clear()

    def complete(self, blocks: np.ndarray, polls: np.ndarray) -> None:
        """Record a fence by lanes of `blocks`: values taken by relaxed loads up to `polls` are known from now on."""
        for block in np.unique(blocks[polls > 0]).tolist():
            last = polls[blocks == block].max()
            waiting = self._pending.pop(block, [])
            for _, taken in (each for each in waiting if each[0] <= last):
                self._learn(block, taken)
            if left := [each for each in waiting if each[0] > last]:
                self._pending[block] = left

    def _learn(self, block: int, taken: Handed) -> None:
        mine = self.known.get(block)
        self.known[block] = taken if mine is None else mine.join(taken)

    def hand_over(
        self, blocks: np.ndarray, places: np.ndarray, gives: Handed | None, takes: bool, poll: int | None = None
    ) -> None:
        """Record that lanes of `blocks` use `places` of global memory, one after the other. `gives`: the knowledge that
        each lane hands over.

        `poll`: the time of a relaxed load; the knowledge that it takes counts after a fence (`complete`).
        """
        pairs, of = np.unique(np.stack([blocks, places], axis=1), axis=0, return_inverse=True)
        if len(pairs) > PAIRS or self._coarse or (len(self.places) + len(pairs)) * self.fences.size > PLACES:
            # Too many to track: a block that takes is handed everything that any block has fenced.
            self._coarse |= gives is not None
            if takes:
                everything = nothing(self.fences.size)
                everything.base[:] = self.fences
                for block in np.unique(blocks).tolist():
                    if poll is None:
                        self.known[block] = everything
                    else:
                        self._pending[block] = [(poll, everything)]
            return
        given = None if gives is None else gives.gather(of.ravel(), len(pairs))
        for number, (block, place) in enumerate(pairs.tolist()):
            there, mine = self.places.get(place), self.known.get(block)
            how = block, place, poll is None
            if takes and there is not None and self._taken.get(how) is not there:
                self._taken[how] = there
                if poll is None:
                    self._learn(block, there)
                    mine = self.known[block]
                else:
                    self._pending.setdefault(block, []).append((poll, there))
            if given is not None and (given.own[number] or given.base[number] or mine is not None):
                own = nothing(self.fences.size)
                for into, each in zip(own, given, strict=True):
                    into[block] = each[number]
                for each in (there, mine):
                    own = own if each is None else own.join(each)
                self.places[place] = own

    def handed(self, to: np.ndarray, of: np.ndarray) -> Handed:
        """Return what blocks `to` know about blocks `of`; the arrays broadcast."""
        receivers, row = np.unique(to, return_inverse=True)
        empty = nothing(self.fences.size)
        known = [self.known.get(block, empty) for block in receivers.tolist()]
        return Handed(*(np.stack(each)[row.reshape(to.shape), of] for each in zip(*known, strict=True)))
