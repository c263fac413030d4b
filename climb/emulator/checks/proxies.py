"""Proxy fences: check that a fence lets the asynchronous proxy read what ordinary stores wrote to shared memory.

Bulk copies and warpgroup matrix products read shared memory through the asynchronous proxy, which does not see
ordinary stores that no proxy fence has handed over. PTX ISA, section "Memory Consistency Model: Proxies": a fence must
lie on the way from the store to the operation. Here it lies there if the writing thread has executed it after the
store, or if the issuing thread has executed it when the store was already ordered before it.
"""

from __future__ import annotations

import numpy as np

from ..errors import MissingProxyFence
from ..simt.groups import Group
from ..simt.site import Site
from .faults import place, place_of
from .races import name_of
from .stamps import ID, TICK


def asynchronous(site: Site) -> bool:
    """Return whether the writes of an instruction use the asynchronous proxy. By the PTX ISA, those of cp.async do not,
    unless it is a bulk copy."""
    return site.opcode[0] == "wgmma" or (site.opcode[0] == "cp" and "bulk" in site.opcode)


def fence(group: Group) -> None:
    """Record fence.proxy.async: hand over the lanes' writes, and everything that is ordered before the fence."""
    clock = group.batch.clock
    if clock is None:
        return
    fences = clock.proxy_fences
    if fences is None:
        fences = clock.proxy_fences = np.zeros((2, *clock.shape), np.int64)
    lanes = group.lanes
    fences[0][lanes.block, lanes.thread] = clock.events.now
    fences[1][lanes.block, lanes.thread] = clock.known_since(lanes)


def check_fenced(group: Group, site: Site, address: np.ndarray) -> None:
    """Raise MissingProxyFence if an asynchronous read meets ordinary stores that no proxy fence has handed over."""
    batch = group.batch
    shadow, clock, lanes = batch.shared_shadow, batch.clock, group.lanes
    if shadow is None:
        return
    before = shadow.last_writes(lanes, site, address)
    shape = before.shape
    block, thread = (np.broadcast_to(each[:, :, None], shape) for each in (lanes.block, lanes.thread))
    open_ = before != 0
    if clock.proxy_fences is not None:
        own, seen = clock.proxy_fences
        open_ &= (own[block, before & ID] <= before) & (seen[block, thread] <= before)
    if not open_.any():
        return
    events = clock.events
    for tick in np.unique(before[open_] >> TICK).tolist():
        earlier = events.sites[tick]
        if earlier is None or asynchronous(earlier) or earlier.action == "atomic":
            open_ &= before >> TICK != tick
    if not open_.any():
        return
    bad = open_.any(axis=2)
    row, column, cell = (int(each[0]) for each in np.nonzero(open_))
    stamp = int(before[row, column, cell])
    earlier = events.site(stamp)
    other = place(batch, earlier.location, int(block[row, column, cell]), stamp & ID, 1)
    at = int(np.broadcast_to(address + site.offset, lanes.shape)[row, column])
    name, offset = name_of(batch.kernel, "shared", at, None)
    writer = ",".join(map(str, other.thread))
    raise MissingProxyFence(
        f"missing proxy fence: this asynchronous read of byte {offset} of {name}, which thread ({writer}) writes at "
        f"{other.file.rsplit('/', 1)[-1]}:{other.line}: {other.text.rstrip('; ')}; without fence.proxy.async in "
        "between, hardware may read what was there before",
        place_of(group, site, bad),
        space="shared",
        address=at,
        allocation=None,
        name=name,
        offset=offset,
        other=other,
    )
