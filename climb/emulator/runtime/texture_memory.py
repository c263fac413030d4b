"""Texture reads of memory that stores and copies can reach too: linear memory and pitched arrays of the caller.

They are reported to the checks as loads. This finds reads of memory that an asynchronous copy is still writing, that a
launch before may still write, or that another thread writes. A CUDA array is separate memory, which only surfaces
write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..checks import hooks
from ..memory.device_memory import Allocation
from ..simt.groups import Group
from ..simt.site import Site
from .accesses import subgroup
from .global_effects import ELEMENTS

#: (indices into the texels, by axis; where each is inside the texture) -> None
Report = Callable[[tuple[np.ndarray, ...], list[np.ndarray]], None]


def report_of(group: Group, site: Site, data: np.ndarray, which: np.ndarray) -> Report | None:
    """Return the function that reports the texels read by the lanes `which`; None if no check applies to them.

    `data`: the texels, (..., channels). The function raises Race, AsyncRace, EarlyAccess and Uninitialised.
    """
    batch = group.batch
    found = _allocation(group, data)
    if found is None:
        return None
    allocation, start = found
    uninitialised = allocation.written is not None and batch.check_uninitialised
    if batch.clock is None and batch.dependence is None and batch.in_flight is None and not uninitialised:
        return None
    element, count = ELEMENTS[data.shape[-1] * data.itemsize]
    load = replace(site, space="global", action="load", element=np.dtype(element), count=count, offset=0, part=True)

    def report(place: tuple[np.ndarray, ...], inside: list[np.ndarray]) -> None:
        mask = which
        for each in inside:
            mask = mask & np.broadcast_to(each, mask.shape)
        if not mask.any():
            return
        offset = sum(index * stride for index, stride in zip(place, data.strides, strict=False))
        part, _ = subgroup(group, mask)
        hooks.load(part, load, allocation, (np.broadcast_to(offset, mask.shape)[mask] + start).reshape(1, -1))

    return report


def _allocation(group: Group, data: np.ndarray) -> tuple[Allocation, int] | None:
    """Return the allocation that an array is a view of, and the address of its first element; None if there is none."""
    at = _pointer(data)
    for one in group.batch.memory.live():
        distance = at - _pointer(one.data)
        if 0 <= distance < one.nbytes:
            return one, one.address + distance
    return None


def _pointer(data: np.ndarray) -> int:
    return data.__array_interface__["data"][0]
