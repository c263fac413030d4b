"""The ranks of one NCCL communicator of the stand-in: match the calls that belong together, and move their data."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from climb.emulator.memory.device_memory import Allocation
from climb.fake_cupy.memory import device_memory
from climb.rings import ring_bytes

# The values of NCCL's enumeration of reductions, as in nccl.h.
SUM, PROD, MAX, MIN = 0, 1, 2, 3

REDUCE: dict[int, Callable[..., Any]] = {
    SUM: np.add,
    PROD: np.multiply,
    MAX: np.maximum,
    MIN: np.minimum,
}
OPERATIONS = {SUM: "sum", PROD: "prod", MAX: "max", MIN: "min"}


class NcclError(RuntimeError):
    """An operation that NCCL refuses, or that would hang or give wrong data on a GPU. The message begins with NCCL's
    name for it."""


@dataclass(frozen=True)
class Message:
    """A message from one rank to another, or a rank's part in a collective operation.

    ``kind`` is ``"send"`` or the collective's name; ``target`` is None for a collective. ``nbytes`` are the bytes that
    leave the rank: for collectives by the ring algorithm, of p ranks, ``2 (p - 1) / p`` of the data for an all-reduce,
    ``(p - 1) / p`` for a reduce-scatter or an all-gather, all of it for a broadcast, except from the last in the ring.
    ``step`` numbers the operations of the communicator in the order in which they completed.
    """

    kind: str
    source: int
    target: int | None
    nbytes: int
    step: int


@dataclass
class Buffer:
    """Elements at an address: their bytes, and marks of the written ones."""

    pointer: int
    count: int
    dtype: np.dtype
    what: str

    def __post_init__(self) -> None:
        nbytes = self.count * self.dtype.itemsize
        if self.count < 0:
            raise NcclError(f"ncclInvalidArgument: {self.what}: the count is {self.count}")
        found = device_memory.find(self.pointer, nbytes) if nbytes else None
        if nbytes and found is None:
            near = device_memory.find(self.pointer)
            have = f"; only {near.end - self.pointer} bytes are left there" if near else ", where no array is"
            raise NcclError(f"ncclInvalidArgument: {self.what}: {nbytes} bytes at {self.pointer:#x}{have}")
        self.allocation: Allocation | None = found
        self.at = slice(self.pointer - found.address, self.pointer - found.address + nbytes) if found else slice(0)

    @property
    def values(self) -> np.ndarray:
        """The elements, in place."""
        if self.allocation is None:
            return np.empty(0, self.dtype)
        return self.allocation.data[self.at].view(self.dtype)

    @property
    def written(self) -> np.ndarray | None:
        """1 for each byte that holds a value; None if all do."""
        if self.allocation is None or self.allocation.written is None:
            return None
        return self.allocation.written[self.at]

    def take(self, values: np.ndarray, written: np.ndarray | None) -> None:
        """Replace the elements, and the marks of their bytes."""
        if self.allocation is not None:
            self.values[...] = values
            if self.allocation.written is not None:
                self.allocation.written[self.at] = 1 if written is None else written


@dataclass
class Operation:
    """One call of one rank, until it is complete."""

    kind: str
    rank: int
    what: str
    send: Buffer | None
    recv: Buffer | None
    peer: int | None = None
    agree: dict[str, Any] = field(default_factory=dict)
    done: bool = False


class World:
    """The ranks of one communicator, and the operations that wait for their counterparts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.joined: set[int] = set()
        self.messages: list[Message] = []
        self.aborted = False
        self._steps = itertools.count()
        self._sends: dict[tuple[int, int], deque[Operation]] = {}
        self._receives: dict[tuple[int, int], deque[Operation]] = {}
        self._collectives: list[deque[Operation]] = [deque() for _ in range(size)]

    def submit(self, operation: Operation) -> None:
        """Add an operation, and complete the operations that now have all their parts. Raises NcclError if the two
        sides disagree."""
        if operation.kind in ("send", "recv"):
            ends = (operation.rank, operation.peer)
            sends = operation.kind == "send"
            waiting, key = (self._sends, ends) if sends else (self._receives, ends[::-1])
            waiting.setdefault(key, deque()).append(operation)  # type: ignore[arg-type]  # both ends are ranks
            self._match(key)  # type: ignore[arg-type]
        else:
            self._collectives[operation.rank].append(operation)
            if all(self._collectives):
                self._complete([queue.popleft() for queue in self._collectives])

    def _match(self, key: tuple[int, int]) -> None:
        sends, receives = self._sends.get(key), self._receives.get(key)
        while sends and receives:
            send, receive = sends.popleft(), receives.popleft()
            given, taken = send.send, receive.recv
            if (given.count, given.dtype) != (taken.count, taken.dtype):
                raise NcclError(
                    f"ncclInvalidArgument: rank {key[0]} sends {given.count} {given.dtype}, and rank {key[1]} "
                    f"receives {taken.count} {taken.dtype}: {send.what}, {receive.what}"
                )
            taken.take(given.values, given.written)
            nbytes = given.count * given.dtype.itemsize
            self.messages.append(Message("send", key[0], key[1], nbytes, next(self._steps)))
            send.done = receive.done = True

    def _complete(self, calls: list[Operation]) -> None:
        first = calls[0]
        for other in calls[1:]:
            if (other.kind, other.agree) != (first.kind, first.agree):
                raise NcclError(
                    f"ncclInvalidUsage: the ranks call different operations: rank 0 {first.what}, rank {other.rank} "
                    f"{other.what}"
                )
        _COLLECTIVES[first.kind](calls)
        step = next(self._steps)
        for call in calls:
            given = call.agree["count"] * call.agree["dtype"].itemsize
            last = "root" in call.agree and call.rank == (call.agree["root"] - 1) % self.size
            nbytes = ring_bytes(call.kind, self.size, given, last)
            self.messages.append(Message(first.kind, call.rank, None, nbytes, step))
            call.done = True


def _all_written(calls: list[Operation]) -> np.ndarray | None:
    known = [call.send.written for call in calls if call.send.written is not None]
    return np.minimum.reduce(known) if known else None


def _reduced(calls: list[Operation]) -> np.ndarray:
    total = calls[0].send.values.copy()
    for call in calls[1:]:
        with np.errstate(all="ignore"):
            REDUCE[calls[0].agree["op"]](total, call.send.values, out=total)
    return total


def _all_reduce(calls: list[Operation]) -> None:
    total, written = _reduced(calls), _all_written(calls)
    for call in calls:
        call.recv.take(total, written)


def _reduce_scatter(calls: list[Operation]) -> None:
    total, written = _reduced(calls), _all_written(calls)
    for part, call in enumerate(calls):
        at, count, width = part * call.recv.count, call.recv.count, call.recv.dtype.itemsize
        known = None if written is None else written[at * width : (at + count) * width]
        call.recv.take(total[at : at + count], known)


def _all_gather(calls: list[Operation]) -> None:
    values = np.concatenate([call.send.values for call in calls])
    ones = [np.ones(call.send.values.nbytes, np.uint8) if (w := call.send.written) is None else w for call in calls]
    written = np.concatenate(ones)
    for call in calls:
        call.recv.take(values, written)


def _broadcast(calls: list[Operation]) -> None:
    root = calls[calls[0].agree["root"]]
    values, written = root.send.values.copy(), root.send.written
    for call in calls:
        call.recv.take(values, written)


_COLLECTIVES: dict[str, Callable[[list[Operation]], None]] = {
    "allReduce": _all_reduce,
    "reduceScatter": _reduce_scatter,
    "allGather": _all_gather,
    "broadcast": _broadcast,
}
