"""Who has waited for whom, so that two accesses can be said to be ordered or not.

Every access, of all lanes of a group at once, has a tick. An earlier access by thread u is ordered before one by thread
t of the same warp if t has since passed a warp operation with a mask (or a barrier), and before one by a thread of
another warp of the block if t has since passed a barrier. Threads of different blocks, or of one block with no barrier,
are ordered by u's memory fence after its access together with an atomic, or a volatile or acquiring access, of t's:
that is how locks, flags and "the last block" work. Each rule takes any such operation for the right one, so that what
is ordered is never called a race, while a fence or an atomic of some other purpose can hide one.

Stamps pack an access: tick << TICK | kind << KIND | thread. Kinds above ONE stand for several accesses to a cell
together: by lanes of one warp, of one block, of several blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .access import Site
    from .lanes import Lanes

KIND, TICK = 28, 30
ONE, WARP_LANES, BLOCK_THREADS, BLOCKS = range(4)
MAX_THREADS = 1 << KIND  # threads of a launch that stamps can tell apart
_ID = (1 << KIND) - 1
_TIME = -(1 << TICK)


class Events:
    """The accesses of a launch by tick, which count from 1."""

    def __init__(self, blocks: int) -> None:
        self.sites: list[Site | None] = [None]
        self._strong = np.zeros(256, np.bool_)
        self.fences = np.zeros(blocks, np.int64)
        self.acquires = np.zeros(blocks, np.int64)

    @property
    def now(self) -> int:
        """The stamp that no earlier access reaches and no later one is below."""
        return len(self.sites) << TICK

    def next(self, site: Site) -> int:
        """The stamp of an access that happens now, with no thread in it yet."""
        tick = len(self.sites)
        if tick == self._strong.size:
            self._strong = np.concatenate((self._strong, np.zeros(tick, np.bool_)))
        self._strong[tick] = site.strong
        self.sites.append(site)
        return tick << TICK

    def site(self, stamp: int) -> Site:
        """The instruction of an access."""
        return self.sites[stamp >> TICK]

    def strong(self, stamps: np.ndarray) -> np.ndarray:
        """Which accesses are volatile or ordered ones."""
        return self._strong[stamps >> TICK]


class Clock:
    """When the threads of a batch of `blocks` from `start` last waited.

    `barriers`, `warps`: int64 (1,1), (1, threads) where all blocks are alike, or (blocks, threads).
    """

    def __init__(self, events: Events, start: int, blocks: int, threads: int) -> None:
        self.events, self.start, self.shape = events, start, (blocks, threads)
        self.barriers = self.warps = np.full((1, 1), events.now, np.int64)
        self.floor = events.now  # no thread's last barrier is earlier
        self._fences: np.ndarray | None = None
        self._acquires: np.ndarray | None = None

    def passed(self, gate: str, lanes: Lanes) -> bool:
        """Lanes have waited for each other. Whether it was a barrier of every thread of the batch."""
        now = self.events.now
        whole = lanes.count == self.shape[0] * self.shape[1]
        self.warps = self._set(self.warps, lanes, now, whole)
        if gate != "barrier":
            return False
        self.barriers = self._set(self.barriers, lanes, now, whole)
        if whole:
            self.floor = now
        return whole

    def _set(self, times: np.ndarray, lanes: Lanes, now: int, whole: bool) -> np.ndarray:
        if whole:
            return np.full((1, 1), now, np.int64)
        rows = times.shape[0]
        if lanes.ragged or lanes.shape[0] != self.shape[0]:
            rows = self.shape[0]
        times = np.array(np.broadcast_to(times, (rows, self.shape[1])))
        if rows == 1:
            times[0, lanes.thread[0]] = now
        else:
            times[lanes.block, lanes.thread] = now
        return times

    def fence(self, lanes: Lanes) -> None:
        """Lanes make what they wrote visible."""
        if self._fences is None:
            self._fences = np.zeros(self.shape, np.int64)
        self._fences[lanes.block, lanes.thread] = self.events.now
        self.events.fences[self.start + lanes.block.ravel()] = self.events.now

    def acquire(self, lanes: Lanes) -> None:
        """Lanes see what others made visible."""
        if self._acquires is None:
            self._acquires = np.zeros(self.shape, np.int64)
        self._acquires[lanes.block, lanes.thread] = self.events.now
        self.events.acquires[self.start + lanes.block.ravel()] = self.events.now

    def times(self, which: np.ndarray, lanes: Lanes) -> np.ndarray:
        """`barriers` or `warps` of lanes, broadcasting to their shape with an axis for cells."""
        if which.shape == (1, 1):
            return which[:, :, None]
        if which.shape[0] == 1:
            return which[:, lanes.thread[0], None]
        return which[lanes.block, lanes.thread][:, :, None]

    def unordered(self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, many: bool) -> np.ndarray:
        """Where the accesses stamped `before` (0: none) are not ordered before one by `lanes`, whose threads are `ids`.

        `many`: ids count threads of the launch, else of a block, and the accesses are of that block.
        """
        threads = self.shape[1]
        who, kind = before & _ID, before >> KIND & 3
        other = (before != 0) & ((who != ids) | (kind != ONE))
        if not other.any():
            return other
        who_thread, thread = (who % threads, ids % threads) if many else (who, ids)
        same_warp = (who_thread >> 5 == thread >> 5) & (kind <= WARP_LANES)
        since_barrier = before >= self.times(self.barriers, lanes)
        inside = np.where(same_warp, before >= self.times(self.warps, lanes), since_barrier)
        if many:
            same_block = (who // threads == ids // threads) & (kind != BLOCKS)
            inside |= ~same_block
        found = other & inside
        if not found.any() or not self.events.acquires.any() or not self.events.fences.any():
            return found
        return found & ~self._handed_over(before, lanes, ids, many)

    def _handed_over(self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, many: bool) -> np.ndarray:
        """Where the earlier thread has used a fence, and the later one an atomic or volatile access, since."""
        shape = np.broadcast_shapes(before.shape, (*lanes.shape, 1))
        threads, time = self.shape[1], before & _TIME
        who, kind = before & _ID, before >> KIND & 3
        block = np.broadcast_to(lanes.block[:, :, None], shape)
        thread = np.broadcast_to(lanes.thread[:, :, None], shape)
        other_block = np.broadcast_to(who // threads if many else block + self.start, shape)
        other_thread = np.broadcast_to(who % threads if many else who, shape)
        inside = (other_block == block + self.start) & (kind == ONE)
        fences = self.events.fences[other_block]
        acquires = self.events.acquires[block + self.start]
        if inside.any():
            own_fences = self._fences if self._fences is not None else np.zeros(self.shape, np.int64)
            own_acquires = self._acquires if self._acquires is not None else np.zeros(self.shape, np.int64)
            fences = np.where(inside, own_fences[block, np.minimum(other_thread, threads - 1)], fences)
            acquires = np.where(inside, own_acquires[block, thread], acquires)
        return (fences > time) & (acquires > time)


def together(old: np.ndarray, new: np.ndarray, apart: np.ndarray, threads: int, many: bool) -> np.ndarray:
    """One stamp for two accesses to a cell, the newer one's time.

    Where they are not `apart`, that is where the older one (0: none) is ordered before the newer one, whatever is
    ordered after the newer one is so after the older one, which is dropped.
    """
    a, b, kind, other = old & _ID, new & _ID, old >> KIND & 3, new >> KIND & 3
    block_a, block_b = (a // threads, b // threads) if many else (a * 0, b * 0)
    warp_a, warp_b = (a % threads) >> 5, (b % threads) >> 5
    same = (kind == ONE) & (other == ONE) & (a == b)
    in_block = (block_a == block_b) & (kind < BLOCKS) & (other < BLOCKS)
    in_warp = in_block & (warp_a == warp_b) & (kind <= WARP_LANES) & (other <= WARP_LANES)
    joint = np.where(in_warp, WARP_LANES, np.where(in_block, BLOCK_THREADS, BLOCKS))
    return np.where(apart & ~same, (new & ~(3 << KIND)) | joint << KIND, new)
