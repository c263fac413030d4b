"""What a launch may ask for: the limits of compute capability 9.0, and the checks that the CUDA driver makes.

The figures are those of the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

from typing import Any

from climb.fake_cupy.cuda import CUDADriverError

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
#: Shared memory of a block in bytes: without asking for more, and the most that a kernel can ask for.
SHARED_BYTES = 48 * 1024
SHARED_BYTES_OPT_IN = 227 * 1024
REGISTERS = 64 * 1024
WARP = 32
#: Registers are given to a warp in pieces of this many.
REGISTER_PIECE = 256


def dim3(dims: Any, what: str) -> tuple[int, int, int]:
    """`dims`, a tuple of one to three positive integers, as three. Raises TypeError, CUDADriverError."""
    if not isinstance(dims, tuple):
        raise TypeError(f"{what} is a tuple, here {_article(type(dims).__name__)}: {what}=({dims},)")
    if not 1 <= len(dims) <= 3 or not all(hasattr(d, "__index__") and not isinstance(d, bool) for d in dims):
        raise TypeError(f"{what} is one to three whole numbers, not {dims!r}")
    x, y, z = (*(int(d) for d in dims), 1, 1)[:3]
    if min(x, y, z) < 1:
        raise invalid_value(f"{what} is {dims}; every extent must be at least 1")
    return x, y, z


def check_extents(grid: tuple[int, int, int], block: tuple[int, int, int], bound: int) -> None:
    """Raise CUDADriverError for a grid or block that the hardware has not, or over the kernel's launch bound."""
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
    """Raise CUDADriverError for more dynamic shared memory than the kernel was given leave for."""
    if dynamic < 0:
        raise invalid_value(f"shared_mem is {dynamic}; it is a number of bytes")
    if dynamic > allowed:
        besides = f" besides the {static} that it declares" if static else ""
        more = SHARED_BYTES_OPT_IN - static
        advice = (
            f"kernel.max_dynamic_shared_size_bytes = {dynamic} asks for more first"
            if dynamic <= more
            else f"even when asked for, there are at most {more}"
        )
        raise invalid_value(
            f"shared_mem is {dynamic} bytes; a block of this kernel may have {allowed}{besides}; {advice}"
        )


def check_opt_in(dynamic: int, static: int) -> None:
    """Raise CUDADriverError for a `max_dynamic_shared_size_bytes` that the hardware has not."""
    if not 0 <= dynamic <= SHARED_BYTES_OPT_IN - static:
        raise invalid_value(
            f"max_dynamic_shared_size_bytes = {dynamic}; a block has {SHARED_BYTES_OPT_IN} bytes of shared memory"
            + (f", of which the kernel declares {static}" if static else "")
        )


def check_registers(registers: int, block: tuple[int, int, int]) -> None:
    """Raise CUDADriverError if a block does not fit into the registers of a multiprocessor."""
    threads = block[0] * block[1] * block[2]
    warps = -(-threads // WARP)
    per_warp = -(-registers * WARP // REGISTER_PIECE) * REGISTER_PIECE
    if warps * per_warp > REGISTERS:
        raise CUDADriverError(
            "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: too many resources requested for launch: "
            f"{threads} threads of {registers} registers need {warps * per_warp}, a multiprocessor has {REGISTERS}; "
            "take a smaller block, or __launch_bounds__ so that the compiler uses fewer"
        )


def invalid_value(what: str) -> CUDADriverError:
    return CUDADriverError(f"CUDA_ERROR_INVALID_VALUE: invalid argument: {what}")


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
