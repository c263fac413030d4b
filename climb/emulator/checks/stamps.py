"""The accesses of a launch, by tick, and the stamps that shadow memories keep of them.

A stamp packs an access: tick << TICK | kind << KIND | thread. Kinds above ONE combine several accesses to a cell: by
lanes of one warp, by threads of one block, or by several blocks.
"""

from __future__ import annotations

from ..simt.site import Site
from .handovers import Handovers

KIND, TICK = 28, 30
ONE, WARP_LANES, BLOCK_THREADS, BLOCKS = range(4)
FEW = 64  # most lanes of a plain store that may set flags
MAX_THREADS = 1 << KIND  # threads of a launch that stamps can distinguish
ID = (1 << KIND) - 1
TIME = -(1 << TICK)


class Events:
    """The accesses of a launch, by tick; ticks count from 1."""

    def __init__(self, blocks: int) -> None:
        self.sites: list[Site | None] = [None]
        self.fenced = False
        self.handovers = Handovers(blocks)

    @property
    def now(self) -> int:
        """The stamp that separates all earlier accesses (below it) from all later ones."""
        return len(self.sites) << TICK

    def next(self, site: Site) -> int:
        """Return the stamp of an access that happens now, without a thread."""
        self.sites.append(site)
        return (len(self.sites) - 1) << TICK

    def moment(self) -> int:
        """Return the stamp of an event that happens now and is not an access, without a thread."""
        self.sites.append(None)
        return (len(self.sites) - 1) << TICK

    def site(self, stamp: int) -> Site:
        """Return the instruction of an access."""
        return self.sites[stamp >> TICK]
