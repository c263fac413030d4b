"""Emulated device memory as CuPy shows it: an owner that frees, and pointers into it."""

from __future__ import annotations

from typing import Any

import numpy as np

from climb import emulator

#: The memory of the one emulated GPU; every array of the stand-in lives in it.
device_memory = emulator.DeviceMemory()

# What fresh memory holds. CuPy promises nothing; here it is NaN as a float and -1 as an integer, so that an
# element that a kernel forgot shows.
_FRESH = 0xFF


class Memory:
    """One allocation, freed when the last array that views it is gone. A size of 0 has no address, as in CuPy."""

    def __init__(self, allocation: Any | None, *, owned: bool) -> None:
        self.allocation = allocation
        self.size = allocation.nbytes if allocation is not None else 0
        self.ptr = allocation.address if allocation is not None else 0
        self._owned = owned and allocation is not None

    def __del__(self) -> None:
        # Neither the allocation nor numpy may be there any more when the interpreter shuts down.
        if getattr(self, "_owned", False) and device_memory is not None:
            device_memory.free(self.allocation)

    @property
    def host(self) -> np.ndarray:
        """The bytes themselves."""
        return self.allocation.data if self.allocation is not None else np.empty(0, np.uint8)

    def wrote(self, part: np.ndarray) -> None:
        """The elements of `part`, an array in these bytes, hold values that a kernel may read."""
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
    """An address inside an allocation; `ptr` is the address, `mem` the owner."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem = mem
        self.offset = offset

    @property
    def ptr(self) -> int:
        return self.mem.ptr + self.offset if self.mem.ptr else 0

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.offset + offset)

    def __int__(self) -> int:
        return self.ptr

    def __repr__(self) -> str:
        return f"<MemoryPointer 0x{self.ptr:x}>"


def allocate(nbytes: int) -> Memory:
    """Fresh device memory. It holds 0xFF everywhere, NaN or -1, and a kernel that reads it unwritten is stopped."""
    if nbytes == 0:
        return Memory(None, owned=False)
    allocation = device_memory.allocate(nbytes, initialised=False)
    allocation.data[:] = _FRESH
    return Memory(allocation, owned=True)
