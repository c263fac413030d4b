"""The heap of the device: `malloc` and `new` in a kernel allocate from it, `free` and `delete` return blocks.

Blocks lie in arenas, which are ordinary allocations of device memory. Addresses are aligned to 16 bytes and never
reused, and gaps follow each block, so that overruns and uses of freed blocks hit no other block. The bytes of live
blocks count towards the limit of the heap. The bytes that a GPU's allocator adds to each block are not documented; here
they are `HEADER` bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .device_memory import Allocation, DeviceMemory

HEADER = 16
ALIGN = 16
GAP = 32  # bytes behind a block, at least
FIRST_ARENA = 1 << 20
LIVE = -1


@dataclass(frozen=True)
class Blocks:
    """Blocks of the heap in ascending order: int64 arrays of one length, which are replaced and never changed.

    `freed` is LIVE, or the index of the event that freed the block; `made` the index of the event that allocated it.
    """

    starts: np.ndarray
    sizes: np.ndarray
    made: np.ndarray
    freed: np.ndarray

    def find(self, address: np.ndarray) -> np.ndarray:
        """Return the index of the last block that starts at or before each address; -1 if there is none."""
        return np.searchsorted(self.starts, address, side="right") - 1

    def add(self, starts: np.ndarray, sizes: np.ndarray, made: int) -> Blocks:
        """Return the blocks with further blocks, which lie behind the others."""
        new = (starts, sizes, np.full(starts.size, made), np.full(starts.size, LIVE))
        old = (self.starts, self.sizes, self.made, self.freed)
        return Blocks(*(np.concatenate(both) for both in zip(old, new, strict=True)))

    def free(self, which: np.ndarray, event: int) -> Blocks:
        """Return the blocks with the blocks of these indices freed."""
        freed = self.freed.copy()
        freed[which] = event
        return replace(self, freed=freed)


_NONE = Blocks(*(np.zeros(0, np.int64) for _ in range(4)))


@dataclass(frozen=True)
class Snapshot:
    """The state of a heap at some time."""

    blocks: Blocks
    arena: int
    used: int
    live_bytes: int


EMPTY = Snapshot(_NONE, -1, 0, 0)


class DeviceHeap:
    """The heap in `memory`. `blocks` describes all blocks so far; `live_bytes` counts towards the limit."""

    def __init__(self, memory: DeviceMemory) -> None:
        self.memory = memory
        self.blocks = _NONE
        self.live_bytes = 0
        self._arenas: list[Allocation] = []
        self._arena, self._used = -1, 0

    def allocate(self, nbytes: np.ndarray, event: int) -> np.ndarray:
        """Return the addresses of new blocks, int64 (n,), also of blocks of 0 bytes; 0 where the limit is reached."""
        sizes = np.maximum(nbytes, 0).astype(np.int64)
        cost = -(-sizes // ALIGN) * ALIGN + HEADER
        wanted = cost <= self.memory.heap_bytes
        room = self.memory.heap_bytes - self.live_bytes
        while np.where(wanted, cost, 0).sum() > room:  # refuse the first block that does not fit, until all others do
            total = np.cumsum(np.where(wanted, cost, 0))
            wanted[np.argmax(total > room)] = False
        out = np.zeros(sizes.shape, np.int64)
        if not wanted.any():
            return out
        sizes, cost = sizes[wanted], cost[wanted]
        self.live_bytes += int(cost.sum())
        stride = cost - HEADER + np.maximum(GAP, np.minimum(cost - HEADER, 8 * GAP))
        ends = np.cumsum(stride)
        starts = self._room(int(ends[-1])) + ends - stride
        self.blocks = self.blocks.add(starts, sizes, event)
        out[wanted] = starts
        return out

    def free(self, which: np.ndarray, event: int) -> None:
        """Free live blocks, given by their indices, each once."""
        sizes = self.blocks.sizes[which]
        self.live_bytes -= int((-(-sizes // ALIGN) * ALIGN + HEADER).sum())
        self.blocks = self.blocks.free(which, event)

    def outside(self, address: np.ndarray, width: int) -> np.ndarray:
        """Return where `width` bytes are not within one live block: bool, the shape of `address`."""
        blocks = self.blocks
        at = np.maximum(blocks.find(address), 0)
        inside = (address >= blocks.starts[at]) & (address + width <= blocks.starts[at] + blocks.sizes[at])
        return ~inside | (blocks.freed[at] != LIVE)

    def snapshot(self) -> Snapshot:
        """Return the current state of the heap."""
        return Snapshot(self.blocks, self._arena, self._used, self.live_bytes)

    def restore(self, then: Snapshot) -> None:
        """Go back to an earlier state. The contents of the blocks of that time are not restored."""
        self.blocks, self.live_bytes = then.blocks, then.live_bytes
        for arena in self._arenas[then.arena + 1 :]:
            arena.data[:] = 0
        for number, arena in enumerate(self._arenas[max(then.arena, 0) :], max(then.arena, 0)):
            arena.written[then.used if number == then.arena else 0 :] = 0
        self._arena, self._used = then.arena, then.used

    def _room(self, nbytes: int) -> int:
        """Return the address of `nbytes` unused bytes in one arena."""
        while self._arena < 0 or self._used + nbytes > self._arenas[self._arena].nbytes:
            self._arena, self._used = self._arena + 1, 0
            if self._arena == len(self._arenas):
                size = max(2 * nbytes, FIRST_ARENA << min(self._arena, 8))
                arena = self.memory.allocate(size, "the device heap", initialised=False)
                arena.heap = self
                self._arenas.append(arena)
        start = self._arenas[self._arena].address + self._used
        self._used += nbytes
        return start
