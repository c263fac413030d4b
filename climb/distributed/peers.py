"""Let every rank map the others' arrays: CUDA's memory handles, gathered with NCCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from climb.bench.cuda import backend, cp
from climb.distributed.rank import Rank

#: The driver takes small allocations out of blocks of this size, and a handle refers to a whole block: arrays that are
#: mapped get their own blocks.
BLOCK = 2 << 20
_HANDLE = 64


def shareable(shape: tuple[int, ...], dtype: str) -> Any:
    """Allocate a new array that other ranks can map: a separate allocation, in whole blocks, not from CuPy's pool."""
    count = int(np.prod(shape, dtype=np.int64))
    nbytes = count * np.dtype(dtype).itemsize
    if backend == "emulator":
        return cp.empty(shape, dtype=dtype)
    memory = cp.cuda.Memory(max(1, -(-nbytes // BLOCK)) * BLOCK)
    return cp.ndarray(shape, dtype, cp.cuda.MemoryPointer(memory, 0))


def map_peers(rank: Rank, arrays: Mapping[str, Any], stream: Any) -> dict[tuple[str, int], Any]:
    """Return the arrays of all other ranks by name and rank, mapped into this rank's memory.

    All ranks call it, with arrays of the same names, in one order, made by :func:`shareable`. Shapes may differ; the
    arrays are then seen in one dimension.
    """
    if rank.comm is None or not arrays:
        return {}
    runtime, nccl, ranks = cp.cuda.runtime, cp.cuda.nccl, rank.place.ranks
    own = b"".join(
        bytes(runtime.ipcGetMemHandle(array.data.ptr)) + array.nbytes.to_bytes(8, "little") for array in arrays.values()
    )
    given = cp.asarray(np.frombuffer(own, np.uint8))
    taken = cp.empty(len(own) * ranks, dtype=cp.uint8)
    cp.cuda.get_current_stream().synchronize()
    rank.comm.allGather(given.data.ptr, taken.data.ptr, len(own), nccl.NCCL_UINT8, stream.ptr)
    rank.wait(stream, "handles of memory")
    entries = cp.asnumpy(taken).reshape(ranks, len(arrays), _HANDLE + 8)
    mapped = {}
    for other in range(ranks):
        for entry, (name, array) in zip(entries[other], arrays.items(), strict=True):
            if other != rank.place.rank:
                nbytes = int.from_bytes(entry[_HANDLE:].tobytes(), "little")
                mapped[name, other] = _opened(entry[:_HANDLE].tobytes(), nbytes, array.dtype)
    return mapped


def unmap(rank: Rank, mapped: Mapping[tuple[str, int], Any], stream: Any) -> None:
    """Unmap the arrays from ``map_peers``. All ranks call it; after it, each may free its own arrays."""
    if rank.comm is None or not mapped:
        return
    for array in mapped.values():
        cp.cuda.runtime.ipcCloseMemHandle(array.data.ptr)
    rank.barrier(stream)
    rank.wait(stream, "all ranks have unmapped")


def _opened(handle: bytes, nbytes: int, dtype: Any) -> Any:
    ptr = cp.cuda.runtime.ipcOpenMemHandle(handle)
    memory = cp.cuda.UnownedMemory(ptr, nbytes, None, -1)
    return cp.ndarray((nbytes // np.dtype(dtype).itemsize,), dtype, cp.cuda.MemoryPointer(memory, 0))
