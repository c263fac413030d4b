"""The limits of a launch on compute capability 9.0, and the checks that the CUDA driver makes.

The numbers are from the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from typing import Any

from climb.emulator.execution.cooperative import resident_blocks
from climb.fake_cupy.errors import CUDADriverError, CUDARuntimeError, invalid_value
from climb.fake_cupy.memory import device_memory

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
#: Shared memory of a block in bytes: the default limit, and the largest that a kernel can opt in to.
SHARED_BYTES = 48 * 1024
SHARED_BYTES_OPT_IN = 227 * 1024
REGISTERS = 64 * 1024
WARP = 32
#: Registers are allocated to a warp in units of this many.
REGISTER_UNIT = 256


#: The values of CUDA's enumeration of a device's limits, which are members of ``cp.cuda.runtime``.
LIMITS = {"cudaLimitStackSize": 0, "cudaLimitPrintfFifoSize": 1, "cudaLimitMallocHeapSize": 2}
_ATTRIBUTES = {0: "stack_bytes", 2: "heap_bytes"}


def set_limit(limit: int, value: int) -> None:
    """``deviceSetLimit``: the stack of a thread or the device heap, in bytes. Raises CUDARuntimeError."""
    if limit not in LIMITS.values() or value < 0:
        raise CUDARuntimeError(f"cudaErrorInvalidValue: invalid argument: limit {limit} of {value} bytes")
    if limit == LIMITS["cudaLimitMallocHeapSize"] and device_memory.heap is not None:
        raise CUDARuntimeError("cudaErrorInvalidValue: invalid argument: the device heap is in use already")
    if limit in _ATTRIBUTES:  # printf has a separate limit
        setattr(device_memory, _ATTRIBUTES[limit], int(value))


def get_limit(limit: int) -> int:
    """``deviceGetLimit``. Raises CUDARuntimeError for an unknown limit."""
    if limit not in _ATTRIBUTES:
        raise CUDARuntimeError(f"cudaErrorUnsupportedLimit: limit {limit} is not supported on this architecture")
    return getattr(device_memory, _ATTRIBUTES[limit])


def dim3(dims: Any, what: str) -> tuple[int, int, int]:
    """Return `dims`, a tuple of one to three positive integers, padded to three. Raises TypeError or
    CUDADriverError."""
    if not isinstance(dims, tuple):
        raise TypeError(f"{what} must be a tuple, not {type(dims).__name__}: {what}=({dims},)")
    if not 1 <= len(dims) <= 3 or not all(hasattr(d, "__index__") and not isinstance(d, bool) for d in dims):
        raise TypeError(f"{what} must have one to three whole numbers, not {dims!r}")
    x, y, z = (*(int(d) for d in dims), 1, 1)[:3]
    if min(x, y, z) < 1:
        raise invalid_value(f"{what} is {dims}; every extent must be at least 1")
    return x, y, z


def check_extents(grid: tuple[int, int, int], block: tuple[int, int, int], bound: int) -> None:
    """Raise CUDADriverError if grid or block exceed the hardware, or the block exceeds `bound` threads (0: none)."""
    for axis, extent, limit in zip("xyz", grid, MAX_GRID, strict=True):
        if extent > limit:
            raise invalid_value(f"grid {grid}: {axis} may be at most {limit}")
    for axis, extent, limit in zip("xyz", block, MAX_BLOCK, strict=True):
        if extent > limit:
            raise invalid_value(f"block {block}: {axis} may be at most {limit}")
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise invalid_value(f"block {block} has {threads} threads; a block has at most {MAX_THREADS}")
    if bound and threads > bound:
        raise invalid_value(f"block {block} has {threads} threads; the kernel's __launch_bounds__ says at most {bound}")


def check_shared(dynamic: int, static: int, allowed: int) -> None:
    """Raise CUDADriverError if `dynamic` bytes exceed the `allowed` ones; the kernel declares `static` besides."""
    if dynamic < 0:
        raise invalid_value(f"shared_mem is {dynamic}; it must be a number of bytes")
    if dynamic > allowed:
        besides = f" besides the {static} that it declares" if static else ""
        more = SHARED_BYTES_OPT_IN - static
        advice = (
            f"kernel.max_dynamic_shared_size_bytes = {dynamic} asks for more first"
            if dynamic <= more
            else f"even when asked for, at most {more} can be had"
        )
        raise invalid_value(
            f"shared_mem is {dynamic} bytes; a block of this kernel may have {allowed}{besides}; {advice}"
        )


def check_opt_in(dynamic: int, static: int) -> None:
    """Raise CUDADriverError if the hardware cannot give a block `dynamic` bytes besides the `static` ones."""
    if not 0 <= dynamic <= SHARED_BYTES_OPT_IN - static:
        raise invalid_value(
            f"max_dynamic_shared_size_bytes = {dynamic}; a block has {SHARED_BYTES_OPT_IN} bytes of shared memory"
            + (f", and the kernel declares {static} of them" if static else "")
        )


def check_registers(registers: int, block: tuple[int, int, int]) -> None:
    """Raise CUDADriverError if a block with `registers` per thread does not fit into a multiprocessor's registers."""
    threads = block[0] * block[1] * block[2]
    warps = -(-threads // WARP)
    per_warp = -(-registers * WARP // REGISTER_UNIT) * REGISTER_UNIT
    if warps * per_warp > REGISTERS:
        raise CUDADriverError(
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch: "
            f"{threads} threads of {registers} registers need {warps * per_warp}, a multiprocessor has {REGISTERS}; "
            "launch a smaller block, or add __launch_bounds__ so that the compiler uses fewer"
        )


def check_resident(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, registers: int) -> None:
    """Raise CUDADriverError if the blocks of a cooperative launch do not fit on the GPU at the same time.

    `shared`: bytes of a block, static and dynamic; `registers` of a thread.
    """
    blocks = grid[0] * grid[1] * grid[2]
    most = resident_blocks(block[0] * block[1] * block[2], shared, registers)
    if blocks > most:
        raise CUDADriverError(
            "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE: too many blocks in cooperative launch: "
            f"{blocks} blocks, of which {most} fit on the GPU at the same time"
        )
