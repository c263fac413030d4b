"""The happens-before relation: whether two accesses are ordered by synchronisation between their threads.

Each access, by all lanes of a group at once, has a tick. An earlier access by thread u is ordered before an access by
thread t of the same warp if t has since passed a barrier or a `__syncwarp` whose mask names u. Shuffles, votes and
other exchanges of values order u's reads, but not its writes. If t is in another warp of the block, it must since have
passed a barrier that waited for u's warp.

Threads of different blocks are ordered by handing over at a place in global memory. A thread of u's block uses the
place (an atomic, a volatile or releasing store, or a plain store by few lanes) after a fence for other blocks that
follows the access: its own fence, with what its block had done at its last barrier before, or another one's that it
has waited for. Then t's block uses the same place (an atomic, a volatile or acquiring load). Locks, flags and "last
block" schemes work like this, and the order is transitive; see `handovers`. Fences and places of block scope hand
over nothing.

A relaxed or volatile load of t's side needs a fence after it, as PTX's memory model says; see `relaxed_loads`. Two
patterns count as ordered although the model does not order them, because much code in use relies on them: an atomic on
t's side needs no fence, and an access by one thread of t's block counts as one by all of them. Threads of one block
without a barrier between them are ordered by u's fence after its access followed by any atomic or acquiring access of
t, or a relaxed load and a fence; there, a fence or an atomic with another purpose can hide a race. Between blocks that
can happen only when several threads of a block hand over, or more places take part than are tracked.

`stamps` describes how accesses are stamped.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np

from ..simt.lanes import WARP, Lanes
from ..simt.warps import BITS
from .handovers import Handed
from .mbarrier_order import MbarrierOrder
from .partial_synchronization import CLUSTER, PartialSynchronization
from .relaxed_loads import RelaxedLoads, spread_in_warps, spread_over_barrier
from .stamps import BLOCKS, ID, KIND, ONE, TIME, WARP_LANES, Events
from .thread_times import by_warp, times_of, with_times


class Clock:
    """When the threads of a batch last synchronised. The batch has `blocks` blocks from block `start` on; each of them
    may stand for a cluster of `size` blocks.

    `barriers` and `warps` hold the time of each thread's last barrier and last `__syncwarp`, `exchanges` that of its
    last warp operation of any kind: int64 (1, 1), (1, threads) if all blocks are alike, or (blocks, threads).
    """

    def __init__(self, events: Events, start: int, blocks: int, threads: int, size: int = 1) -> None:
        self.events, self.start, self.shape = events, start, (blocks, threads)
        self.barriers = self.warps = self.exchanges = np.full((1, 1), events.now, np.int64)
        self.floor = events.now  # the earliest time that the last barrier of any thread can have
        self.warps_in_block = -(-threads // WARP)
        #: Order among the lanes of each warp (by `__syncwarp`, and by any warp operation), and among the warps of each
        #: block; made at the first partial one.
        self.lane_order: PartialSynchronization | None = None
        self.exchange_order: PartialSynchronization | None = None
        self.warp_order: PartialSynchronization | None = None
        self._fences: np.ndarray | None = None
        self._acquires: np.ndarray | None = None
        self._relaxed: RelaxedLoads | None = None
        #: The time of each thread's last fence for other blocks, and of its last barrier and __syncwarp before it.
        self._wide_fences: np.ndarray | None = None
        #: Each thread's last proxy fence, and the time since which it knew the other threads' accesses: (2, blocks,
        #: threads).
        self.proxy_fences: np.ndarray | None = None
        #: The knowledge of warps through mbarriers; made when the first one is initialised.
        self.mbarriers: MbarrierOrder | None = None
        self._size = size

    def order(self) -> MbarrierOrder:
        """Return what warps know through mbarriers; the first call starts recording it."""
        if self.mbarriers is None:
            self.mbarriers = MbarrierOrder(self.shape[0], self.warps_in_block, self._size, self.events.now)
        return self.mbarriers

    def synchronize(self, gate: str, lanes: Lanes) -> bool:
        """Record that all of `lanes` have waited for each other. Returns whether every thread of the batch passed a
        barrier."""
        now = self.events.now
        whole = lanes.count == self.shape[0] * self.shape[1]
        self._synchronize_lanes(lanes, now, whole)
        if gate != "barrier":
            self._learn_from_others(lanes)
            return False
        if self._relaxed is not None:
            self._relaxed.met_at_barrier(lanes)
        if self.mbarriers is not None:
            self.mbarriers.meet(lanes.block, now)
        self.barriers = with_times(self.barriers, self.shape, lanes, now, whole)
        if whole:
            self.floor = now
        return whole

    def exchange(self, lanes: Lanes) -> None:
        """Record that lanes have exchanged values by a shuffle, a vote or the like.

        That orders their earlier reads, which the values may depend on, and passes on what one of them has acquired
        from other warps. It does not order their writes.
        """
        whole = lanes.count == self.shape[0] * self.shape[1]
        self.exchanges = with_times(self.exchanges, self.shape, lanes, self.events.now, whole)
        self._learn_from_others(lanes)

    def _synchronize_lanes(self, lanes: Lanes, since: int | np.ndarray, whole: bool) -> None:
        """Record that lanes know what lanes of their warps did before `since`."""
        alike = whole or self.exchanges is self.warps
        self.warps = with_times(self.warps, self.shape, lanes, since, whole)
        self.exchanges = self.warps if alike else with_times(self.exchanges, self.shape, lanes, since, whole)

    def synchronize_masks(self, lanes: Lanes, mask: np.ndarray, writes: bool) -> None:
        """Record that lanes have waited for the lanes that their masks (uint32) name, which are not whole warps.

        `writes`: at a `__syncwarp`, which orders their writes as well as their reads.
        """
        each = (lanes.block * self.warps_in_block + lanes.thread // WARP, mask.astype(np.int64))
        groups, masks = np.unique([np.broadcast_to(one, lanes.shape).ravel() for one in each], axis=1)
        waiting = (masks[:, None] & BITS) != 0
        if self.lane_order is None:
            self.lane_order = PartialSynchronization(self.shape[0] * self.warps_in_block, WARP)
        if not writes and self.exchange_order is None:
            self.exchange_order = deepcopy(self.lane_order)
        if writes:
            self.lane_order.synchronize(groups, waiting, self._by_warp(self.warps).reshape(-1, WARP), self.events.now)
        if self.exchange_order is not None:
            base = self._by_warp(self.exchanges).reshape(-1, WARP)
            self.exchange_order.synchronize(groups, waiting, base, self.events.now)

    def arrive_at(self, lanes: Lanes, barriers: np.ndarray) -> None:
        """Let lanes arrive at `barriers`, int64 (lanes,), without waiting: threads that wait learn what these know now.

        `barriers` are a numbering of their own: a named barrier of a block, or CLUSTER, the cluster's barrier.
        """
        if self.mbarriers is not None:
            self.mbarriers.arrive_at(lanes, barriers, self.events.now)
        block, warp = (np.broadcast_to(each, lanes.shape).ravel() for each in (lanes.block, lanes.thread // WARP))
        self._order_of_warps().arrive(block, warp, barriers, self._base(), self.events.now)

    def synchronize_warps(
        self, blocks: np.ndarray, waiting: np.ndarray, arrived: np.ndarray, barriers: np.ndarray
    ) -> None:
        """Record that in each of `blocks` (n,), ascending, some warps have met at one of `barriers` (n,).

        `waiting`, bool (n, warps): warps that waited; `arrived`, bool (n, warps): warps that arrived without waiting.
        """
        self._order_of_warps().synchronize(blocks, waiting, self._base(), self.events.now, barriers)
        if self._acquires is not None:
            spread_over_barrier(self._acquires, blocks, waiting, arrived)
        if self.mbarriers is not None:
            self.mbarriers.meet_in_part(blocks, waiting, barriers, self.events.now)

    def arrive_at_cluster(self, lanes: Lanes, phase: np.ndarray) -> None:
        """Record that lanes arrive at the barrier of their cluster, in a phase, (lanes,), that is even or odd: 0 or
        1."""
        self.arrive_at(lanes, CLUSTER + phase)

    def synchronize_cluster(self, lanes: Lanes, when: np.ndarray, phase: np.ndarray, everybody: bool = False) -> None:
        """Record that lanes have waited until all threads of their cluster had arrived in the `phase` of each,
        (blocks,).

        `when`, int64 (blocks, threads): when each thread arrived; 0 if it did not release its writes. `everybody`: all
        threads of the batch have waited.
        """
        now = self.events.now
        if everybody and when.min() == now:
            self._synchronize_lanes(lanes, now, everybody)
            if self.mbarriers is not None:
                self.mbarriers.meet(lanes.block, now)
            self.barriers = np.full((1, 1), now, np.int64)
            self.floor = now
            return
        least = np.minimum.reduceat(when, np.arange(0, self.shape[1], WARP), axis=1)
        self._synchronize_lanes(lanes, least[lanes.block, lanes.thread // WARP], False)
        waiting = np.zeros((self.shape[0], self.warps_in_block), np.bool_)
        waiting[lanes.block, lanes.thread // WARP] = True
        self._order_of_warps().learn(waiting, self._base(), CLUSTER + phase)
        if self._acquires is not None:
            spread_over_barrier(self._acquires, np.arange(self.shape[0]), waiting, np.ones_like(waiting))
        if self.mbarriers is not None:
            self.mbarriers.learn(waiting, CLUSTER + phase)

    def _order_of_warps(self) -> PartialSynchronization:
        if self.warp_order is None:
            self.warp_order = PartialSynchronization(self.shape[0], self.warps_in_block)
        return self.warp_order

    def _base(self) -> np.ndarray:
        """Return the time since which each warp knows what its whole block did before: int64 (blocks, warps)."""
        return self._by_warp(self.barriers).max(axis=2)

    def _by_warp(self, times: np.ndarray) -> np.ndarray:
        return by_warp(times, self.shape)

    def fence(self, lanes: Lanes, wide: bool = True) -> None:
        """Record a fence by lanes: they publish their writes; a `wide` one to threads of other blocks as well."""
        if self.mbarriers is not None:
            self.mbarriers.fence(lanes, self.events.now)
        self._fence(lanes, wide)

    def arrive(self, lanes: Lanes, words: np.ndarray, wide: bool = False) -> None:
        """Record that lanes arrive at the mbarriers `words`, (lanes,): they publish their writes, as by a fence, but
        only there."""
        self.order().arrive(lanes, words, self.events.now)
        self._fence(lanes, wide)

    def _fence(self, lanes: Lanes, wide: bool) -> None:
        if self._fences is None:
            self._fences = np.zeros(self.shape, np.int64)
        self._fences[lanes.block, lanes.thread] = self.events.now
        self._publish_for_others(lanes)
        blocks = self.start + lanes.block.ravel()
        if wide:
            self.events.handovers.fences[blocks] = self.events.now
            if self._wide_fences is None:
                self._wide_fences = np.zeros((3, *self.shape), np.int64)
            here = lanes.block, lanes.thread
            self._wide_fences[0][here] = self.events.now
            for into, times in zip(self._wide_fences[1:], (self.barriers, self.warps), strict=True):
                into[here] = times if times.size == 1 else np.broadcast_to(times, self.shape)[here]
        self.events.fenced = True

    def complete_relaxed_loads(self, lanes: Lanes, wide: bool) -> None:
        """Record a fence by lanes: with it, relaxed loads before it acquire; for other blocks if it is a `wide` one."""
        if self._relaxed is None:
            return
        loads = self._relaxed.of(lanes)
        if not loads.any():
            return
        if self.mbarriers is not None:
            self.mbarriers.acquire(lanes)
        acquires = self._times_of_acquires()
        acquires[lanes.block, lanes.thread] = np.maximum(acquires[lanes.block, lanes.thread], loads)
        if wide:
            blocks = self.start + np.broadcast_to(lanes.block, lanes.shape)
            self.events.handovers.complete(blocks.ravel(), loads.ravel())

    def _times_of_acquires(self) -> np.ndarray:
        if self._acquires is None:
            self._acquires = np.zeros(self.shape, np.int64)
        return self._acquires

    def _publish_for_others(self, lanes: Lanes) -> None:
        """Publish other lanes' accesses, since a fence is cumulative: those of the warp before they synchronised with
        this lane, and those of other warps before they met at a barrier for some of the block's warps."""
        warp = np.zeros((self.shape[0], self.warps_in_block), np.bool_)
        warp[lanes.block, lanes.thread // WARP] = True
        others = np.repeat(warp, WARP, axis=1)[:, : self.shape[1]]
        known = np.maximum(self._fences, np.broadcast_to(self.warps, self.shape))
        self._fences = np.where(others, known, self._fences)
        if self.warp_order is not None:
            met = np.where(warp[:, :, None], self.warp_order.since, 0).max(axis=1)
            self._fences = np.maximum(self._fences, met.repeat(WARP, axis=1)[:, : self.shape[1]])

    def _learn_from_others(self, lanes: Lanes) -> None:
        """Let lanes of a warp that have synchronised see what any of them has acquired."""
        if self._acquires is not None:
            spread_in_warps(self._acquires, lanes)
        if self._relaxed is not None:
            self._relaxed.met_in_warps(lanes)

    def acquire(self, lanes: Lanes) -> None:
        """Record an acquiring access by lanes: they see what others of their block have published."""
        if self.mbarriers is not None:
            self.mbarriers.acquire(lanes)
        self._acquire(lanes)

    def see_phase_end(self, lanes: Lanes, words: np.ndarray) -> None:
        """Record that lanes see the end of a phase of the mbarriers `words`, (lanes,), and what was published there."""
        self.order().see(lanes, words)
        self._acquire(lanes)

    def _acquire(self, lanes: Lanes) -> None:
        self._times_of_acquires()[lanes.block, lanes.thread] = self.events.now

    def load_relaxed(self, lanes: Lanes) -> None:
        """Record a relaxed or volatile load by lanes."""
        if self._relaxed is None:
            self._relaxed = RelaxedLoads(self.shape)
        self._relaxed.note(lanes, self.events.now)

    def hand_over(self, lanes: Lanes, address: np.ndarray, gives: bool, takes: bool, acquires: bool = True) -> None:
        """Record that lanes use places in global memory through which blocks order their accesses.

        Knowledge taken by an access that does not acquire counts after the lanes' next fence.
        """
        if self.events.fenced:
            block = np.broadcast_to(lanes.block, lanes.shape).reshape(-1)
            place = np.broadcast_to(address, lanes.shape).reshape(-1) >> 2
            self.events.handovers.hand_over(
                block + self.start, place, self._publish(lanes) if gives else None, takes,
                None if acquires else self.events.now,
            )  # fmt: skip

    def _publish(self, lanes: Lanes) -> Handed:
        """Return what each lane hands over: accesses before a fence of its own, or before a fence that it has waited
        for."""
        block, thread = (np.broadcast_to(each, lanes.shape).reshape(-1) for each in (lanes.block, lanes.thread))
        if self._wide_fences is None:
            return Handed(*np.zeros((4, block.size), np.int64))
        fences, bases, mates = self._wide_fences
        own = fences[block, thread]
        barriers, warps = (np.broadcast_to(each, self.shape) for each in (self.barriers, self.warps))
        base = np.where(fences <= barriers, fences, 0).max(axis=1)[block]
        base = np.maximum(base, bases[block, thread])
        rows = self._by_warp(np.where(fences <= warps, fences, 0)).max(axis=2)
        mine = np.maximum(rows[block, thread // WARP], mates[block, thread])
        if self.warp_order is not None:
            base = np.maximum(base, own)
        if self.lane_order is not None:
            mine = np.maximum(mine, own)
        return Handed(base, thread, own, mine)

    def known_since(self, lanes: Lanes) -> np.ndarray:
        """Return the time up to which lanes know all others' accesses: their last barrier, or what they have
        acquired."""
        found = np.broadcast_to(times_of(self.barriers, lanes)[:, :, 0], lanes.shape)
        return found if self._acquires is None else np.maximum(found, self._acquires[lanes.block, lanes.thread])

    def unordered(
        self, before: np.ndarray, lanes: Lanes, ids: np.ndarray, launch_wide: bool, reads: bool = False,
        every: bool = False,
    ) -> np.ndarray:  # fmt: skip
        """Return which accesses stamped `before` (0: none) are not ordered before one by `lanes`, whose threads are
        `ids`: bool.

        `launch_wide`: ids number the threads of the launch; otherwise those of a block, which made all the accesses.
        `reads`: the earlier accesses are reads, which warp operations of any kind order. `every`: a stamp of several
        lanes of a warp, which may be any of them, counts as ordered only if all of them are.
        """
        threads = self.shape[1]
        earlier, kind = before & ID, before >> KIND & 3
        other = (before != 0) & ((earlier != ids) | (kind != ONE))
        if not other.any():
            return other
        earlier_thread, thread = (earlier % threads, ids % threads) if launch_wide else (earlier, ids)
        same_warp = (earlier_thread >> 5 == thread >> 5) & (kind <= WARP_LANES)
        since_barrier = before >= times_of(self.barriers, lanes)
        inside = np.where(same_warp, before >= times_of(self.exchanges if reads else self.warps, lanes), since_barrier)
        if launch_wide:
            same_block = (earlier // threads == ids // threads) & (kind != BLOCKS)
            inside |= ~same_block
        found = other & inside
        if found.any() and (self.lane_order is not None or self.warp_order is not None):
            found = found & ~self._partially_synchronized(before, lanes, launch_wide, reads, every)
        if not found.any() or not self.events.fenced:
            return found
        return found & ~self._handed_over(before, lanes, launch_wide, every)

    def _partially_synchronized(
        self, before: np.ndarray, lanes: Lanes, launch_wide: bool, reads: bool, every: bool
    ) -> np.ndarray:
        """Return where the later thread has since waited for the earlier one at a partial synchronisation; see
        `unordered`.

        Arrays are not broadcast first: few lanes are compared at a time, and broadcasting would take longer than
        comparing.
        """
        threads, block, thread = self.shape[1], lanes.block[:, :, None], lanes.thread[:, :, None]
        earlier, kind = before & ID, before >> KIND & 3
        other = earlier % threads if launch_wide else earlier
        warp, other_warp, of_warp = thread // WARP, other // WARP, kind <= WARP_LANES
        inside = (warp == other_warp) & of_warp
        out = np.False_
        lane_order = self.exchange_order if reads and self.exchange_order is not None else self.lane_order
        if lane_order is not None:
            groups = block * self.warps_in_block + warp
            out = inside & (lane_order.times(groups, thread % WARP, other % WARP, kind == ONE) > before)
            out = out & (kind == ONE) if every else out
        if self.warp_order is not None:
            out = out | ~inside & (self.warp_order.times(block, warp, other_warp, of_warp) > before)
        if launch_wide:
            out = out & (earlier // threads == block + self.start) & (kind != BLOCKS)
        return out

    def _handed_over(self, before: np.ndarray, lanes: Lanes, launch_wide: bool, every: bool) -> np.ndarray:
        """Return where the earlier thread's access has been handed over to the later thread; like
        `_partially_synchronized`."""
        threads, time = self.shape[1], before & TIME
        earlier, kind = before & ID, before >> KIND & 3
        block, thread = lanes.block[:, :, None], lanes.thread[:, :, None]
        mine = block + self.start
        other_block, other_thread = (earlier // threads, earlier % threads) if launch_wide else (mine, earlier)
        same = (other_block == mine) & (kind < BLOCKS)
        of_warp, out = kind <= WARP_LANES, np.False_
        if same.any() and self._fences is not None and self._acquires is not None:
            # A combined stamp holds the thread that accessed the cell last: at least that one must have fenced.
            fenced = self._fences[block, np.minimum(other_thread, threads - 1)]
            if every:
                slowest = np.minimum.reduceat(self._fences, np.arange(0, threads, WARP), axis=1)
                fenced = np.where(kind == ONE, fenced, slowest[block, other_thread // WARP])
            out = same & (fenced > time) & (self._acquires[block, thread] > time)
            if self.mbarriers is not None and out.any():
                out = out & self.mbarriers.knows(block, thread // WARP, other_thread // WARP, of_warp, time)
        if not same.all():
            handed = self.events.handovers.handed(mine, other_block)
            found = handed.base > time
            found |= (kind == ONE) & (other_thread == handed.thread) & (handed.own > time)
            found |= of_warp & (other_thread // WARP == handed.thread // WARP) & (handed.mates > time)
            out = out | ~same & found
        return out
