"""Named barriers: tell them apart from `__syncthreads()` by a separate opcode.

`bar.sync n` with n other than 0, every form with a number of threads, and every `arrive` can be reached by some threads
of a block at different places of the program. `__syncthreads()` is `bar.sync 0`: CUDA requires all threads of the block
to reach it at one place, and the emulator enforces that.
"""

from __future__ import annotations

from dataclasses import replace

from . import model as ptx

BARRIERS = 16  # named barriers of a block, 0 to 15
PREFIX = "named."
_OPCODES = ("bar.", "barrier.")
_OTHERS = ("bar.warp.", "barrier.cluster.")


def name_barriers(function: ptx.Function) -> ptx.Function:
    """Return the function with `PREFIX` before the opcode of every named barrier."""

    def one(item: ptx.Instruction | ptx.Label) -> ptx.Instruction | ptx.Label:
        if not isinstance(item, ptx.Instruction) or not item.opcode.startswith(_OPCODES):
            return item
        if item.opcode.startswith(_OTHERS):
            return item
        operands = item.operands[".red." in item.opcode :]
        values = len(operands) - (".red." in item.opcode)
        if ".arrive" not in item.opcode and values == 1 and operands[0] == ptx.Immediate(0):
            return item
        return replace(item, opcode=PREFIX + item.opcode)

    return replace(function, body=[one(item) for item in function.body])
