"""Launch a compiled kernel's machine code and count its instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from climb.bench.checking import compare, poisoned
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.toolchain import Compiled, disassemble, resources
from climb.toolchain.branch_targets import labels
from climb.validation.sass_interpreter.exchange import Shared
from climb.validation.sass_interpreter.operands import UnsupportedSass
from climb.validation.sass_interpreter.state import Memory, State, constants
from climb.validation.sass_interpreter.warps import Program, Warps


@dataclass(frozen=True)
class InstructionCount:
    """An instruction: the ``warps`` that executed it, their active ``threads``, and those ``on``, whose guard held."""

    offset: int
    text: str
    warps: int
    threads: int
    on: int


@dataclass(frozen=True)
class SassCounts:
    """The counts of one launch, in the order of the code.

    ``contested`` holds the offsets of the BSYNCs whose counts, and so the totals, may differ on a GPU
    (``Program.contested``).
    """

    instructions: tuple[InstructionCount, ...]
    contested: tuple[int, ...] = ()

    @property
    def warp_instructions(self) -> int:
        """smsp__inst_executed.sum"""
        return sum(one.warps for one in self.instructions)

    @property
    def thread_instructions(self) -> int:
        """smsp__thread_inst_executed.sum"""
        return sum(one.threads for one in self.instructions)

    @property
    def thread_instructions_on(self) -> int:
        """smsp__thread_inst_executed_pred_on.sum"""
        return sum(one.on for one in self.instructions)

    @property
    def totals(self) -> tuple[int, int, int]:
        """The instructions of warps, of threads, and of threads whose guard held."""
        return self.warp_instructions, self.thread_instructions, self.thread_instructions_on

    @property
    def lane_efficiency(self) -> float:
        """Active lanes per warp instruction, as a share of 32; nan where nothing ran."""
        return self.thread_instructions / (32 * self.warp_instructions) if self.warp_instructions else float("nan")

    @property
    def lane_efficiency_on(self) -> float:
        """The lane efficiency of the lanes whose guard held."""
        return self.thread_instructions_on / (32 * self.warp_instructions) if self.warp_instructions else float("nan")


def run_sass(
    compiled: Compiled,
    kernel: str,
    grid: Sequence[int],
    block: Sequence[int],
    args: Sequence[np.ndarray | np.generic],
    shared_bytes: int = 0,
) -> SassCounts:
    """Run the machine code of ``kernel`` (a name or a name expression) on NumPy arrays and scalars.

    ``shared_bytes`` is the dynamic shared memory. Arrays are copied in, and results are copied back. Raises
    UnsupportedSass, which names the instruction; IndexError for an access outside of every array; TypeError for an
    argument that is neither an array nor a scalar.
    """
    bad = next((type(one).__name__ for one in args if not isinstance(one, np.ndarray | np.generic)), None)
    if bad is not None:
        raise TypeError(f"an argument is a {bad}; expected NumPy arrays and scalars")
    shape = [tuple(int(n) for n in (*one, 1, 1)[:3]) for one in (grid, block)]
    memory = Memory([one for one in args if isinstance(one, np.ndarray)])
    addresses = iter(memory.addresses)
    packed = [np.uint64(next(addresses)).tobytes() if isinstance(one, np.ndarray) else one.tobytes() for one in args]
    program = Program.of(disassemble(compiled, kernel), labels(compiled, kernel))
    state = State(int(np.prod(shape[0])), int(np.prod(shape[1])))
    shared = Shared(state.blocks, resources(compiled, kernel).shared_bytes + shared_bytes)
    warps = Warps(program, state, constants(shape[0], shape[1], packed), memory, shared, *shape)
    warps.run()
    memory.copy_back()
    return SassCounts(
        tuple(
            InstructionCount(one.offset, str(one.instruction).split(None, 1)[1].strip(), *map(int, counts))
            for one, counts in zip(program.steps, warps.counts, strict=True)
        ),
        tuple(one.offset for one in program.contested),
    )


def sass_counts(bound: BoundRung, size: Size, seed: int = 0) -> SassCounts:
    """Run a rung's machine code on random inputs, as ``counters`` runs its PTX.

    Raises UnsupportedSass like ``run_sass``, and for a rung of several launches. Raises AssertionError if the results
    differ from the reference's: then the code was misinterpreted, and its counts mean nothing.
    """
    problem = bound.ladder.problem
    launches = bound.launches(size)
    if len(launches) != 1:
        raise UnsupportedSass(f"{bound.name}, which has several launches")
    inputs = bound.ladder.inputs(size, seed)
    arrays = {key: value.copy() for key, value in inputs.items()}
    arrays |= {one.name: poisoned(one.extents(size), one.dtype) for one in problem.outputs}
    args = [arrays[one] if isinstance(one, str) else one for one in launches[0].args]
    (one,) = launches
    done = run_sass(bound.compiled(size), one.kernel, one.grid, one.block, args, one.shared_mem)
    tolerance = problem.tolerance(size)
    for key, expected in problem.reference(inputs, size).items():
        found = compare(arrays[key], expected, tolerance)
        if found.wrong or not found.error <= tolerance:
            raise AssertionError(f"{bound.name}: the interpreted machine code computes a wrong {key}")
    return done
