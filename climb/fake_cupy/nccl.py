"""``cp.cuda.nccl``: the calls of NCCL that the book uses, between ranks that are threads of one process.

A call returns when the operation is complete, as launches do here. NCCL often does more than it promises: a send may
return before any rank receives, because a small message fits into a buffer. Here a send completes only with its
receive, so code that relies on such a buffer deadlocks at once. Counts and types that do not agree, which a GPU would
take as wrong data or as a hang, are errors that name both sides; and so are bytes outside an allocation.

Sums are taken in the order of ranks, in the type of the data. NCCL's order depends on the machine.
"""

from __future__ import annotations

import itertools
import threading

import numpy as np

from climb.fake_cupy import current
from climb.fake_cupy.nccl_world import (
    MAX,
    MIN,
    OPERATIONS,
    PROD,
    REDUCE,
    SUM,
    Buffer,
    Message,
    NcclError,
    Operation,
    World,
)
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
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = SUM, PROD, MAX, MIN

_DTYPES = {
    number: np.dtype(name)
    for number, name in enumerate(
        ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
    )
}


class _Group(threading.local):
    """The open group of a thread: its depth of nesting, and its operations with their worlds."""

    def __init__(self) -> None:
        self.depth = 0
        self.operations: list[tuple[World, Operation]] = []


_group = _Group()
_worlds: dict[bytes, World] = {}
_ids = itertools.count(1)


def get_version() -> int:
    """Return the version of NCCL that has this interface."""
    return 22500


def get_unique_id() -> bytes:
    """Return the identity of a new communicator, for rank 0 to give to the others: 128 bytes, as in CuPy."""
    return next(_ids).to_bytes(8, "little").ljust(128, b"\0")


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


def _run(operations: list[tuple[World, Operation]]) -> None:
    for world, operation in operations:
        world.submit(operation)

    def left() -> list[Operation]:
        return [operation for _, operation in operations if not operation.done]

    def what() -> str:
        return ", ".join(operation.what for operation in left())

    if (runner := conductor()) is not None:
        runner.wait(lambda: not left(), what)
    elif left():
        raise NcclError(f"ncclInternalError: these operations would wait for ever: {what()}")


class NcclCommunicator:
    """A rank's end of a communicator of `ndev` ranks. Making it waits until all ranks have made theirs."""

    def __init__(self, ndev: int, commId: bytes, rank: int) -> None:
        if not 0 <= rank < ndev:
            raise NcclError(f"ncclInvalidArgument: rank {rank} of {ndev}")
        world = _worlds.setdefault(bytes(commId), World(ndev))
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
        """Make the communicators of one process that uses several devices, a rank each. Group their calls."""
        count = devices if isinstance(devices, int) else len(devices)
        world = World(count)
        made = []
        for rank in range(count):
            one = NcclCommunicator.__new__(NcclCommunicator)
            one._world, one._rank = world, rank
            made.append(one)
        return made

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages sent so far by the ranks of this communicator. CuPy has no such attribute."""
        return tuple(self._world.messages)

    def rank_id(self) -> int:
        """The number of this rank."""
        return self._rank

    def size(self) -> int:
        """The number of ranks."""
        return self._world.size

    def device_id(self) -> int:
        """The device of this rank."""
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
        self._call(Operation("send", self._rank, what, Buffer(sendbuf, count, _dtype(datatype), what), None, peer))

    def recv(self, recvbuf: int, count: int, datatype: int, peer: int, stream: int) -> None:
        """Receive `count` elements from rank `peer`."""
        what = f"recv({count} {_dtype(datatype)}, from rank {self._peer(peer)})"
        self._call(Operation("recv", self._rank, what, None, Buffer(recvbuf, count, _dtype(datatype), what), peer))

    def allReduce(self, sendbuf: int, recvbuf: int, count: int, datatype: int, op: int, stream: int) -> None:
        """Leave the sum (or the result of `op`) of every rank's elements on every rank."""
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

    def _collective(self, kind: str, send: int, recv: int, sent: int, received: int, datatype: int, **how: int) -> None:
        dtype = _dtype(datatype)
        extra = OPERATIONS.get(how.get("op", -1), "") or (f"root {how['root']}" if "root" in how else "")
        if "op" in how and how["op"] not in REDUCE:
            raise NcclError(f"ncclInvalidArgument: {kind} has no operation {how['op']}")
        what = f"{kind}({min(sent, received)} {dtype}{', ' + extra if extra else ''})"
        agree = {"count": min(sent, received), "dtype": dtype, **how}
        buffers = Buffer(send, sent, dtype, what), Buffer(recv, received, dtype, what)
        self._call(Operation(kind, self._rank, what, *buffers, agree=agree))

    def _call(self, operation: Operation) -> None:
        if _group.depth:
            _group.operations.append((self._world, operation))
        else:
            _run([(self._world, operation)])


def _dtype(datatype: int) -> np.dtype:
    if datatype not in _DTYPES:
        raise NcclError(f"ncclInvalidArgument: there is no data type {datatype} here")
    return _DTYPES[datatype]
