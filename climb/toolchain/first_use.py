"""The place where a warp waits for a load: the first machine instruction that needs the loaded value.

A load does not stop a warp. The warp goes on until an instruction needs the register that the load fills, and waits
there. So a profiler's samples of waiting are on the instruction that *uses* the value, in a later line than the load.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from climb.toolchain.sass import Instruction

_REGISTER = re.compile(r"\bR(\d+)\b((?:\.\w+)*)")
_WORDS = {"64": 2, "128": 4}
#: Instructions whose first operand is not a result.
_WITHOUT_RESULT = ("ST", "RED", "BAR", "BRA", "EXIT", "BSSY", "BSYNC", "WARPSYNC", "MEMBAR", "NOP", "UTMA")


@dataclass(frozen=True)
class FirstUse:
    """A load, the first instruction after it that needs its result, and the number of loads issued up to there."""

    load: Instruction
    use: Instruction
    in_flight: int


def first_uses(instructions: Sequence[Instruction], mnemonic: str = "LDG") -> list[FirstUse]:
    """List the first use of each load, in the order of the machine code.

    The code is read from top to bottom: a use that comes earlier in the listing, in the next turn of a loop, is not
    found, and neither is a load whose register is overwritten first. ``in_flight`` counts the loads of this kind from
    the load on that are issued before its first use.
    """
    found = []
    for at, load in enumerate(instructions):
        if load.mnemonic != mnemonic:
            continue
        waiting = _results(load)
        loads = 1
        for later in instructions[at + 1 :]:
            if waiting & _sources(later):
                found.append(FirstUse(load, later, loads))
                break
            if not later.predicate:
                waiting -= _results(later)
            if not waiting:
                break
            loads += later.mnemonic == mnemonic
    return found


def _results(instruction: Instruction) -> set[int]:
    """Return the numbers of the registers that an instruction writes."""
    if instruction.mnemonic.startswith(_WITHOUT_RESULT):
        return set()
    first = _REGISTER.match(instruction.operands.split(",")[0].strip())
    if first is None:
        return set()
    parts = instruction.opcode.split(".")
    words = max((_WORDS.get(part, 1) for part in parts), default=1) if parts[0] in ("LDG", "LDS", "LD", "LDC") else 1
    words = 2 if "WIDE" in parts else words
    return set(range(int(first[1]), int(first[1]) + words))


def _sources(instruction: Instruction) -> set[int]:
    """Return the numbers of the registers that an instruction reads; those of a 64-bit address are two."""
    operands = instruction.operands
    stored = instruction.mnemonic.startswith(_WITHOUT_RESULT)
    read = operands if stored or _REGISTER.match(operands) is None else operands.partition(",")[2]
    numbers = set()
    for match in _REGISTER.finditer(read):
        first = int(match[1])
        numbers |= {first, first + 1} if ".64" in match[2] else {first}
    if stored:
        words = max((_WORDS.get(part, 1) for part in instruction.opcode.split(".")), default=1)
        if words > 1 and (value := _REGISTER.search(operands.rpartition(",")[2])):
            numbers |= set(range(int(value[1]), int(value[1]) + words))
    return numbers
