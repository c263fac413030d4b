"""Device memory: allocations at virtual addresses.

Addresses are deterministic, aligned to 512 bytes and never reused. The gap behind an allocation is as wide as the
allocation itself, and at least 1 MiB, so that an access past the end, even by several rows, hits no other allocation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

BASE = 0x7F00_0000_0000
SYMBOL_BASE = 0x1000_0000_0000  # variables of modules: 2^13 ranges of 8 GiB, far below BASE
SYMBOL_RANGE = 1 << 33
SYMBOL_RANGES = 1 << 13
SHARED_WINDOW = 0x0100_0000_0000
LOCAL_WINDOW = 0x0200_0000_0000
PARAM_WINDOW = 0x0300_0000_0000
WINDOW = LOCAL_WINDOW - SHARED_WINDOW
BLOCK_WINDOW = 1 << 24  # a block's own part of the shared window; the rest is the shared memory of its cluster
ALIGNMENT = 512
GAP = 1 << 20
STACK_BYTES = 1024  # CUDA C++ Programming Guide, "Call Stack": the default of cudaLimitStackSize
HEAP_BYTES = 8 << 20  # section "Heap Memory Allocation": the default of cudaLimitMallocHeapSize


class Heap(Protocol):
    """The heap of the device; see `device_heap`."""

    def allocate(self, nbytes: np.ndarray, event: int) -> np.ndarray:
        """Return the addresses of new blocks."""

    def free(self, which: np.ndarray, event: int) -> None:
        """Free live blocks."""

    def outside(self, address: np.ndarray, width: int) -> np.ndarray:
        """Return where an access is not within one live block: bool."""


@dataclass
class Allocation:
    """`nbytes` bytes at virtual `address`.

    `data`: uint8 (nbytes,). `freed` allocations are kept so that errors can name them. `written`: uint8 (nbytes,), 1
    for each byte that holds a value; None if all do. `heap`: the device heap, if this is an arena of it.
    """

    address: int
    nbytes: int
    name: str
    data: np.ndarray = field(repr=False)
    freed: bool = False
    written: np.ndarray | None = field(default=None, repr=False)
    heap: Heap | None = field(default=None, repr=False)
    _views: dict = field(default_factory=dict, repr=False)

    @property
    def end(self) -> int:
        """The address after the last byte."""
        return self.address + self.nbytes

    def view(self, dtype: np.dtype) -> np.ndarray:
        """Return the data as elements of `dtype`; whole elements only."""
        found = self._views.get(dtype)
        if found is None:
            whole = self.nbytes // dtype.itemsize * dtype.itemsize
            found = self._views[dtype] = self.data[:whole].view(dtype)
        return found


def windows(data: np.ndarray, width: int, count: int) -> np.ndarray:
    """Return the ranges of `count` elements of `width` bytes that begin at each element of `data`, uint8, as void."""
    return np.ndarray((max(data.size // width - count + 1, 0),), f"V{count * width}", data, 0, (width,))


def buffer(nbytes: int) -> np.ndarray:
    """Return zeroed uint8 (nbytes,), aligned to 16 bytes."""
    raw = np.zeros(nbytes + 16, np.uint8)
    start = -raw.ctypes.data % 16
    return raw[start : start + nbytes]


class DeviceMemory:
    """A set of allocations. `stack_bytes` and `heap_bytes` are the device's limits of a thread's stack and of the heap.

    `heap` is made by the first malloc of a kernel; `heap_sites` are the instructions that have allocated and freed.
    """

    def __init__(self, base: int = BASE) -> None:
        self.stack_bytes, self.heap_bytes = STACK_BYTES, HEAP_BYTES
        self.heap: Heap | None = None
        self.heap_sites: list[object] = []
        self._next = base
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []

    def allocate(self, nbytes: int, name: str = "", initialised: bool = True) -> Allocation:
        """Allocate zeroed memory. Unless it is `initialised`, reading a byte that nothing has written is an error.

        Raises ValueError for a negative size.
        """
        if nbytes < 0:
            raise ValueError(f"nbytes must not be negative: {nbytes}")
        address = self._next
        out = Allocation(address, nbytes, name or f"allocation {len(self._starts)}", buffer(nbytes))
        if not initialised:
            out.written = buffer(nbytes)
        span = nbytes + max(nbytes, GAP)
        self._next = -(-(address + span) // ALIGNMENT) * ALIGNMENT
        self._starts.append(address)
        self._allocations.append(out)
        return out

    def free(self, allocation: Allocation) -> None:
        """Free an allocation; its addresses are not reused.

        Raises ValueError if it is not allocated in this memory, or already freed.
        """
        if allocation.freed or not any(a is allocation for a in self._near(allocation.address)):
            raise ValueError(f"{allocation.name} is not allocated in this memory")
        allocation.freed = True
        allocation.data = np.zeros(0, np.uint8)
        allocation.written = None
        allocation._views.clear()

    def _near(self, address: int) -> list[Allocation]:
        index = bisect_right(self._starts, address) - 1
        return self._allocations[max(index, 0) : index + 2]

    def find(self, address: int, nbytes: int = 1) -> Allocation | None:
        """Return the live allocation that holds `nbytes` bytes at `address`, or None."""
        for one in self._near(address):
            if not one.freed and one.address <= address and address + nbytes <= one.end:
                return one
        return None

    def live(self) -> list[Allocation]:
        """The allocations that have not been freed."""
        return [one for one in self._allocations if not one.freed]

    def nearest(self, address: int) -> Allocation | None:
        """Return the allocation, live or freed, that is closest to `address`; None if there is none."""
        return min(self._near(address), key=lambda one: distance(one, address), default=None)


def holding(allocations: Iterable[Allocation]) -> DeviceMemory:
    """Return a memory of existing allocations."""
    out = DeviceMemory()
    out._allocations = sorted(allocations, key=lambda one: one.address)
    out._starts = [one.address for one in out._allocations]
    return out


def distance(allocation: Allocation, address: int) -> int:
    """Return the bytes from the allocation to `address`; 0 inside."""
    return max(allocation.address - address, address - allocation.end + 1, 0)
