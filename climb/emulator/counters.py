"""What a launch did, per source line and in total, in the terms of Nsight Compute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .marks import Mark

T = TypeVar("T")


@dataclass(frozen=True)
class AccessCounters:
    """All accesses of one kind and width on one source line.

    `kind`: "global load", "shared store", ... `width`: bytes per lane. `requests`: warp instructions with at least one
    active lane. `lanes`: active lanes. `sectors`: distinct 32-byte sectors, summed over requests; `ideal_sectors`: the
    fewest that could carry the distinct bytes. `wavefronts`: passes over the 32 banks of shared memory;
    `ideal_wavefronts`: without conflicts.
    `same_address`: of atomics, the lanes that found another lane of their warp at their address before them.
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
        """Nan where there were no requests."""
        return self.sectors / self.requests if self.requests else float("nan")

    @property
    def wavefronts_per_request(self) -> float:
        """Nan where there were no requests."""
        return self.wavefronts / self.requests if self.requests else float("nan")

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond the fewest possible."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def bytes(self) -> int:
        """What the lanes asked for."""
        return self.lanes * self.width


@dataclass(frozen=True)
class BranchCounters:
    """Conditional branches on one source line: warps that executed them, and those whose lanes then went both ways."""

    file: str
    line: int
    text: str
    branches: int
    divergent_branches: int


ACCESS_SUMS = ("requests", "lanes", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts", "same_address")
BRANCH_SUMS = ("branches", "divergent_branches")
TOTALS = ("warp_instructions", "thread_instructions", "branches", "divergent_branches", "barriers")


def _sum(a: T, b: T, names: tuple[str, ...]) -> T:
    """`a` with the named fields increased by those of `b`."""
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in names})


@dataclass(frozen=True)
class Counters:
    """Of one launch. `lines` are in the order of the source; `barriers` counts blocks passing a barrier. `files`:
    the lines of each source file that is known. `marks`: where the machine code accesses memory otherwise, if asked
    for.

    `warp_instructions` are PTX instructions issued to a warp, `thread_instructions` to its active lanes. PTX is not the
    machine code: totals of instructions and branches compare kernels, they are not those of Nsight Compute.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lines: tuple[AccessCounters, ...]
    branch_lines: tuple[BranchCounters, ...] = ()
    warp_instructions: int = 0
    thread_instructions: int = 0
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    files: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)
    marks: tuple[Mark, ...] = field(default=(), repr=False, compare=False)

    @property
    def lane_efficiency(self) -> float:
        """Active lanes per warp instruction, of 32; nan where nothing ran."""
        if not self.warp_instructions:
            return float("nan")
        return self.thread_instructions / (32 * self.warp_instructions)

    def total(self, kind: str) -> AccessCounters:
        """The sum over all lines of a kind, such as "global load"; `width` is 0 where lines differ."""
        found = self._by_kind.get(kind, ())
        widths = {one.width for one in found}
        sums = {name: sum(getattr(one, name) for one in found) for name in ACCESS_SUMS}
        return AccessCounters("", 0, "", kind, widths.pop() if len(widths) == 1 else 0, **sums)

    def __add__(self, other: Counters) -> Counters:
        """Two launches together, as one after the other; kernel, grid and block stay where they are equal."""
        lines: dict[tuple, AccessCounters] = {}
        for one in self.lines + other.lines:
            key = (one.file, one.line, one.kind, one.width)
            lines[key] = _sum(lines[key], one, ACCESS_SUMS) if key in lines else one
        branches: dict[tuple, BranchCounters] = {}
        for each in self.branch_lines + other.branch_lines:
            where = (each.file, each.line)
            branches[where] = _sum(branches[where], each, BRANCH_SUMS) if where in branches else each
        return Counters(
            self.kernel if self.kernel == other.kernel else f"{self.kernel} + {other.kernel}",
            self.grid if self.grid == other.grid else (0, 0, 0),
            self.block if self.block == other.block else (0, 0, 0),
            tuple(lines[key] for key in sorted(lines)),
            tuple(branches[key] for key in sorted(branches)),
            **{name: getattr(self, name) + getattr(other, name) for name in TOTALS},
            files={**self.files, **other.files},
            marks=tuple(dict.fromkeys(self.marks + other.marks)),
        )

    @cached_property
    def _by_kind(self) -> dict[str, list[AccessCounters]]:
        out: dict[str, list[AccessCounters]] = {}
        for one in self.lines:
            out.setdefault(one.kind, []).append(one)
        return out

    def __str__(self) -> str:
        from .report import table

        return table(self)
