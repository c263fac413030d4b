"""Emulated device memory as CuPy presents it: allocations with an owner, and pointers into them."""

from __future__ import annotations

from typing import Any

import numpy as np

from climb import emulator

#: The memory of the one emulated GPU, which holds every device array.
device_memory = emulator.DeviceMemory()

# The byte in fresh memory. CuPy promises nothing; here a float is NaN and an integer -1, so that an element that no
# thread wrote stands out.
_FRESH = 0xFF


class Memory:
    """One allocation, freed with the last array that uses it. An allocation of 0 bytes has address 0, as in CuPy."""

    def __init__(self, allocation: Any | None, *, owned: bool) -> None:
        self.allocation = allocation
        self.size = allocation.nbytes if allocation is not None else 0
        self.ptr = allocation.address if allocation is not None else 0
        self._owned = owned and allocation is not None

    def __del__(self) -> None:
        # When the interpreter shuts down, the attributes and the module's names may be gone already.
        if getattr(self, "_owned", False) and device_memory is not None:
            device_memory.free(self.allocation)

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
