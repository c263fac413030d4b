"""A trace: the memory accesses of one warp in order, for drawing them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..simt.block_order import BlockOrder
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site


def block_number(block: tuple[int, int, int] | int, order: BlockOrder) -> int:
    """Return the number in a launch of the block at (x, y, z), or at a linear index, x fastest."""
    width, height, _ = order.grid
    if isinstance(block, int):
        return order.number((block % width, block // width % height, block // (width * height)))
    return order.number((*block, 0, 0)[:3])


@dataclass(frozen=True)
class Access:
    """One access of the warp: `addresses` int64 (32,), `active` bool (32,); inactive lanes have address 0.

    Global addresses are virtual addresses in `allocation`; shared ones are offsets into the block's shared memory.
    `carried_out`: how shared memory performs such an access, a key of `SHARED_MEASURES` in the cost model.
    """

    file: str
    line: int
    text: str
    kind: str
    width: int
    addresses: np.ndarray
    active: np.ndarray
    allocation: str
    carried_out: str = ""


@dataclass
class Trace:
    """The accesses of one warp of one block, in order. Pass a trace to a launch to fill it.

    `block`: (x, y, z) or the linear index; `warp`: the index within the block.
    """

    block: tuple[int, int, int] | int = 0
    warp: int = 0
    accesses: list[Access] = field(default_factory=list)

    def number(self, order: BlockOrder) -> int:
        """Return the number of the block in the launch."""
        return block_number(self.block, order)

    def discard(self, length: int) -> None:
        """Forget the accesses of a launch that starts again; `length` is the number of accesses before it."""
        del self.accesses[length:]

    @property
    def recorded(self) -> int:
        """The number of accesses recorded so far."""
        return len(self.accesses)

    def note(self, group: Group, kind: str, site: Site | None, places: np.ndarray | None, number: int) -> None:
        """Do nothing: a trace of accesses has nothing to note."""

    def record(self, group: Group, site: Site, space: str, address: np.ndarray, allocation: str) -> None:
        """Record an access if the traced warp takes part in it."""
        batch, lanes = group.batch, group.lanes
        here = self.number(batch.order) - batch.start
        if not 0 <= here < batch.blocks:
            return
        block = np.broadcast_to(lanes.block, lanes.shape).ravel()
        thread = np.broadcast_to(lanes.thread, lanes.shape).ravel()
        mine = np.flatnonzero((block == here) & (thread // WARP == self.warp))
        if not mine.size:
            return
        addresses, active = np.zeros(WARP, np.int64), np.zeros(WARP, np.bool_)
        lane = thread[mine] % WARP
        addresses[lane] = np.broadcast_to(address, lanes.shape).ravel()[mine]
        active[lane] = True
        where = site.location
        self.accesses.append(
            Access(
                where.file,
                where.line,
                site.text,
                f"{space} {site.action}",
                site.width,
                addresses,
                active,
                allocation,
                site.carried_out,
            )
        )
