"""Accesses to the device heap that are outside every live block, and frees of addresses that no live block starts
at."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..errors import BadFree, OutOfBounds
from ..memory.device_heap import LIVE, DeviceHeap
from ..memory.device_memory import Allocation
from ..simt.groups import Group
from ..simt.site import Site
from .faults import place_of


def check_block(group: Group, site: Site, allocation: Allocation, address: np.ndarray) -> None:
    """Raise OutOfBounds if an access to an arena of the heap is not within one live block."""
    full = address + site.offset
    outside = allocation.heap.outside(full, site.width)
    if outside.any():
        _outside(group, site, allocation, np.broadcast_to(full, group.lanes.shape))


def _outside(group: Group, site: Site, allocation: Allocation, full: np.ndarray) -> NoReturn:
    heap: DeviceHeap = allocation.heap
    bad = heap.outside(full, site.width)
    at = int(full[bad][0])
    blocks, index = heap.blocks, int(heap.blocks.find(np.array(at)))
    # Before the first block, and close to the next one, an access is meant for the block behind it.
    if index < 0 or (index + 1 < blocks.starts.size and blocks.starts[index + 1] - at <= at - _end(heap, index)):
        index += 1
    start, end = int(blocks.starts[index]), _end(heap, index)
    nbytes = f"the {end - start} bytes that {_line(group, int(blocks.made[index]))} has allocated"
    if start <= at < end and blocks.freed[index] != LIVE:
        text, far = f"byte {at - start} of {nbytes} and {_line(group, int(blocks.freed[index]))} has freed", 0
    elif start <= at < end:
        text, far = f"where only {end - at} of {nbytes} are left", 0
    else:
        far = at - end if at >= end else start - at
        side = "after the end" if at >= end else "before the start"
        text = f"{far} byte{'s' * (far != 1)} {side} of {nbytes}" if far else f"right {side} of {nbytes}"
    what = "read" if site.action == "load" else "write"
    raise OutOfBounds(
        f"out of bounds: {what} of {site.width} byte{'s' * (site.width > 1)} at {at:#x}, {text}",
        place_of(group, site, bad),
        address=at,
        allocation=allocation,
        distance=far,
    )


def _end(heap: DeviceHeap, index: int) -> int:
    return int(heap.blocks.starts[index] + heap.blocks.sizes[index])


def _line(group: Group, event: int) -> str:
    """Return the source line of an allocation or a free."""
    site = group.batch.memory.heap_sites[event]
    return f"line {site.location.line}" if site.location.line else "the kernel"


def bad_free(group: Group, site: Site, pointer: np.ndarray, bad: np.ndarray) -> NoReturn:
    """Raise BadFree for the lanes for which `bad` holds, whose pointers are not the start of a live block."""
    heap = group.batch.memory.heap
    at = int(pointer[bad][0])
    index = int(heap.blocks.find(np.array(at))) if heap is not None else -1
    if index < 0 or at >= _end(heap, index):
        what = f"{at:#x}, which malloc has not returned"
    else:
        blocks, start = heap.blocks, int(heap.blocks.starts[index])
        whole = f"the {int(blocks.sizes[index])} bytes that {_line(group, int(blocks.made[index]))} has allocated"
        if at != start:
            what = f"byte {at - start} of {whole}; only a pointer to their start can be freed"
        elif blocks.freed[index] != LIVE:
            what = f"{whole} and {_line(group, int(blocks.freed[index]))} has freed already"
        else:
            what = f"{whole}, by several threads at once"
    raise BadFree(f"wrong free: of {what}", place_of(group, site, bad), address=at)
