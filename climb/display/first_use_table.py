"""A table of the lines in which a kernel's warps wait for its loads."""

from __future__ import annotations

from typing import Any

from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.display.cell_output import CellOutput, Code, table
from climb.toolchain import Compiled, Instruction, disassemble
from climb.toolchain.first_use import first_uses


def first_use_table(rung: BoundRung | Compiled, launched: Size | str, mnemonic: str = "LDG") -> CellOutput:
    """List for each pair of source lines: the line that loads, the line that needs the value, the loads in flight by
    then.

    ``launched`` is a rung's size, whose last kernel is shown, or the name of a kernel of compiled code. ``mnemonic`` is
    the load as machine code names it: LDG for global memory, LDS for shared memory.
    """
    if isinstance(rung, BoundRung):
        compiled, kernel = rung.compiled(launched), rung.launches(launched)[-1].kernel
    else:
        compiled, kernel = rung, str(launched)
    found: dict[tuple[str, str, str], int] = {}
    for pair in first_uses(disassemble(compiled, kernel), mnemonic):
        lines = (_text(compiled, pair.load), _text(compiled, pair.use), pair.use.mnemonic)
        found[lines] = max(found.get(lines, 0), pair.in_flight)
    rows: list[list[Any]] = []
    for (load, use, opcode), flying in found.items():
        rows += [["loads", Code(load)], [f"waits, in {opcode}", Code(use)], ["loads in flight", str(flying)]]
    return table(rows, ["", "source line"])


def _text(compiled: Compiled, instruction: Instruction) -> str:
    """Return the source line of an instruction, with its number."""
    lines = compiled.sources[instruction.file].splitlines()
    return f"{instruction.line}: {lines[instruction.line - 1].strip()}"
