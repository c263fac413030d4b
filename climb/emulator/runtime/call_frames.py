"""Frames of recursive functions, variables on the stack, and calls through pointers that hold no function."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ..checks.faults import place_of
from ..errors import BadCall, StackOverflow
from ..memory.device_memory import buffer
from ..memory.stack import Stack
from ..simt.groups import Group
from ..simt.site import Site

RETURN_ADDRESS = 8  # bytes


def _stack(group: Group) -> Stack:
    batch = group.batch
    if batch.stack is None:
        batch.stack = Stack(batch.blocks * batch.threads, batch.local_bytes)
    return batch.stack


def push(group: Group, site: Site, values: list[np.ndarray], nbytes: int) -> None:
    """Save registers before a call of a recursive function. Raises StackOverflow.

    `nbytes`: the bytes of the registers. A GPU saves these, the address to return to, and perhaps more.
    """
    lanes, stack = group.lanes, _stack(group)
    raw = [np.broadcast_to(each, lanes.shape).reshape(-1) for each in values]
    raw = [each.view(f"u{each.itemsize}") if each.dtype.kind == "f" else each for each in raw]
    stack.push(lanes.linear(), [each.astype(np.uint64) for each in raw], nbytes + RETURN_ADDRESS)
    _check_size(group, site, stack)


def pop(group: Group, dtypes: list[str]) -> list[np.ndarray]:
    """Restore registers of these types after the call."""
    lanes, types = group.lanes, [np.dtype(each) for each in dtypes]
    nbytes = sum(max(each.itemsize, 4) for each in types) + RETURN_ADDRESS
    saved = _stack(group).pop(lanes.linear(), len(types), nbytes)
    out = []
    for each, kind in zip(saved, types, strict=True):
        value = each.astype(f"u{kind.itemsize}").view(kind) if kind.kind == "f" else each.astype(kind)
        out.append(value.reshape(lanes.shape))
    return out


def allocate(group: Group, site: Site, nbytes: np.ndarray, align: int) -> np.ndarray:
    """Allocate a variable in each lane's local memory; return its local addresses. Raises StackOverflow."""
    lanes, batch, stack = group.lanes, group.batch, _stack(group)
    lane, sizes = lanes.linear(), np.broadcast_to(nbytes, lanes.shape).reshape(-1)
    if (sizes < 0).any() or (sizes > batch.memory.stack_bytes).any():
        _overflow(group, site, sizes, "a variable alone")
    address = stack.allocate(lane, sizes, align)
    _check_size(group, site, stack)
    width = -(-int(stack.top.max()) // 16) * 16
    if width > batch.local.shape[1]:
        batch.local = _widened(batch.local, 2 * width)
        if batch.local_written is not None:
            batch.local_written = _widened(batch.local_written, 2 * width)
    if batch.local_written is not None:
        columns = np.arange(batch.local.shape[1])
        fresh = (columns >= address.reshape(-1, 1)) & (columns < (address + sizes).reshape(-1, 1))
        batch.local_written[lane] = np.where(fresh, np.uint8(0), batch.local_written[lane])
    return address.reshape(lanes.shape)


def restore(group: Group, top: np.ndarray) -> None:
    """Free the variables that were allocated since the top of the stack was at `top`."""
    lanes = group.lanes
    _stack(group).restore(lanes.linear(), np.broadcast_to(top, lanes.shape).reshape(-1))


def top(group: Group) -> np.ndarray:
    """The top of each lane's stack, as a local address."""
    return _stack(group).top[group.lanes.linear()].reshape(group.lanes.shape)


def _widened(rows: np.ndarray, width: int) -> np.ndarray:
    out = buffer(rows.shape[0] * width).reshape(rows.shape[0], width)
    out[:, : rows.shape[1]] = rows
    return out


def _check_size(group: Group, site: Site, stack: Stack) -> None:
    lane = group.lanes.linear()
    used = stack.used[lane]
    if used.max() > group.batch.memory.stack_bytes:
        calls = int(stack.calls[lane[np.argmax(used)]])
        _overflow(group, site, used, f"{calls} calls inside each other" if calls else "its variables")


def _overflow(group: Group, site: Site, used: np.ndarray, what: str) -> NoReturn:
    limit = group.batch.memory.stack_bytes
    bad = (used > limit) | (used < 0)
    need = int(used[bad][0])
    raise StackOverflow(
        f"stack overflow: {what} need at least {need} bytes of stack; a thread has {limit}",
        place_of(group, site, bad.reshape(group.lanes.shape)),
        needed=need,
        limit=limit,
    )


def unknown(group: Group, site: Site, pointer: np.ndarray) -> NoReturn:
    """Raise BadCall: a call goes through a pointer to no function, or to one with another signature."""
    values = np.broadcast_to(pointer, group.lanes.shape)
    at = int(values.reshape(-1)[0])
    near = group.batch.kernel.variables.nearest(at)
    if not at:
        what = "a null pointer"
    elif near is not None and near.address == at and near.name.startswith("function "):
        what = f"a pointer to the {near.name}, whose parameters or results are others than the call's"
    else:
        what = f"{at:#x}, which is no function of this module"
    bad = values == at
    raise BadCall(f"wrong call: through {what}", place_of(group, site, bad), address=at)


RUNTIME = {
    "frame_push": push,
    "frame_pop": pop,
    "frame_unknown": unknown,
    "stack_allocate": allocate,
    "stack_restore": restore,
    "stack_top": top,
}
