"""The register banks that hold the operands of machine instructions: if a bank must deliver two, a cycle is lost.

The registers of a scheduler lie in two banks, even ones in one and odd ones in the other (Jia, Maggioni, Staiger,
Scarpazza: "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018). The ladder ``fma`` shows that on
compute capability 9.0 a bank delivers one register of a warp per cycle. An operand with ``.reuse`` stays in a small
cache of its slot, and the next instruction that names the same register in the same slot need not read it. NVIDIA
documents none of this: it is a model, checked by the times of ``fma``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from climb.toolchain.branch_targets import labels
from climb.toolchain.compilation import Compiled
from climb.toolchain.sass import Instruction, disassemble

_REGISTER = re.compile(r"\bR(\d+)\b")
_LABEL = re.compile(r"\.L_\w+")
BANKS = 2


@dataclass(frozen=True)
class BankReads:
    """The register bank reads of one kind of instruction, each instruction counted once.

    ``reads`` are registers that no operand cache holds. ``lost_cycles`` are the cycles beyond the first that the busier
    bank needs. ``three_in_one_bank`` counts instructions that read three registers of one bank.
    """

    instructions: int
    reads: int
    lost_cycles: int
    three_in_one_bank: int

    @property
    def lost_per_instruction(self) -> float:
        """Cycles lost per instruction, 0 where there is none."""
        return self.lost_cycles / self.instructions if self.instructions else 0.0

    @property
    def pipe_share(self) -> float:
        """The share of cycles in which these instructions can start if only their operands hold them up."""
        return 1 / (1 + self.lost_per_instruction)


def bank_reads(code: Iterable[Instruction], mnemonic: str = "FFMA") -> BankReads:
    """Count the registers that the instructions ``mnemonic`` read from the banks, in the order of ``code``.

    The other instructions matter only for the operand cache: one that uses a slot replaces the slot's content.
    """
    cached: dict[int, int] = {}
    instructions = reads = lost = three = 0
    for instruction in code:
        from_banks: set[int] = set()
        for slot, (register, reuse) in _sources(instruction).items():
            if cached.pop(slot, None) != register:
                from_banks.add(register)
            if reuse:
                cached[slot] = register
        if instruction.mnemonic == mnemonic:
            busiest = max(Counter(register % BANKS for register in from_banks).values(), default=0)
            instructions += 1
            reads += len(from_banks)
            lost += max(busiest - 1, 0)
            three += busiest == 3
    return BankReads(instructions, reads, lost, three)


def main_loop(compiled: Compiled, name: str, mnemonic: str = "FFMA") -> tuple[Instruction, ...]:
    """Return the loop of kernel ``name`` with the most instructions ``mnemonic``, the innermost of those that share
    them.

    A kernel without such a loop gives all of its instructions. Raises like ``disassemble``.
    """
    code, places = disassemble(compiled, name), labels(compiled, name)
    loops = [code]
    for at, instruction in enumerate(code):
        label = _LABEL.search(instruction.operands) if instruction.mnemonic == "BRA" else None
        if label and places.get(label[0], instruction.offset + 1) <= instruction.offset:
            loops.append(tuple(i for i in code[: at + 1] if i.offset >= places[label[0]]))
    found = [loop for loop in loops[1:] if _count(loop, mnemonic)] or loops[:1]
    return max(found, key=lambda loop: (_count(loop, mnemonic), -len(loop)))


def _count(code: Sequence[Instruction], mnemonic: str) -> int:
    return sum(instruction.mnemonic == mnemonic for instruction in code)


def _sources(instruction: Instruction) -> dict[int, tuple[int, bool]]:
    """Return the registers that an instruction reads, by slot, and whether each stays in the operand cache.

    The first operand is taken for the result, unless it is an address: stores read all of theirs.
    """
    operands = [operand.strip() for operand in instruction.operands.split(",")]
    first = 0 if operands[0].startswith(("[", "desc")) else 1
    found = {}
    for slot, operand in enumerate(operands[first:]):
        if register := _REGISTER.search(operand):
            found[slot] = (int(register[1]), ".reuse" in operand)
    return found
