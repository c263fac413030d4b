"""Memory handles of ``cp.cuda.runtime``, by which one process lets another map its device memory.

The ranks of the stand-in share one range of addresses, so a handle is an address in 64 bytes, as long as CUDA's.
"""

from __future__ import annotations

from climb.fake_cupy import current
from climb.fake_cupy.errors import CUDARuntimeError
from climb.fake_cupy.memory import device_memory, device_of

#: Bytes of a cudaIpcMemHandle_t.
HANDLE_BYTES = 64
_MARK = b"emulated"


def get_handle(ptr: int) -> bytes:
    """Return the handle of the allocation that begins at `ptr`. Raises CUDARuntimeError."""
    allocation = device_memory.find(ptr)
    if allocation is None or allocation.address != ptr:
        raise CUDARuntimeError(f"cudaErrorInvalidValue: invalid argument: no allocation begins at {ptr:#x}")
    return (_MARK + ptr.to_bytes(8, "little")).ljust(HANDLE_BYTES, b"\0")


def open_handle(handle: bytes, flags: int = 1) -> int:
    """Return the address at which the current device sees the memory of a handle; it has peer access from now on.

    Raises CUDARuntimeError for a handle of no live allocation.
    """
    handle = bytes(handle)
    ptr = int.from_bytes(handle[len(_MARK) : len(_MARK) + 8], "little")
    allocation = device_memory.find(ptr) if handle.startswith(_MARK) else None
    if allocation is None:
        raise CUDARuntimeError("cudaErrorInvalidResourceHandle: invalid resource handle: no memory has this handle")
    current.open_peer(device_of(allocation))
    return ptr


def close_handle(ptr: int) -> None:
    """Unmap the memory of a handle. Peer access stays because other handles may need it."""
