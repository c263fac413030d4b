"""Theoretical occupancy: the warps of a kernel that fit on an SM at a time, and the resource that limits them.

An SM takes a block whole or not at all. It has four budgets: block slots, warp slots, registers and shared memory. A
block's demands are rounded up to the units of allocation; each budget then allows some number of blocks, and the
smallest of the four numbers is the limit.

The limits come from the CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability", and its
sections on the shared memory of each architecture (carve-outs, the kilobyte that the system keeps in every block). The
units of allocation come from NVIDIA's occupancy calculator in Nsight Compute.
"""

from __future__ import annotations

from dataclasses import dataclass

from climb.toolchain.compilation import Compiled
from climb.toolchain.sass import resources

WARP = 32
KB = 1024
#: Registers are allocated to a warp in units of this many; each scheduler has a quarter of the SM's register file.
REGISTER_UNIT, SCHEDULERS = 256, 4
REGISTERS_PER_SM, REGISTERS_PER_BLOCK, REGISTERS_PER_THREAD = 64 * KB, 64 * KB, 255
THREADS_PER_BLOCK = 1024


class CannotLaunch(ValueError):
    """A block that no SM of the architecture can hold, or an impossible one; the message says what it exceeds."""


@dataclass(frozen=True)
class Multiprocessor:
    """The resources of one SM of a compute capability.

    ``carveouts`` are the sizes, in bytes, of shared memory that the driver can carve out of the array shared with L1.
    Shared memory is allocated in units of ``shared_unit`` bytes; the system keeps ``reserved_shared`` bytes per block.
    """

    capability: str
    warps: int
    blocks: int
    shared_per_block: int
    carveouts: tuple[int, ...]
    shared_unit: int = 128
    reserved_shared: int = KB

    @property
    def shared(self) -> int:
        """The most shared memory of an SM, in bytes."""
        return max(self.carveouts)

    @property
    def threads(self) -> int:
        return WARP * self.warps


def _kilobytes(*sizes: int) -> tuple[int, ...]:
    return tuple(KB * size for size in sizes)


_TO_100 = _kilobytes(0, 8, 16, 32, 64, 100)
_TO_164 = (*_TO_100, *_kilobytes(132, 164))
_TO_228 = (*_TO_164, *_kilobytes(196, 228))
#: By architecture, as the compiler names it.
MULTIPROCESSORS: dict[str, Multiprocessor] = {
    "sm_75": Multiprocessor("7.5", 32, 16, 64 * KB, _kilobytes(32, 64), shared_unit=256, reserved_shared=0),
    "sm_80": Multiprocessor("8.0", 64, 32, 163 * KB, _TO_164),
    "sm_86": Multiprocessor("8.6", 48, 16, 99 * KB, _TO_100),
    "sm_87": Multiprocessor("8.7", 48, 16, 163 * KB, _TO_164),
    "sm_89": Multiprocessor("8.9", 48, 24, 99 * KB, _TO_100),
    "sm_90": Multiprocessor("9.0", 64, 32, 227 * KB, _TO_228),
    "sm_100": Multiprocessor("10.0", 64, 32, 227 * KB, _TO_228),
    "sm_120": Multiprocessor("12.0", 48, 24, 99 * KB, _TO_100),
}


@dataclass(frozen=True)
class Occupancy:
    """The number of blocks of one kernel that fit on an SM; ``limits`` gives the number that each resource alone
    allows."""

    multiprocessor: Multiprocessor
    warps_per_block: int
    limits: dict[str, int]
    registers_per_warp: int
    shared_per_block: int

    @property
    def blocks(self) -> int:
        """Blocks on an SM at a time."""
        return min(self.limits.values())

    @property
    def warps(self) -> int:
        """Warps on an SM at a time."""
        return self.blocks * self.warps_per_block

    @property
    def fraction(self) -> float:
        """The share of the SM's warp slots that is used, from 0 to 1."""
        return self.warps / self.multiprocessor.warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no further block: one or more of warps, blocks, registers, shared memory."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)

    def __str__(self) -> str:
        each = ", ".join(f"{name} {blocks}" for name, blocks in self.limits.items())
        return (
            f"{self.blocks} blocks of {self.warps_per_block} warps: {self.warps} of {self.multiprocessor.warps} warps, "
            f"{100 * self.fraction:.4g} %, by {' and '.join(self.limited_by)} (blocks by each: {each})"
        )


def occupancy_of(
    registers: int, shared: int, threads: int, arch: str = "sm_90", *, carveout: int | None = None
) -> Occupancy:
    """Compute the occupancy of a kernel from its registers per thread, shared memory and threads per block.

    ``shared`` is in bytes, static and dynamic. ``carveout`` is the shared memory, in bytes, that the SM is configured
    with; by default the most that the architecture has, which the driver chooses when a kernel's blocks need it. Raises
    CannotLaunch for a block that the architecture cannot hold, KeyError for one that is not in ``MULTIPROCESSORS``.
    """
    sm = MULTIPROCESSORS[arch]
    _check(registers, shared, threads, sm, carveout)
    warps = _pieces(threads, WARP)
    per_warp = _round_up(registers * WARP, REGISTER_UNIT)
    block_shared = _round_up(shared + sm.reserved_shared, sm.shared_unit)
    # A scheduler's quarter of the register file holds whole warps; no other scheduler can use the rest.
    warps_by_registers = SCHEDULERS * (REGISTERS_PER_SM // SCHEDULERS // per_warp) if per_warp else sm.warps
    available = sm.shared if carveout is None else carveout
    limits = {
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
        "registers": warps_by_registers // warps,
        "shared memory": available // block_shared if block_shared else sm.blocks,
    }
    return Occupancy(sm, warps, limits, per_warp, block_shared)


def refusal(threads: int, shared: int, arch: str = "sm_90") -> str | None:
    """Explain why a block with these threads and bytes of dynamic shared memory cannot be launched; None if it can.

    Rungs whose size gives both use it as their ``requires``.
    """
    if not 1 <= threads <= THREADS_PER_BLOCK:
        return f"1 to {THREADS_PER_BLOCK} threads per block"
    most = MULTIPROCESSORS[arch].shared_per_block
    return None if 0 <= shared <= most else f"0 to {most} bytes of dynamic shared memory per block"


def kernel_occupancy(
    compiled: Compiled, name: str, threads: int, dynamic_shared: int = 0, *, carveout: int | None = None
) -> Occupancy:
    """Compute the occupancy of a compiled kernel: registers and static shared memory are read from its cubin.

    Raises CannotLaunch, and the errors of ``climb.toolchain.resources``.
    """
    takes = resources(compiled, name)
    shared = takes.shared_bytes + dynamic_shared
    return occupancy_of(takes.registers, shared, threads, compiled.arch, carveout=carveout)


def _check(registers: int, shared: int, threads: int, sm: Multiprocessor, carveout: int | None) -> None:
    demands = (
        ("threads per block", threads, 1, THREADS_PER_BLOCK),
        ("registers per thread", registers, 0, REGISTERS_PER_THREAD),
        ("bytes of shared memory per block", shared, 0, sm.shared_per_block),
    )
    for what, value, least, most in demands:
        if not least <= value <= most:
            raise CannotLaunch(f"{value} {what}; compute capability {sm.capability} takes {least} to {most}")
    if carveout is not None and carveout not in sm.carveouts:
        sizes = ", ".join(f"{size // KB}" for size in sm.carveouts)
        raise CannotLaunch(f"{carveout} bytes are no carve-out of {sm.capability}; it has {sizes} KB")
    # Registers are allocated by warp, equally to each scheduler, so the warps of a block count in fours.
    file = _round_up(_pieces(threads, WARP), SCHEDULERS) * _round_up(registers * WARP, REGISTER_UNIT)
    if file > REGISTERS_PER_BLOCK:
        raise CannotLaunch(f"{threads} threads of {registers} registers need {file}; a block has {REGISTERS_PER_BLOCK}")


def _pieces(amount: int, unit: int) -> int:
    return -(-amount // unit)


def _round_up(amount: int, unit: int) -> int:
    return _pieces(amount, unit) * unit
