"""Counters of one source line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AccessCounters:
    """All accesses of one kind and width on one source line.

    `kind`: "global load", "shared store", ... `width`: bytes per lane. `requests`: warp instructions with at least one
    active lane. `lanes`: active lanes. `sectors`: distinct 32-byte sectors, summed over requests; `ideal_sectors`: the
    fewest that could carry the distinct bytes. `wavefronts`: passes over the 32 banks of shared memory;
    `ideal_wavefronts`: the same without conflicts. `same_address`: for atomics, the lanes that share their address with
    an earlier lane of their warp. For the copy engine ("tma load", "tma store", "tma atomic") requests are
    instructions, and `lanes` are bytes of global memory, each of width 1. "matrix load": wgmma's reads of operands in
    shared memory, in pieces of 16 bytes.
    """

    file: str
    line: int
    text: str
    kind: str
    width: int
    requests: int
    lanes: int
    sectors: int = 0
    ideal_sectors: int = 0
    wavefronts: int = 0
    ideal_wavefronts: int = 0
    same_address: int = 0

    @property
    def sectors_per_request(self) -> float:
        """The mean number of sectors per request; NaN if there were no requests."""
        return self.sectors / self.requests if self.requests else float("nan")

    @property
    def wavefronts_per_request(self) -> float:
        """The mean number of wavefronts per request; NaN if there were no requests."""
        return self.wavefronts / self.requests if self.requests else float("nan")

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond the fewest possible."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def bytes(self) -> int:
        """The bytes that the lanes requested."""
        return self.lanes * self.width


@dataclass(frozen=True)
class BranchCounters:
    """Conditional branches on one source line: warps that executed them, and warps that diverged at them."""

    file: str
    line: int
    text: str
    branches: int
    divergent_branches: int


@dataclass(frozen=True)
class ExecutionCounters:
    """The PTX instructions that one source line became: how often warps issued them, and lanes executed them.

    `warp_instructions`: instructions issued to a warp. `thread_instructions`: those of its active lanes.
    """

    file: str
    line: int
    warp_instructions: int
    thread_instructions: int

    @property
    def lane_efficiency(self) -> float:
        """The share of the 32 lanes that is active, averaged over warp instructions; NaN if nothing ran."""
        return self.thread_instructions / (32 * self.warp_instructions) if self.warp_instructions else float("nan")


@dataclass(frozen=True)
class ProductCounters:
    """Matrix products of one kind on one source line. `instruction`: "mma.m16n8k16.f32.f16.f16.f32", as its opcode.

    `instructions` counts one for each warp, also for wgmma, which four warps issue together. `flops`: multiplications
    and additions, of integers too. Nsight Compute's inst_executed_pipe_tensor is the same, unless ptxas makes several
    machine instructions from one (8-bit floats of mma.sync, wmma); so is ops_path_tensor.
    """

    file: str
    line: int
    text: str
    instruction: str
    instructions: int
    flops: int
