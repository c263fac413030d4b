"""Accesses to the shared memory of a block of the cluster that may not have begun, or that may have left.

The blocks of a cluster run at the same time, but they neither begin nor end together. Before a block has begun, and
after it has left the kernel, its shared memory may belong to another block; compute-sanitizer's racecheck reports such
accesses too. CUDA C++ Programming Guide, section "Distributed Shared Memory": all blocks must have started executing,
which cluster.sync() guarantees, and all accesses must happen before the block leaves.

A thread knows that a block has begun after waiting at a barrier of the cluster, even a relaxed one, because each block
has arrived there. Any other order of the access after a thread of the block is enough as well: an mbarrier at which
that thread has arrived, or a flag that it has set, with a fence.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..errors import ClusterLifetime, Where
from ..ptx.model import Location
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..simt.site import Site
from .cluster_clock import ClusterClock, ClusterLanes
from .faults import place, place_of
from .stamps import ID


class ClusterLifetimes:
    """The begin and the end of the blocks of a cluster; accesses to their shared memory from other blocks must lie
    between.

    `used`: by (block whose memory it is, cluster, thread of the cluster), the stamp of the last access from another
    block. `known`: bool (blocks, threads, rank), the blocks that a thread knows to have begun by other means than a
    barrier of the cluster.
    """

    def __init__(self, clock: ClusterClock, batch: Batch) -> None:
        self.clock = clock
        self.began = clock.events.moment()
        self.used: dict[tuple[int, int, int], int] = {}
        self.known: np.ndarray | None = None
        self._shape = (batch.blocks, batch.threads, clock.size)

    def access(self, group: Group, site: Site, home: np.ndarray) -> None:
        """Check accesses that lanes have just made to the shared memory of the blocks `home`. Raises
        ClusterLifetime."""
        lanes = group.lanes
        home = np.broadcast_to(home, lanes.shape)
        self._uses(self.clock.lanes(lanes), home)
        waited = group.batch.cluster_barrier.waited[lanes.block, lanes.thread]
        unsure = (home != lanes.block) & (waited == 0)
        if not unsure.any():
            return
        if self.known is None:
            self.known = np.zeros(self._shape, np.bool_)
        here = lanes.block, lanes.thread, home % self.clock.size
        unsure &= ~self.known[here]
        for other in np.unique(home[unsure]).tolist():
            late = unsure & (home == other) & self._unordered(group.batch, lanes, other)
            if late.any():
                self._not_begun(group, site, late, other)
        self.known[here] = True

    def _threads(self, batch: Batch, home: int) -> np.ndarray:
        """Return the threads of a block, as their cluster numbers them, int64 (threads,)."""
        return np.arange(batch.threads) + home % self.clock.size * self.clock.padded

    def _unordered(self, batch: Batch, lanes: Lanes, home: int) -> np.ndarray:
        """Return the lanes that no thread of block `home`, of their cluster or not, is known to precede: bool, their
        shape."""
        inside = self.clock.lanes(lanes)
        began = self.began | self._threads(batch, home).reshape(1, 1, -1)
        found = self.clock.inner.unordered(began, inside, inside.thread[:, :, None], False)
        return np.broadcast_to(found.all(axis=2), inside.shape).reshape(lanes.shape)

    def _not_begun(self, group: Group, site: Site, late: np.ndarray, home: int) -> None:
        batch = group.batch
        where = place_of(group, site, late)
        other = place(batch, batch.kernel.function.location, home, 0, batch.threads)
        file = other.file.rsplit("/", 1)[-1]
        first = f" at {file}:{other.line}" if other.line else ""
        _raise(
            f"race in shared memory: this access to the shared memory of block ({_text(other.block)}), which may not "
            f"have begun by then: no barrier of the cluster lies between its begin{first} and the access",
            where,
            other,
        )

    def _uses(self, lanes: ClusterLanes, home: np.ndarray) -> None:
        stamp = self.clock.events.now - (1 << 30)
        clusters, threads = lanes.block.ravel().tolist(), lanes.thread.ravel().tolist()
        for where in zip(home.ravel().tolist(), clusters, threads, strict=True):
            self.used[where] = stamp | where[2]

    def check_left(self, batch: Batch) -> None:
        """When all blocks have ended, raise ClusterLifetime if one may have left before an access to its memory."""
        inner = self.clock.inner
        for home in sorted({where[0] for where in self.used}):
            stamps = np.array(sorted(stamp for where, stamp in self.used.items() if where[0] == home))
            thread = self._threads(batch, home).reshape(1, -1)
            lanes = Lanes(np.full(thread.shape, home // self.clock.size), thread, inner.shape[1], True)
            before = np.broadcast_to(stamps, (1, batch.threads, stamps.size))
            late = inner.unordered(before, lanes, thread[:, :, None], False).all(axis=(0, 1))
            if late.any():
                self._left(batch, home, int(stamps[late][0]))

    def _left(self, batch: Batch, home: int, stamp: int) -> None:
        site = self.clock.events.site(stamp)
        rank, thread = divmod(stamp & ID, self.clock.padded)
        block = home // self.clock.size * self.clock.size + rank
        other = place(batch, _last(batch), home, 0, batch.threads)
        file = other.file.rsplit("/", 1)[-1]
        end = f" at {file}:{other.line}" if other.line else ""
        _raise(
            f"race in shared memory: this access to the shared memory of block ({_text(other.block)}), which may have "
            f"left the kernel by then; the barrier of the cluster must lie between the access and the end of that "
            f"block{end}",
            place(batch, site.location, block, thread, 1),
            other,
        )


def _last(batch: Batch) -> Location:
    """Return the place of the last instruction of the kernel's text."""
    block = next((each for each in reversed(batch.kernel.code.blocks) if each.lines), None)
    if block is None:
        return batch.kernel.function.location
    file, line = max(block.lines, key=lambda each: each[1])
    return Location(file, line)


def _text(index: tuple[int, int, int] | None) -> str:
    return ",".join(map(str, index or ()))


def _raise(message: str, where: Where, other: Where) -> NoReturn:
    """Raise ClusterLifetime for an access; `other` is where the block begins or ends."""
    raise ClusterLifetime(
        message, where, space="shared", address=0, allocation=None, name="", offset=0, other=other, same_warp=False
    )
