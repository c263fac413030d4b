"""The accesses of batches to global memory, recorded in each process that runs some of them, to find out afterwards
whether one batch has read what another has changed.

Stores and atomics are recorded exactly. Each load counts as one interval, from the lowest to the highest address of its
lanes, which costs next to nothing; loads of the allocations that are `followed` are recorded exactly too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .device_memory import Allocation, windows

_DTYPES = {size: np.dtype(name) for size, name in ((1, "u1"), (2, "u2"), (4, "u4"), (8, "u8"), (16, "c16"))}
ROW = 32  # lanes of a warp
_ROW_OF_MARKS = np.frombuffer(b"\1" * ROW, f"V{ROW}")[0]
MOST_UPDATES = 1 << 24  # lanes whose atomics a worker keeps for later: up to 400 MB

MOST_INTERVALS = 4096  # of an allocation; more are joined

#: By the address of an allocation: the offsets of the lowest byte and of the end of loads.
Intervals = dict[int, set[tuple[int, int]]]
#: By the address of an allocation and the size of its elements: uint8 (elements,), 1 for those that are changed.
Marks = dict[tuple[int, int], np.ndarray]
_MARKS = ("loads", "stores", "atomics")


class TooManyUpdates(Exception):
    """A worker has more atomics to keep than `MOST_UPDATES`."""


class Update(NamedTuple):
    """Atomics whose results are not read, to be executed later: the arguments of `runtime.atomics.apply`, for elements
    of an allocation."""

    address: int
    element: np.dtype
    index: np.ndarray
    operation: str
    value: np.ndarray
    other: np.ndarray | None


class Footprint:
    """The accesses to global memory of some batches.

    `reads`: intervals; `loads`: the elements of followed allocations that were loaded; `stores` and `atomics`: the
    elements changed. `updates`: the atomics to execute later, in order; None if they take effect at once. `followed`:
    the addresses of allocations.
    """

    def __init__(self, later: bool, followed: frozenset[int] = frozenset()) -> None:
        self.reads: Intervals = {}
        self.loads: Marks = {}
        self.stores: Marks = {}
        self.atomics: Marks = {}
        self.updates: list[Update] | None = [] if later else None
        self.followed = followed
        self._kept = 0

    def __getstate__(self) -> dict[str, object]:
        """Return the state for another process, with eight marks to a byte."""
        packed = {
            name: {key: (mask.size, np.packbits(mask)) for key, mask in getattr(self, name).items()} for name in _MARKS
        }
        return vars(self) | packed

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for name in _MARKS:
            marks = {key: np.unpackbits(bits, count=size) for key, (size, bits) in state[name].items()}
            setattr(self, name, marks)
        if self.updates is not None:
            self.updates = [Update(*map(_with_own_dtype, update)) for update in self.updates]

    def load(self, allocation: Allocation, lowest: int, end: int) -> bool:
        """Record a load between two addresses. Returns whether its elements have to be recorded instead."""
        if allocation.address in self.followed:
            return True
        known = self.reads.setdefault(allocation.address, set())
        known.add((lowest - allocation.address, end - allocation.address))
        if len(known) > MOST_INTERVALS:
            whole = min(known)[0], max(each for _, each in known)
            known.clear()
            known.add(whole)
        return False

    def load_elements(self, allocation: Allocation, index: np.ndarray, nbytes: int) -> None:
        """Record a load of elements of `nbytes` bytes of an allocation."""
        if allocation.address in self.followed:
            _marked(self.loads, allocation, nbytes)[index] = 1
        elif index.size:
            self.load(allocation, *(allocation.address + nbytes * int(at) for at in (index.min(), index.max() + 1)))

    def store(self, allocation: Allocation, index: np.ndarray, nbytes: int) -> None:
        """Record a store to elements of `nbytes` bytes."""
        _marked(self.stores, allocation, nbytes)[index] = 1

    def store_rows(self, allocation: Allocation, first: np.ndarray, nbytes: int) -> None:
        """Record a store by whole warps, each to the elements of `nbytes` bytes that follow one of `first`."""
        windows(_marked(self.stores, allocation, nbytes), 1, ROW)[first] = _ROW_OF_MARKS

    def atomic(self, allocation: Allocation, update: Update) -> bool:
        """Record an atomic; return whether to execute it now. Raises TooManyUpdates."""
        _marked(self.atomics, allocation, update.element.itemsize)[update.index] = 1
        if self.updates is None:
            return True
        self._kept += update.index.size
        if self._kept > MOST_UPDATES:
            raise TooManyUpdates
        self.updates.append(update)
        return False


def _with_own_dtype(value: object) -> object:
    """Return an unpickled value with a dtype that NumPy recognises by identity: only then are some functions fast."""
    if isinstance(value, np.dtype):
        return np.dtype(value.str)
    return value.view(np.dtype(value.dtype.str)) if isinstance(value, np.ndarray) else value


def _marked(marks: Marks, allocation: Allocation, nbytes: int) -> np.ndarray:
    found = marks.get((allocation.address, nbytes))
    if found is None:
        found = marks[allocation.address, nbytes] = np.zeros(allocation.nbytes // nbytes, np.uint8)
    return found


def take_over(allocation: Allocation, nbytes: int, mask: np.ndarray, data: np.ndarray) -> None:
    """Change the marked elements of `nbytes` bytes to those in `data`, uint8, other contents of the allocation.

    At least one element is marked.
    """
    marks = mask.view(np.bool_)
    chosen = slice(int(marks.argmax()), marks.size - int(marks[::-1].argmax()))
    kind, changed = _DTYPES[nbytes], marks[chosen]
    where = True if changed.all() else changed  # which is a plain copy
    there = data[: mask.size * nbytes].view(kind)
    np.copyto(allocation.view(kind)[chosen], there[chosen], where=where)
    if allocation.written is not None:
        written = allocation.written[: mask.size * nbytes].view(kind)
        np.copyto(written[chosen], np.frombuffer(b"\1" * nbytes, kind)[0], where=where)


def note_written(update: Update, allocation: Allocation) -> None:
    """Note that atomics have written their elements."""
    if allocation.written is not None:
        _bytes_of(allocation, update.element.itemsize)[update.index] = 1


def _bytes_of(allocation: Allocation, nbytes: int) -> np.ndarray:
    """Return `allocation.written` by elements of `nbytes` bytes."""
    return allocation.written[: allocation.nbytes // nbytes * nbytes].reshape(-1, nbytes)


def read_and_changed(reads: Intervals, *marks: Marks) -> set[int]:
    """Return the addresses of the allocations in which an interval contains a marked element."""
    found = set()
    for (address, nbytes), mask in (item for each in marks for item in each.items()):
        if any(mask[low // nbytes : -(-end // nbytes)].any() for low, end in reads.get(address, ())):
            found.add(address)
    return found


def overlap(one: Marks, *others: Marks) -> bool:
    """Return whether `one` and another have a marked byte in common."""
    for (there, width), other in (item for each in others for item in each.items()):
        for (address, nbytes), mask in one.items():
            if address == there:
                each = min(nbytes, width)
                here, over = np.repeat(mask, nbytes // each), np.repeat(other, width // each)
                size = min(here.size, over.size)
                if (here[:size] & over[:size]).any():
                    return True
    return False
