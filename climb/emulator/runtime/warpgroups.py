"""setmaxnreg: warpgroups give registers back to the block's pool, or take some from it."""

from __future__ import annotations

import numpy as np

from ..checks import faults
from ..errors import AsyncMisuse, WarpMismatch
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site

WARPS = 4  # of a warpgroup


class RegisterPool:
    """The registers of the blocks of a batch.

    `held`, int64 (blocks, warps): registers of each thread of a warp; 0 until the warp has changed them. `changes`: the
    number of changes of each warp; `sites`: the site of its last one.
    """

    def __init__(self, batch: Batch) -> None:
        warps = -(-batch.threads // WARP)
        self.held, self.changes = np.zeros((2, batch.blocks, warps), np.int64)
        self.sites: dict[tuple[int, int], Site] = {}


def change(group: Group, site: Site, registers: int, more: bool) -> None:
    """setmaxnreg.inc if `more`, or .dec. Raises AsyncMisuse for a change in the other direction."""
    batch, lanes = group.batch, group.lanes
    if batch.registers is None:
        batch.registers = RegisterPool(batch)
    pool = batch.registers
    block, warp = (np.broadcast_to(each, lanes.shape).ravel() for each in (lanes.block, lanes.thread // WARP))
    held = pool.held[block, warp]
    wrong = (held != 0) & ((held > registers) if more else (held < registers))
    if wrong.any():
        have, how = int(held[wrong][0]), "inc" if more else "dec"
        place = faults.place_of(group, site, wrong.reshape(lanes.shape))
        raise AsyncMisuse(f"setmaxnreg.{how} to {registers} registers in a warp that has {have}", place)
    pool.held[block, warp] = registers
    changed = np.unique(np.stack([block, warp]), axis=1)
    pool.changes[changed[0], changed[1]] += 1
    pool.sites.update(dict.fromkeys(zip(*changed.tolist(), strict=True), site))


def check_left(batch: Batch, entry: int) -> None:
    """When all blocks have ended, check that each change was made by whole warpgroups, and that the pool had enough
    registers.

    `entry`: the registers per thread at the start; 0 if they are not known. Raises WarpMismatch and AsyncMisuse.
    """
    pool = batch.registers
    if pool is None:
        return
    warps = pool.held.shape[1]
    for (block, warp), site in sorted(pool.sites.items(), key=lambda each: each[0]):
        first = warp - warp % WARPS
        others = pool.changes[block, first : first + WARPS]
        if others.size < WARPS or (others != others[0]).any():
            where = faults.place(batch, site.location, block, warp * WARP, WARP)
            raise WarpMismatch("warp mismatch: setmaxnreg is not executed by all four warps of a warpgroup", where)
    if not entry:
        return
    total = np.where(pool.held == 0, entry, pool.held).sum(axis=1) * WARP
    have = entry * WARP * warps
    if (total > have).any():
        block = int(np.flatnonzero(total > have)[0])
        (_, warp), site = max((each for each in pool.sites.items() if each[0][0] == block), key=lambda each: each[0])
        raise AsyncMisuse(
            f"setmaxnreg waits for ever: the warps of the block ask for {int(total[block])} registers together, and it "
            f"has {have}",
            faults.place(batch, site.location, block, warp * WARP, WARP),
        )


RUNTIME = {"warpgroup_registers": change}
