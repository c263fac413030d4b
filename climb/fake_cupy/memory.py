"""Emulated device memory as CuPy presents it: allocations with an owner, and pointers into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from climb import emulator
from climb.emulator.memory.device_memory import Allocation, DeviceMemory, holding
from climb.fake_cupy import current
from climb.fake_cupy.errors import CUDADriverError

#: The memory of all emulated GPUs, in one range of addresses, as CUDA's unified addressing has it.
device_memory = emulator.DeviceMemory()

# The byte in fresh memory. CuPy promises no value; here a float is NaN and an integer -1, so that an element that no
# thread wrote stands out.
_FRESH = 0xFF

# The devices of live allocations by address, except those of device 0.
_elsewhere: dict[int, int] = {}


class Memory:
    """One allocation, freed with the last array that uses it. An allocation of 0 bytes has address 0, as in CuPy."""

    def __init__(self, allocation: Any | None, *, owned: bool) -> None:
        self.allocation = allocation
        self.size = allocation.nbytes if allocation is not None else 0
        self.ptr = allocation.address if allocation is not None else 0
        self._owned = owned and allocation is not None
        self.device_id = current.current()
        if self._owned and self.device_id:
            _elsewhere[self.ptr] = self.device_id

    def __del__(self) -> None:
        # When the interpreter shuts down, the attributes and the module's names may be gone already.
        if getattr(self, "_owned", False) and device_memory is not None:
            device_memory.free(self.allocation)
            _elsewhere.pop(self.ptr, None)

    @property
    def host(self) -> np.ndarray:
        """The bytes, as an array of uint8 in this process."""
        return self.allocation.data if self.allocation is not None else np.empty(0, np.uint8)

    def wrote(self, part: np.ndarray) -> None:
        """Mark the elements of `part`, an array in these bytes, as written, so that a kernel may read them."""
        written = self.allocation.written if self.allocation is not None else None
        if written is None or not part.size:
            return
        if part.nbytes == self.size and (part.flags.c_contiguous or part.flags.f_contiguous):
            self.allocation.written = None
            return
        offset = part.__array_interface__["data"][0] - self.host.__array_interface__["data"][0]
        each = np.ndarray(part.shape, f"V{part.itemsize}", written, offset, part.strides)
        each[...] = np.frombuffer(b"\1" * part.itemsize, f"V{part.itemsize}")[0]


class UnownedMemory(Memory):
    """Memory that another object owns, `owner`, at an address: an opened IPC handle, say. Raises CUDADriverError."""

    def __init__(self, ptr: int, size: int, owner: Any, device_id: int = -1) -> None:
        allocation = device_memory.find(ptr, size)
        if allocation is None or allocation.address != ptr:
            raise CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: no allocation begins at {ptr:#x}")
        super().__init__(allocation, owned=False)
        self.size, self.owner = size, owner
        self.device_id = device_of(allocation) if device_id < 0 else device_id


class MemoryPointer:
    """An address inside an allocation: `ptr` is the address, `mem` the allocation's owner."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem = mem
        self.offset = offset

    @property
    def ptr(self) -> int:
        """The address on the device; 0 in an allocation of 0 bytes."""
        return self.mem.ptr + self.offset if self.mem.ptr else 0

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<MemoryPointer 0x{self.ptr:x}>"


def allocate(nbytes: int) -> Memory:
    """Allocate device memory. It is filled with 0xFF (NaN, or -1), and a kernel that reads it unwritten is stopped."""
    if nbytes == 0:
        return Memory(None, owned=False)
    allocation = device_memory.allocate(nbytes, initialised=False)
    allocation.data[:] = _FRESH
    return Memory(allocation, owned=True)


def device_of(allocation: Allocation) -> int:
    """Return the number of the device that holds an allocation."""
    return _elsewhere.get(allocation.address, 0)


def memory_seen_by(device: int) -> DeviceMemory:
    """Return the memory that a kernel on this device may access: its own, and that of its peers."""
    if device == 0 and not _elsewhere:
        return device_memory
    seen = [one for one in device_memory.live() if current.may_access(device, device_of(one))]
    if len(seen) == len(device_memory.live()):
        return device_memory
    memory = holding(seen)
    memory.stack_bytes, memory.heap_bytes = device_memory.stack_bytes, device_memory.heap_bytes
    return memory
