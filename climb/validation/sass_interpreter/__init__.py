"""Machine code on a CPU: which warps, and which of their lanes, execute each instruction that ptxas has made.

The emulator runs PTX, and its lanes are those of PTX. ptxas makes predicated instructions of short branches, unrolls
loops and moves code, so that what a GPU counts are other instructions. Here those run: an allow-list of opcodes
(``operations``, ``warps``), enough for kernels that compute, branch and vote; any other kernel is refused by name.

``run_sass(compiled, kernel, grid, block, args)`` gives ``SassCounts`` in the terms of Nsight Compute, and leaves
in the arrays what the machine code has written: that it is what the PTX writes shows that the code was read aright.
"""

from __future__ import annotations

from climb.validation.sass_interpreter.operands import UnsupportedSass
from climb.validation.sass_interpreter.running import InstructionCount, SassCounts, run_sass, sass_counts

__all__ = ["InstructionCount", "SassCounts", "UnsupportedSass", "run_sass", "sass_counts"]
