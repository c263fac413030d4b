"""The bytes of an allocation that hold a value: mark the bytes that are written, and find reads of the others."""

from __future__ import annotations

import numpy as np

from ..memory.device_memory import Allocation
from ..simt.groups import Group
from ..simt.site import Site
from . import races

_ONES = {width: int.from_bytes(b"\1" * width, "little") for width in (1, 2, 4, 8)}


def _element_marks(written: np.ndarray, width: int) -> tuple[np.ndarray, int]:
    """Return marks of bytes, viewed as integers of up to 8 bytes, and the number of integers that cover `width`
    bytes."""
    each = min(width, 8)
    whole = written.size // each * each
    return written[:whole].view(f"u{each}"), width // each


def check_read(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Raise Uninitialised if an access reads bytes that nothing has written. `allocation.written` must not be None."""
    if allocation.written.all():
        allocation.written = None
        return
    marks, parts = _element_marks(allocation.written, site.width)
    index = (address + (site.offset - allocation.address)) // (site.width // parts)
    bad = np.zeros(index.shape, np.bool_)
    for part in range(parts):
        bad |= marks.take(index + part) != _ONES[site.width // parts]
    if bad.any():
        races.uninitialised(group, site, address, bad, "global", allocation)


def mark_written(site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Mark the bytes of a store or atomic as written."""
    marks, parts = _element_marks(allocation.written, site.width)
    index = (address + (site.offset - allocation.address)) // (site.width // parts)
    for part in range(parts):
        marks[index + part] = _ONES[site.width // parts]
