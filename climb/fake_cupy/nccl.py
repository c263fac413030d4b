"""``cp.cuda.nccl``: the calls of NCCL that the book uses, between ranks that are threads of one process.

A call returns when the operation is complete, as launches do here. NCCL promises less than it often does: a send may
return before anyone receives, because a small message fits into a buffer. Here a send completes only with its receive,
so code that relies on such a buffer deadlocks at once. Counts and types that do not agree, which a GPU would take as
wrong data or as a hang, are errors that name both sides; and so are bytes outside an allocation.

Sums are taken in the order of ranks, in the type of the data. NCCL's order depends on the machine.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from climb.emulator.memory.device_memory import Allocation
from climb.fake_cupy.memory import device_memory
from climb.fake_cupy.ranks import conductor

available = True

# The values of NCCL's enumerations, as in nccl.h.
NCCL_INT8 = NCCL_CHAR = 0
NCCL_UINT8 = 1
NCCL_INT32 = NCCL_INT = 2
NCCL_UINT32 = 3
NCCL_INT64 = 4
NCCL_UINT64 = 5
NCCL_FLOAT16 = NCCL_HALF = 6
NCCL_FLOAT32 = NCCL_FLOAT = 7
NCCL_FLOAT64 = NCCL_DOUBLE = 8
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = 0, 1, 2, 3

_DTYPES = {
    number: np.dtype(name)
    for number, name in enumerate(
        ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
    )
}
_REDUCE: dict[int, Callable[..., Any]] = {
    NCCL_SUM: np.add,
    NCCL_PROD: np.multiply,
    NCCL_MAX: np.maximum,
    NCCL_MIN: np.minimum,
}
_OPERATIONS = {NCCL_SUM: "sum", NCCL_PROD: "prod", NCCL_MAX: "max", NCCL_MIN: "min"}


class NcclError(RuntimeError):
    """What NCCL refuses, or what would hang or give wrong data on a GPU. The message begins with NCCL's name for it."""


@dataclass(frozen=True)
class Message:
    """What one rank sent another, or its part in a collective operation.

    ``kind`` is ``"send"`` or the collective's name; ``target`` is None for a collective. ``nbytes`` is what leaves the
    rank: for collectives by the ring algorithm, of p ranks, ``2 (p - 1) / p`` of the data for an all-reduce,
    ``(p - 1) / p`` for a reduce-scatter or an all-gather, all of it for a broadcast, except from the last in the ring.
    ``step`` numbers the operations of the communicator in the order in which they completed.
    """

    kind: str
    source: int
    target: int | None
    nbytes: int
    step: int


@dataclass
class _Buffer:
    """Elements at an address: their bytes, and which of those have been written."""

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
        """Replace the elements, and what is known of their bytes."""
        if self.allocation is not None:
            self.values[...] = values
            if self.allocation.written is not None:
                self.allocation.written[self.at] = 1 if written is None else written


@dataclass
class _Operation:
    """One call of one rank, until it is complete."""

    kind: str
    rank: int
    what: str
    send: _Buffer | None
    recv: _Buffer | None
    peer: int | None = None
    agree: dict[str, Any] = field(default_factory=dict)
    done: bool = False


class _World:
    """The ranks of one communicator, and the operations that wait for their counterparts."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.joined: set[int] = set()
        self.messages: list[Message] = []
        self.aborted = False
        self._steps = itertools.count()
        self._sends: dict[tuple[int, int], deque[_Operation]] = {}
        self._receives: dict[tuple[int, int], deque[_Operation]] = {}
        self._collectives: list[deque[_Operation]] = [deque() for _ in range(size)]

    def submit(self, operation: _Operation) -> None:
        """Add an operation, and complete what it completes. Raises NcclError where the two sides disagree."""
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

    def _complete(self, calls: list[_Operation]) -> None:
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
            nbytes = _ring_bytes(call, self.size)
            self.messages.append(Message(first.kind, call.rank, None, nbytes, step))
            call.done = True


def _ring_bytes(call: _Operation, ranks: int) -> int:
    buffer = call.send or call.recv
    nbytes = buffer.count * buffer.dtype.itemsize
    if call.kind == "allReduce":
        return 2 * (ranks - 1) * nbytes // ranks
    if call.kind == "reduceScatter":
        return (ranks - 1) * nbytes // ranks
    if call.kind == "allGather":
        return (ranks - 1) * nbytes
    last = (call.agree["root"] - 1) % ranks
    return 0 if call.rank == last and ranks > 1 else nbytes * (ranks > 1)


def _all_written(calls: list[_Operation]) -> np.ndarray | None:
    known = [call.send.written for call in calls if call.send.written is not None]
    return np.minimum.reduce(known) if known else None


def _reduced(calls: list[_Operation]) -> np.ndarray:
    total = calls[0].send.values.copy()
    for call in calls[1:]:
        with np.errstate(all="ignore"):
            _REDUCE[calls[0].agree["op"]](total, call.send.values, out=total)
    return total


def _all_reduce(calls: list[_Operation]) -> None:
    total, written = _reduced(calls), _all_written(calls)
    for call in calls:
        call.recv.take(total, written)


def _reduce_scatter(calls: list[_Operation]) -> None:
    total, written = _reduced(calls), _all_written(calls)
    for part, call in enumerate(calls):
        at, count, width = part * call.recv.count, call.recv.count, call.recv.dtype.itemsize
        known = None if written is None else written[at * width : (at + count) * width]
        call.recv.take(total[at : at + count], known)


def _all_gather(calls: list[_Operation]) -> None:
    values = np.concatenate([call.send.values for call in calls])
    ones = [np.ones(call.send.values.nbytes, np.uint8) if (w := call.send.written) is None else w for call in calls]
    written = np.concatenate(ones)
    for call in calls:
        call.recv.take(values, written)


def _broadcast(calls: list[_Operation]) -> None:
    root = calls[calls[0].agree["root"]]
    values, written = root.send.values.copy(), root.send.written
    for call in calls:
        call.recv.take(values, written)


_COLLECTIVES: dict[str, Callable[[list[_Operation]], None]] = {
    "allReduce": _all_reduce,
    "reduceScatter": _reduce_scatter,
    "allGather": _all_gather,
    "broadcast": _broadcast,
}


class _Group(threading.local):
    """The open group of a thread: how deep it is nested, and its operations with their worlds."""

    def __init__(self) -> None:
        self.depth = 0
        self.operations: list[tuple[_World, _Operation]] = []


_group = _Group()
_worlds: dict[tuple[int, ...], _World] = {}
_ids = itertools.count(1)


def get_version() -> int:
    """The version of NCCL whose interface this is."""
    return 22500


def get_unique_id() -> tuple[int, ...]:
    """The identity of a new communicator, for rank 0 to give to the others: 128 bytes, as in CuPy."""
    return tuple(next(_ids).to_bytes(8, "little").ljust(128, b"\0"))


def groupStart() -> None:
    """Begin a group: its operations are issued together, at the end of the outermost group."""
    _group.depth += 1


def groupEnd() -> None:
    """End a group and complete its operations. Raises NcclError."""
    if _group.depth == 0:
        raise NcclError("ncclInvalidUsage: groupEnd without groupStart")
    _group.depth -= 1
    if _group.depth == 0:
        operations, _group.operations = _group.operations, []
        _run(operations)


def _run(operations: list[tuple[_World, _Operation]]) -> None:
    for world, operation in operations:
        world.submit(operation)

    def left() -> list[_Operation]:
        return [operation for _, operation in operations if not operation.done]

    def what() -> str:
        return ", ".join(operation.what for operation in left())

    if (runner := conductor()) is not None:
        runner.wait(lambda: not left(), what)
    elif left():
        raise NcclError(f"ncclInternalError: these operations would wait for ever: {what()}")


class NcclCommunicator:
    """A rank's end of a communicator of `ndev` ranks. Making it waits until all ranks have made theirs."""

    def __init__(self, ndev: int, commId: tuple[int, ...], rank: int) -> None:
        if not 0 <= rank < ndev:
            raise NcclError(f"ncclInvalidArgument: rank {rank} of {ndev}")
        world = _worlds.setdefault(tuple(commId), _World(ndev))
        if world.size != ndev or rank in world.joined:
            taken = f"a second rank {rank} joins" if rank in world.joined else f"{ndev} ranks join one of {world.size}"
            raise NcclError(f"ncclInvalidArgument: {taken} the communicator")
        world.joined.add(rank)
        self._world, self._rank = world, rank
        if (runner := conductor()) is not None:
            missing = lambda: sorted(set(range(ndev)) - world.joined)  # noqa: E731
            runner.wait(lambda: not missing(), lambda: f"NcclCommunicator, which ranks {missing()} have not made")
        elif len(world.joined) < ndev:
            raise NcclError(
                f"ncclInvalidUsage: a communicator of {ndev} ranks needs {ndev} ranks; "
                f"start them with python -m climb.launch -n {ndev}"
            )

    @staticmethod
    def initAll(devices: int | list[int]) -> list[NcclCommunicator]:
        """Communicators of one process that uses several devices, a rank each. Group their calls."""
        count = devices if isinstance(devices, int) else len(devices)
        world = _World(count)
        made = []
        for rank in range(count):
            one = NcclCommunicator.__new__(NcclCommunicator)
            one._world, one._rank = world, rank
            made.append(one)
        return made

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the ranks of this communicator have sent so far. CuPy has no such attribute."""
        return tuple(self._world.messages)

    def rank_id(self) -> int:
        """The number of this rank."""
        return self._rank

    def size(self) -> int:
        """The number of ranks."""
        return self._world.size

    def device_id(self) -> int:
        """The device of this rank."""
        from climb.fake_cupy import current

        return current.current()

    def check_async_error(self) -> None:
        """Raise NcclError if the communicator was aborted."""
        if self._world.aborted:
            raise NcclError("ncclSystemError: the communicator was aborted")

    def abort(self) -> None:
        """End the communicator without waiting for the other ranks."""
        self._world.aborted = True

    def destroy(self) -> None:
        """End the communicator."""

    def send(self, sendbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """Send `count` elements to rank `peer`."""
        what = f"send({count} {_dtype(datatype)}, to rank {self._peer(peer)})"
        self._call(_Operation("send", self._rank, what, _Buffer(sendbuf, count, _dtype(datatype), what), None, peer))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """Receive `count` elements from rank `peer`."""
        what = f"recv({count} {_dtype(datatype)}, from rank {self._peer(peer)})"
        self._call(_Operation("recv", self._rank, what, None, _Buffer(recvbuf, count, _dtype(datatype), what), peer))

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        """Leave the sum (or what `op` says) of every rank's elements on every rank."""
        self._collective("allReduce", sendbuf, recvbuf, count, count, datatype, op=op)

    def reduceScatter(self, sendbuf: int, recvbuf: int, recvcount: int, datatype: int, op: int, stream: int) -> None:
        """Leave the r-th `recvcount` elements of the sum on rank r."""
        self._collective("reduceScatter", sendbuf, recvbuf, recvcount * self.size(), recvcount, datatype, op=op)

    def allGather(self, sendbuf: int, recvbuf: int, count: int, datatype: int, stream: int) -> None:
        """Leave every rank's elements on every rank, in the order of ranks."""
        self._collective("allGather", sendbuf, recvbuf, count, count * self.size(), datatype)

    def broadcast(self, sendbuff: int, recvbuff: int, count: int, datatype: int, root: int, stream: int) -> None:
        """Copy the elements of rank `root` to every rank."""
        self._collective("broadcast", sendbuff, recvbuff, count, count, datatype, root=self._peer(root))

    def bcast(self, buff: int, count: int, datatype: int, root: int, stream: int) -> None:
        """Copy the elements of rank `root` to every rank, in place."""
        self.broadcast(buff, buff, count, datatype, root, stream)

    def _peer(self, rank: int) -> int:
        if not 0 <= rank < self.size():
            raise NcclError(f"ncclInvalidArgument: there is no rank {rank}; there are {self.size()}")
        return rank

    def _collective(
        self, kind: str, send: int, recv: int, sent: int, received: int, datatype: int, **how: int
    ) -> None:
        dtype = _dtype(datatype)
        extra = _OPERATIONS.get(how.get("op", -1), "") or (f"root {how['root']}" if "root" in how else "")
        if "op" in how and how["op"] not in _REDUCE:
            raise NcclError(f"ncclInvalidArgument: {kind} has no operation {how['op']}")
        what = f"{kind}({min(sent, received)} {dtype}{', ' + extra if extra else ''})"
        agree = {"count": min(sent, received), "dtype": dtype, **how}
        buffers = _Buffer(send, sent, dtype, what), _Buffer(recv, received, dtype, what)
        self._call(_Operation(kind, self._rank, what, *buffers, agree=agree))

    def _call(self, operation: _Operation) -> None:
        if _group.depth:
            _group.operations.append((self._world, operation))
        else:
            _run([(self._world, operation)])


def _dtype(datatype: int) -> np.dtype:
    if datatype not in _DTYPES:
        raise NcclError(f"ncclInvalidArgument: there is no data type {datatype} here")
    return _DTYPES[datatype]
