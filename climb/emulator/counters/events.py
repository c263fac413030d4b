"""The events of a block, in order: accesses, shuffles, barriers, asynchronous copies. They are drawn step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..simt.groups import Group
from ..simt.site import Site
from .trace import block_number

NONE = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Event:
    """One step that `threads` of the blocks `blocks`, both int64 (n,) and linear, took together.

    `kind`: an access such as "shared load" or "global store"; or "shuffle", "barrier", "copy" (a `cp.async` begins),
    "commit", "wait"; or at an mbarrier "expect" (arrives, and expects bytes), "arrive", "passed" (a wait has seen the
    end of a phase). `places`, int64 (n,): where an access goes, in bytes from the start of its allocation or of the
    block's shared memory; the target of a copy, or the mbarrier, in shared memory; the thread that a shuffle reads
    from; empty for the rest. `number`: how many groups a wait leaves open, or the most bytes that a lane expects.
    `line` is 0 if the source line is not known.
    """

    kind: str
    line: int
    blocks: np.ndarray
    threads: np.ndarray
    places: np.ndarray = field(default_factory=lambda: NONE)
    width: int = 0
    allocation: str = ""
    number: int = 0


@dataclass
class BlockTrace:
    """The events of one block. Pass it to a launch in place of a trace to fill it.

    `block`: (x, y, z), the linear index, or None for all blocks; `kinds`: the events to keep, None for all.
    """

    block: tuple[int, int, int] | int | None = 0
    kinds: frozenset[str] | None = None
    events: list[Event] = field(default_factory=list)

    @property
    def recorded(self) -> int:
        """The number of events recorded so far."""
        return len(self.events)

    def discard(self, length: int) -> None:
        """Forget the events of a launch that starts again; `length` is the number of events before it."""
        del self.events[length:]

    def record(self, group: Group, site: Site, space: str, address: np.ndarray, allocation: str) -> None:
        """Record an access of the traced block."""
        if space == "global" and (found := group.batch.find(int(address.flat[0]), 1)) is not None:
            address = address - found.address
        self._keep(group, f"{space} {site.action}", site.location.line, address, site.width, allocation, 0)

    def note(self, group: Group, kind: str, site: Site | None, places: np.ndarray | None, number: int) -> None:
        """Record a shuffle, a barrier, or a step of the asynchronous copies or of an mbarrier."""
        line, width = (site.location.line, site.width) if site is not None else (0, 0)
        self._keep(group, kind, line, places, width, "", number)

    def _keep(
        self, group: Group, kind: str, line: int, places: np.ndarray | None, width: int, allocation: str, number: int
    ) -> None:
        if self.kinds is not None and kind not in self.kinds:
            return
        batch, lanes = group.batch, group.lanes
        blocks = np.broadcast_to(lanes.block, lanes.shape).ravel() + batch.start
        wanted = None if self.block is None else block_number(self.block, batch.order)
        mine = np.arange(blocks.size) if wanted is None else np.flatnonzero(blocks == wanted)
        if not mine.size:
            return
        threads = np.broadcast_to(lanes.thread, lanes.shape).ravel()[mine].astype(np.int64)
        where = NONE
        if places is not None:
            where = np.broadcast_to(places, lanes.shape).ravel()[mine].astype(np.int64)
        self.events.append(Event(kind, line, blocks[mine].astype(np.int64), threads, where, width, allocation, number))
