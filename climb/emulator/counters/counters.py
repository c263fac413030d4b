"""The counters of a launch, per source line and in total, in the terms of Nsight Compute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from climb.toolchain.names import demangled

from .lines import AccessCounters, BranchCounters, ExecutionCounters, ProductCounters
from .marks import Mark
from .report import table

T = TypeVar("T")


ACCESS_SUMS = ("requests", "lanes", "sectors", "ideal_sectors", "wavefronts", "ideal_wavefronts", "same_address")
BRANCH_SUMS = ("branches", "divergent_branches")
PRODUCT_SUMS = ("instructions", "flops")
EXECUTION_SUMS = ("warp_instructions", "thread_instructions")
TOTALS = ("warp_instructions", "thread_instructions", "branches", "divergent_branches", "barriers")


def _sum(a: T, b: T, names: tuple[str, ...]) -> T:
    """Return `a` with the named fields increased by those of `b`."""
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in names})


@dataclass(frozen=True)
class Counters:
    """The counters of one launch. `lines` are in source order; `barriers` counts blocks that pass a barrier.

    `files` holds the lines of each known source file. `compared` makes `marks` at their first use. `notes` are findings
    that are not faults, such as memory left allocated. `product_lines` counts matrix products, line by line;
    `execution_lines` instructions.

    `warp_instructions` counts PTX instructions issued to a warp, `thread_instructions` those of its active lanes. PTX
    is not machine code: totals of instructions and branches compare kernels, but do not predict Nsight Compute's.
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
    compared: Callable[[], tuple[Mark, ...]] = field(default=tuple, repr=False, compare=False)
    product_lines: tuple[ProductCounters, ...] = ()
    notes: tuple[str, ...] = field(default=(), repr=False, compare=False)
    execution_lines: tuple[ExecutionCounters, ...] = field(default=(), repr=False)

    @cached_property
    def marks(self) -> tuple[Mark, ...]:
        """The places where the machine code accesses memory differently from the PTX; empty if the launch did not ask
        for it.

        Computing them compiles and disassembles machine code, which takes longer than most launches. Raises
        CompileError if ptxas refuses the PTX.
        """
        return self.compared()

    @property
    def lane_efficiency(self) -> float:
        """The share of the 32 lanes that is active, averaged over warp instructions; NaN if nothing ran."""
        if not self.warp_instructions:
            return float("nan")
        return self.thread_instructions / (32 * self.warp_instructions)

    def total(self, kind: str) -> AccessCounters:
        """Sum all lines of a kind, such as "global load"; `width` is 0 if the lines differ in it."""
        found = self._by_kind.get(kind, ())
        widths = {one.width for one in found}
        sums = {name: sum(getattr(one, name) for one in found) for name in ACCESS_SUMS}
        return AccessCounters("", 0, "", kind, widths.pop() if len(widths) == 1 else 0, **sums)

    def __add__(self, other: Counters) -> Counters:
        """Add the counters of two launches; grid and block become (0, 0, 0) if they differ."""
        lines: dict[tuple, AccessCounters] = {}
        for one in self.lines + other.lines:
            key = (one.file, one.line, one.kind, one.width)
            lines[key] = _sum(lines[key], one, ACCESS_SUMS) if key in lines else one
        branches: dict[tuple, BranchCounters] = {}
        for each in self.branch_lines + other.branch_lines:
            where = (each.file, each.line)
            branches[where] = _sum(branches[where], each, BRANCH_SUMS) if where in branches else each
        products: dict[tuple, ProductCounters] = {}
        for one in self.product_lines + other.product_lines:
            key = (one.file, one.line, one.instruction)
            products[key] = _sum(products[key], one, PRODUCT_SUMS) if key in products else one
        executions: dict[tuple, ExecutionCounters] = {}
        for line in self.execution_lines + other.execution_lines:
            where = (line.file, line.line)
            executions[where] = _sum(executions[where], line, EXECUTION_SUMS) if where in executions else line
        return Counters(
            self.kernel if self.kernel == other.kernel else f"{self.kernel} + {other.kernel}",
            self.grid if self.grid == other.grid else (0, 0, 0),
            self.block if self.block == other.block else (0, 0, 0),
            tuple(lines[key] for key in sorted(lines)),
            tuple(branches[key] for key in sorted(branches)),
            **{name: getattr(self, name) + getattr(other, name) for name in TOTALS},
            files={**self.files, **other.files},
            compared=lambda: tuple(dict.fromkeys(self.marks + other.marks)),
            product_lines=tuple(products[key] for key in sorted(products)),
            notes=tuple(dict.fromkeys(self.notes + other.notes)),
            execution_lines=tuple(executions[key] for key in sorted(executions)),
        )

    @cached_property
    def _by_kind(self) -> dict[str, list[AccessCounters]]:
        out: dict[str, list[AccessCounters]] = {}
        for one in self.lines:
            out.setdefault(one.kind, []).append(one)
        return out

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, each)) for each in (self.grid, self.block))
        totals = (
            f"warp instructions {self.warp_instructions}, thread instructions {self.thread_instructions}, "
            f"lane efficiency {self.lane_efficiency:.1%}",
            f"branches {self.branches}, divergent {self.divergent_branches}, barriers {self.barriers}",
            *(
                f"line {one.line}: {one.instructions} {one.instruction}, {one.flops} operations"
                for one in self.product_lines
            ),
        )
        kernel = " + ".join(demangled(name) for name in self.kernel.split(" + "))
        return table(f"{kernel}: grid {grid}, block {block}", self.lines, totals, self.marks, self.notes)
