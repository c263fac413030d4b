"""Who has waited for whom, so that two accesses can be said to be ordered or not.

Every access, of all lanes of a group at once, has a tick. An earlier access by thread u is ordered before one by thread
t of the same warp if t has since passed a warp operation whose mask names u (or a barrier), and before one by a thread
of another warp of the block if t has since passed a barrier at which u's warp was waited for.

Threads of different blocks are ordered by what is handed over at a place of global memory: u's block fences after the
access, then works on the place (an atomic, a volatile or releasing store, or a plain one of few lanes), and t's block
works on the same place afterwards (an atomic, a volatile or acquiring load). That is how locks, flags and "the last
block" work, and it carries over from block to block. Threads of one block with no barrier between them are ordered by
u's fence after its access together with any atomic, volatile or acquiring access of t's since: there a fence or an
atomic of some other purpose can hide a race. So it can between blocks once more places take part than are kept track
of (`PLACES`, `PAIRS`).

Stamps pack an access: tick << TICK | kind << KIND | thread. Kinds above ONE stand for several accesses to a cell
together: by lanes of one warp, of one block, of several blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .lanes import WARP
from .meetings import Meetings
from .warps import BITS

if TYPE_CHECKING:
    from .access import Site
    from .lanes import Lanes

KIND, TICK = 28, 30
ONE, WARP_LANES, BLOCK_THREADS, BLOCKS = range(4)
PAIRS = 2048  # blocks and places that one instruction may hand over between, to be followed each by itself
PLACES = 1 << 23  # places at which blocks hand over, times the blocks of the launch
FEW = 64  # lanes that store plainly to as many places as a flag may have
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
        self.fenced = False
        #: What has been handed over at each place, and what each block has been handed: times, by block.
        self.places: dict[int, np.ndarray] = {}
        self.known: dict[int, np.ndarray] = {}
        self.coarse = False

    def hand_over(self, blocks: np.ndarray, places: np.ndarray, gives: bool, takes: bool) -> None:
        """Lanes of `blocks` work on `places` of global memory, one after the other."""
        if not self.fenced:
            return
        pairs = np.unique(np.stack([blocks, places], axis=1), axis=0).tolist()
        if len(pairs) > PAIRS or self.coarse or (len(self.places) + len(pairs)) * self.fences.size > PLACES:
            # Too many to follow: whoever takes is given what anyone has fenced.
            self.coarse |= gives
            if takes:
                for block in np.unique(blocks).tolist():
                    self.known[block] = self.fences.copy()
            return
        for block, place in pairs:
            there, mine = self.places.get(place), self.known.get(block)
            if takes and there is not None:
                mine = self.known[block] = there.copy() if mine is None else np.maximum(mine, there)
            if gives and (self.fences[block] or mine is not None):
                both = [each for each in (there, mine) if each is not None] or [np.zeros_like(self.fences)]
                given = self.places[place] = np.maximum.reduce(both)
                given[block] = self.fences[block]

    def handed(self, to: np.ndarray, of: np.ndarray) -> np.ndarray:
        """The time before which what blocks `of` did is known to blocks `to`: arrays of one shape."""
        receivers, row = np.unique(to, return_inverse=True)
        nothing = np.zeros_like(self.fences)
        table = np.stack([self.known.get(block, nothing) for block in receivers.tolist()])
        return table[row.reshape(to.shape), of]

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
        self.warps_in_block = -(-threads // WARP)
        #: Of the lanes of each warp, of the warps of each block: made when some of them meet without the others.
        self.lanes_met: Meetings | None = None
        self.warps_met: Meetings | None = None
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

    def met(self, lanes: Lanes, mask: np.ndarray) -> None:
        """Lanes have waited for those that their masks (uint32) name, which are not whole warps."""
        if self.lanes_met is None:
            self.lanes_met = Meetings(self.shape[0] * self.warps_in_block, WARP)
        each = (lanes.block * self.warps_in_block + lanes.thread // WARP, mask.astype(np.int64))
        groups, masks = np.unique([np.broadcast_to(one, lanes.shape).ravel() for one in each], axis=1)
        base = self._by_warp(self.warps).reshape(-1, WARP)
        self.lanes_met.meet(groups, (masks[:, None] & BITS) != 0, base, self.events.now)

    def met_at_barrier(self, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray) -> None:
        """In each of `blocks` (n,), which ascend, warps have come to one barrier: `waiting` bool (n, warps) for the
        others, or, when `arrived` (n, warps) says, without waiting."""
        if self.warps_met is None:
            self.warps_met = Meetings(self.shape[0], self.warps_in_block)
        self.warps_met.meet(blocks, waiting, self._by_warp(self.barriers).max(axis=2), self.events.now, arrived)

    def _by_warp(self, times: np.ndarray) -> np.ndarray:
        """int64 (blocks, warps, 32) of `barriers` or `warps`; 0 for lanes that are not."""
        out = np.zeros((self.shape[0], self.warps_in_block * WARP), np.int64)
        out[:, : self.shape[1]] = times
        return out.reshape(self.shape[0], self.warps_in_block, WARP)

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
        self.events.fenced = True

    def acquire(self, lanes: Lanes) -> None:
        """Lanes see what others of their block made visible."""
        if self._acquires is None:
            self._acquires = np.zeros(self.shape, np.int64)
        self._acquires[lanes.block, lanes.thread] = self.events.now
        self.events.acquires[self.start + lanes.block.ravel()] = self.events.now

    def hand_over(self, lanes: Lanes, address: np.ndarray, gives: bool, takes: bool) -> None:
        """Lanes work on places of global memory at which blocks hand over to each other what they did."""
        if self.events.fenced:
            block = np.broadcast_to(lanes.block, lanes.shape).reshape(-1) + self.start
            place = np.broadcast_to(address, lanes.shape).reshape(-1) >> 2
            self.events.hand_over(block, place, gives, takes)

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
        if found.any() and (self.lanes_met is not None or self.warps_met is not None):
            found = found & ~self._since_met(before, lanes, many)
        if not found.any() or not self.events.fenced:
            return found
        return found & ~self._handed_over(before, lanes, ids, many)

    def _since_met(self, before: np.ndarray, lanes: Lanes, many: bool) -> np.ndarray:
        """Where the later thread has since waited for the earlier one without waiting for all."""
        shape, threads = np.broadcast_shapes(before.shape, (*lanes.shape, 1)), self.shape[1]
        block, thread = (np.broadcast_to(each[:, :, None], shape) for each in (lanes.block, lanes.thread))
        who, kind = before & _ID, before >> KIND & 3
        other = np.broadcast_to(who % threads if many else who, shape)
        kind = np.broadcast_to(kind, shape)
        same = (who // threads == block + self.start) & (kind != BLOCKS) if many else np.ones(shape, np.bool_)
        warp, its = thread // WARP, other // WARP
        inside = (warp == its) & (kind <= WARP_LANES)
        out = np.zeros(shape, np.bool_)
        if self.lanes_met is not None:
            groups = block * self.warps_in_block + warp
            out |= inside & (self.lanes_met.times(groups, thread % WARP, other % WARP, kind == ONE) > before)
        if self.warps_met is not None:
            out |= ~inside & (self.warps_met.times(block, warp, its, kind <= WARP_LANES) > before)
        return same & out

    def _handed_over(self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, many: bool) -> np.ndarray:
        """Where what the earlier thread did has been handed over to the later one."""
        shape = np.broadcast_shapes(before.shape, (*lanes.shape, 1))
        threads, time = self.shape[1], before & _TIME
        who, kind = before & _ID, before >> KIND & 3
        block = np.broadcast_to(lanes.block[:, :, None], shape)
        thread = np.broadcast_to(lanes.thread[:, :, None], shape)
        other_block = np.broadcast_to(who // threads if many else block + self.start, shape)
        other_thread = np.broadcast_to(who % threads if many else who, shape)
        same = (other_block == block + self.start) & (kind < BLOCKS)
        out = np.zeros(shape, np.bool_)
        if same.any():
            one = same & (kind == ONE)
            own_fences = self._fences if self._fences is not None else np.zeros(self.shape, np.int64)
            own_acquires = self._acquires if self._acquires is not None else np.zeros(self.shape, np.int64)
            fenced = np.where(one, own_fences[block, np.minimum(other_thread, threads - 1)],
                              self.events.fences[other_block])  # fmt: skip
            taken = np.where(one, own_acquires[block, thread], self.events.acquires[block + self.start])
            out = same & (fenced > time) & (taken > time)
        if not same.all():
            out |= ~same & (self.events.handed(block + self.start, other_block) > time)
        return out


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
