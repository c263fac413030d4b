"""Functions that generated code calls for late loads of shared memory; see `translation.late_loads`."""

from __future__ import annotations

import numpy as np

from ..memory.device_memory import SHARED_WINDOW
from ..simt.groups import Group
from ..simt.lanes import WARP
from ..simt.site import Site
from .cluster_addresses import RANK


def load(group: Group, site: Site, address: np.ndarray, number: int, lanes: int, generic: bool) -> None:
    """Record a load by the first `lanes` of each warp, before it is made."""
    batch = group.batch
    if batch.late_loads is None:
        return
    inside = group.lanes.thread % WARP < lanes
    start = address + site.offset - (SHARED_WINDOW if generic else 0)
    if batch.order.size > 1:
        own = (group.lanes.block + batch.start) % batch.order.size
        inside = inside & (start >> RANK == own)
        start = start - (own << RANK)
    inside = inside & (start >= 0) & (start + site.width <= batch.shared_bytes) & (start % site.width == 0)
    batch.late_loads.load(group, site, np.where(inside, start, -1), number)


def end(group: Group, numbers: tuple[int, ...]) -> None:
    """Record that these loads have ended."""
    if group.batch.late_loads is not None:
        group.batch.late_loads.end(group, numbers)


def release(group: Group, numbers: tuple[int, ...]) -> None:
    """Record that the lanes have arrived at a barrier while these loads are in flight."""
    if group.batch.late_loads is not None:
        group.batch.late_loads.release(group, numbers)


RUNTIME = {"late_load": load, "late_end": end, "late_release": release}
