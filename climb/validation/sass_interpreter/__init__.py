"""Run a kernel's SASS on a CPU and count the warps and lanes that execute each instruction.

The emulator runs PTX, and its lanes are those of PTX. ptxas turns short branches into predicated instructions, unrolls
loops and moves code, so a GPU executes and counts other instructions. Here those run, from an allow-list of opcodes
(``operations``, ``warps``) that covers kernels that compute, branch and vote; any other opcode is refused by name.

``run_sass(compiled, kernel, grid, block, args)`` returns ``SassCounts`` in the terms of Nsight Compute, and writes the
results into the arrays. Results that equal the PTX's show that the code was interpreted correctly.
"""

from __future__ import annotations

from climb.validation.sass_interpreter.operands import UnsupportedSass
from climb.validation.sass_interpreter.running import InstructionCount, SassCounts, run_sass, sass_counts

__all__ = ["InstructionCount", "SassCounts", "UnsupportedSass", "run_sass", "sass_counts"]
