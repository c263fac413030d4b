"""The stack of each thread: saved registers of recursive functions, and variables that are allocated while it runs.

On a GPU both lie in local memory, in the stack whose size is a limit of the device (cudaLimitStackSize). Here the
registers are kept separately; variables follow the kernel's other local variables, with gaps between them.
"""

from __future__ import annotations

import numpy as np

from .layout import GAPS


class Stack:
    """The stacks of `lanes` threads, whose variables begin at local address `start`.

    `top`, int64 (lanes,): the next free local address. `used`, int64 (lanes,): bytes that a GPU's stack would hold at
    least. `calls`, int64 (lanes,): the depth of the recursion. `live`, uint8 (lanes, bytes): 1 for each byte of a
    variable, counted from `start`.
    """

    def __init__(self, lanes: int, start: int) -> None:
        self.start = -(-start // 64) * 64 + GAPS["local"]
        self.top = np.full(lanes, self.start, np.int64)
        self.used, self.calls = np.zeros(lanes, np.int64), np.zeros(lanes, np.int64)
        self.live = np.zeros((lanes, 0), np.uint8)
        self._slots = np.zeros((0, lanes), np.uint64)
        self._depth = np.zeros(lanes, np.int64)

    def push(self, lane: np.ndarray, values: list[np.ndarray], nbytes: int) -> None:
        """Save `values`, each uint64 (n,), of `lane` (n,)."""
        self.calls[lane] += 1
        self.used[lane] += nbytes
        depth = self._depth[lane]
        need = int(depth.max()) + len(values)
        if need > self._slots.shape[0]:
            more = np.zeros((max(need, 2 * self._slots.shape[0]) - self._slots.shape[0], lane_count(self)), np.uint64)
            self._slots = np.concatenate([self._slots, more])
        for number, value in enumerate(values):
            self._slots[depth + number, lane] = value
        self._depth[lane] = depth + len(values)

    def pop(self, lane: np.ndarray, count: int, nbytes: int) -> list[np.ndarray]:
        """Return the `count` values that were saved last, each uint64 (n,)."""
        self.calls[lane] -= 1
        self.used[lane] -= nbytes
        depth = self._depth[lane] = self._depth[lane] - count
        return [self._slots[depth + number, lane] for number in range(count)]

    def allocate(self, lane: np.ndarray, nbytes: np.ndarray, align: int) -> np.ndarray:
        """Return the local addresses, int64 (n,), of new variables of `nbytes` (n,) bytes."""
        align = max(align, 16)
        address = -(-self.top[lane] // align) * align
        self.top[lane] = address + -(-nbytes // 16) * 16 + GAPS["local"]
        self.used[lane] += nbytes
        width = int(self.top[lane].max()) - self.start
        if width > self.live.shape[1]:
            grown = np.zeros((lane_count(self), 2 * width), np.uint8)
            grown[:, : self.live.shape[1]] = self.live
            self.live = grown
        self._mark(lane, address, nbytes, 1)
        return address

    def restore(self, lane: np.ndarray, top: np.ndarray) -> None:
        """Free the variables allocated since the top of the stack was `top`, (n,)."""
        left = self.top[lane] - top
        ended = self._bytes(lane, top, left)
        self.used[lane] -= np.where(ended, self.live[lane], 0).sum(axis=1, dtype=np.int64)
        self._mark(lane, top, left, 0)
        self.top[lane] = top

    def holds(self, lane: np.ndarray, address: np.ndarray, width: int) -> np.ndarray:
        """Return where `width` bytes at local addresses (n,) are bytes of variables: bool (n,)."""
        offset = address - self.start
        inside = (offset >= 0) & (offset + width <= self.live.shape[1])
        offset = np.where(inside, offset, 0)
        if not self.live.shape[1]:
            return inside
        found = [self.live[lane, np.minimum(offset + byte, self.live.shape[1] - 1)] != 0 for byte in (0, width - 1)]
        return inside & found[0] & found[1]

    def _bytes(self, lane: np.ndarray, address: np.ndarray, nbytes: np.ndarray) -> np.ndarray:
        column = np.arange(self.live.shape[1])
        offset = (address - self.start).reshape(-1, 1)
        return (column >= offset) & (column < offset + nbytes.reshape(-1, 1))

    def _mark(self, lane: np.ndarray, address: np.ndarray, nbytes: np.ndarray, value: int) -> None:
        self.live[lane] = np.where(self._bytes(lane, address, nbytes), np.uint8(value), self.live[lane])


def lane_count(stack: Stack) -> int:
    """Return the number of threads with a stack."""
    return stack.top.size
