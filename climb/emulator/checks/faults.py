"""Turn a failed access into an error that names the first affected lane, the address and the nearest allocation."""

from __future__ import annotations

import re
from typing import NoReturn

import numpy as np

from ..errors import Misaligned, OutOfBounds, WarpMismatch, Where
from ..memory.device_memory import Allocation, distance
from ..ptx.model import Location
from ..simt.batch import Batch
from ..simt.groups import Group
from ..simt.lanes import Lanes
from ..simt.site import Site

NULL = 1 << 16  # addresses below it come from a null pointer
FAR = 1 << 40  # an address this many bytes from an allocation is not related to it
_PARAMETER = re.compile(r"_param_(\d+)$")
_LOCAL_NAME = re.compile(r"E(\d+)([A-Za-z_]\w*)$")


def place_of(group: Group, site: Site, bad: np.ndarray) -> Where:
    """Return the place of an error in the lanes for which `bad` (bool, the shape of the group's lanes) holds."""
    first = int(np.flatnonzero(bad.ravel())[0])
    block, thread = group.lanes.at(first)
    lanes = np.broadcast_to(group.lanes.block * group.lanes.threads + group.lanes.thread, group.lanes.shape)
    affected = np.unique(lanes[np.broadcast_to(bad, lanes.shape)]).size
    return place(group.batch, site.location, block, thread, affected)


def place(batch: Batch, location: Location, block: int, thread: int, lanes: int) -> Where:
    """Return a place in the program and the first thread there, of `lanes` threads. `block` counts in the batch."""
    return Where(
        batch.kernel.name,
        location.file,
        location.line,
        batch.kernel.line_text(location),
        batch.block_index(block),
        batch.thread_index(thread),
        lanes,
    )


def place_in_block(batch: Batch, location: Location, lanes: Lanes, block: int, count: int) -> Where:
    """Return a place in the program and the first of `lanes` in a block of the batch, of `count` threads."""
    mine = np.broadcast_to(lanes.block, lanes.shape).ravel() == block
    _, thread = lanes.at(int(np.flatnonzero(mine)[0]))
    return place(batch, location, block, thread, count)


def _pick(full: np.ndarray, bad: np.ndarray) -> int:
    return int(full.ravel()[np.flatnonzero(bad.ravel())[0]])


def out_of_bounds(group: Group, site: Site, address: np.ndarray, space: str = "global") -> NoReturn:
    """Raise OutOfBounds for the lanes whose access is not within an allocation, or not within a variable of `space`."""
    batch, width = group.batch, site.width
    full = np.broadcast_to(address, group.lanes.shape) + site.offset
    what = f"{'read' if site.action == 'load' else 'write'} of {width} byte{'s' * (width > 1)}"
    if space != "global":
        extents = batch.extents[space]
        bad = extents.outside(full, width)
        at = _pick(full, bad)
        start, end, name = _variable(batch, space, at)
        past = at - end if at >= start else start - at
        if start <= at < end:
            side, past = f"where only {end - at} of", 0
        else:
            side = _apart(past, "after the end" if at >= end else "before the start") + " of"
        several = len(extents.starts) > 1
        raise OutOfBounds(
            f"out of bounds: {what} at {space} address {at}, {side} the {end - start} bytes of "
            + (name if space == "param" else f"{name} in {space} memory" if several else f"{space} memory")
            + (" are left" if start <= at < end else ""),
            place_of(group, site, bad),
            address=at,
            allocation=None,
            distance=past,
        )
    values, inverse = np.unique(full, return_inverse=True)
    known = np.array([batch.find(int(value), width) is not None for value in values])
    bad = ~known[inverse].reshape(full.shape)
    at = _pick(full, bad)
    nearest = _near(batch.nearest(at), at)
    if nearest is None:
        text, far = "a null pointer" if 0 <= at < NULL else "far from every array", None
    else:
        freed = " (freed)" if nearest.freed else ""
        far = at - nearest.end if at >= nearest.end else nearest.address - at
        if nearest.freed and distance(nearest, at) == 0:
            text = f"byte {at - nearest.address} of {nearest.name} ({nearest.nbytes} bytes), which has been freed"
            far = 0
        elif nearest.address <= at < nearest.end:
            far = 0
            have = nearest.end - at
            text = f"where only {have} byte{'s' * (have > 1)} of {nearest.name} ({nearest.nbytes} bytes) are left"
        else:
            side = "after the end" if at >= nearest.end else "before the start"
            text = f"{_apart(far, side)} of {nearest.name} ({nearest.nbytes} bytes){freed}"
    raise OutOfBounds(
        f"out of bounds: {what} at {at:#x}, {text}",
        place_of(group, site, bad),
        address=at,
        allocation=nearest,
        distance=far,
    )


def outside_stack(group: Group, site: Site, full: np.ndarray, bad: np.ndarray) -> NoReturn:
    """Raise OutOfBounds for lanes whose access, at local addresses, is in no variable of the stack."""
    at = _pick(full, bad)
    raise OutOfBounds(
        f"out of bounds: {site.action} of {site.width} bytes at local address {at}, where the stack has no variable "
        "that is alive",
        place_of(group, site, bad),
        address=at,
        allocation=None,
        distance=None,
    )


def read_only(group: Group, site: Site, address: np.ndarray) -> NoReturn:
    """Raise OutOfBounds for lanes that write to a parameter of the kernel, which is read-only."""
    full = np.broadcast_to(address, group.lanes.shape) + site.offset
    everywhere = np.ones(full.shape, np.bool_)
    at = int(full.ravel()[0])
    raise OutOfBounds(
        f"out of bounds: {site.action} at {_variable(group.batch, 'param', at)[2]}, which is read-only",
        place_of(group, site, everywhere),
        address=at,
        allocation=None,
        distance=0,
    )


def _variable(batch: Batch, space: str, at: int) -> tuple[int, int, str]:
    """Return the variable of `space` nearest to an address: (start, end, name)."""
    extents = batch.extents[space]
    if space == "local" and batch.stack is not None and at >= batch.stack.start:
        return batch.stack.start, int(batch.stack.top.max()), "the stack"
    if not extents.starts:
        return 0, 0, f"{space} memory"
    number = extents.nearest(at)
    return extents.starts[number], extents.ends[number], readable(extents.names[number])


def readable(name: str) -> str:
    """Return the name that a variable has in the source.

    A local variable's name in PTX is mangled with its function's; a parameter has only a number, as "parameter 0".
    """
    parameter = _PARAMETER.search(name)
    if parameter:
        return f"parameter {parameter[1]}"
    name = name.split("@")[0]  # the text behind it names the copy of the function to which the variable belongs
    found = _LOCAL_NAME.search(name) if name.startswith("_Z") else None
    return found[2][: int(found[1])] if found else name


def place_in_memory(batch: Batch, at: int) -> tuple[str, int] | None:
    """Return the name of the variable or allocation at a global address, or an address of the block's own shared
    memory, and the byte within it."""
    if at >= FAR:
        nearest = batch.nearest(at)
        inside = nearest is not None and distance(nearest, at) == 0
        return (nearest.name, at - nearest.address) if inside else None
    start, end, name = _variable(batch, "shared", at)
    return (name, at - start) if start <= at < end else None


def _near(allocation: Allocation | None, at: int) -> Allocation | None:
    """Return the allocation, or None if it is too far from the address to be related to it."""
    return allocation if allocation is not None and distance(allocation, at) <= FAR else None


def _apart(nbytes: int, side: str) -> str:
    return f"{nbytes} byte{'s' * (nbytes != 1)} {side}" if nbytes else f"right {side}"


def misaligned(group: Group, site: Site, address: np.ndarray) -> NoReturn:
    """Raise Misaligned for the lanes whose address is not a multiple of the access width."""
    full = np.broadcast_to(address, group.lanes.shape) + site.offset
    bad = (full & (site.width - 1)) != 0
    at = _pick(full, bad)
    nearest = _near(group.batch.nearest(at), at) if site.space == "global" else None
    inside = f", byte {at - nearest.address} of {nearest.name}" if nearest else ""
    raise Misaligned(
        f"misaligned: {site.width}-byte {site.action} at {at:#x}{inside}, which is no multiple of {site.width}",
        place_of(group, site, bad),
        address=at,
        width=site.width,
        allocation=nearest,
    )


def warp_mismatch(group: Group, site: Site, bad: np.ndarray, what: str) -> NoReturn:
    """Raise WarpMismatch for the lanes where `bad` holds."""
    where = place_of(group, site, np.broadcast_to(bad, group.lanes.shape))
    raise WarpMismatch(f"warp mismatch: {what}", where)
