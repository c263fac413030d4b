"""Widened loads, and the bytes of them that the source requests.

The compiler states it in ``.pragma "used_bytes_mask"``. NVRTC 12.9 has been seen to state too little: from the same
source, one run in many left out an element that a later instruction reads. So an element is used as well if its
register is read anywhere in the function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .model import TYPE_BYTES, Address, Arguments, Instruction, Label, Negated, Operand, Pair, Register, Vector

#: Instructions without a destination: they read their first operand too.
_NO_DESTINATION = ("st.", "red.", "bar.", "barrier.", "bra", "brx.", "call", "trap", "cp.", "mbarrier.", "sust.")


def with_registers_that_are_read(body: Iterable[Instruction | Label]) -> list[Instruction | Label]:
    """Return the body, where the mask of each widened load covers every element whose register is read."""
    statements = list(body)
    if not any(isinstance(one, Instruction) and one.used is not None for one in statements):
        return statements
    read: set[str] = set()
    for one in statements:
        if isinstance(one, Instruction):
            read.update(_reads(one))
    return [
        replace(one, used=_covering(one, read)) if isinstance(one, Instruction) and one.used is not None else one
        for one in statements
    ]


def _reads(instruction: Instruction) -> Iterator[str]:
    """Return the registers that an instruction reads, possibly with some that it only writes."""
    if instruction.guard:
        yield instruction.guard[0].name
    reads_first = instruction.opcode.startswith(_NO_DESTINATION)
    for operand in instruction.operands if reads_first else instruction.operands[1:]:
        yield from _registers(operand)
    if not reads_first and instruction.operands and isinstance(instruction.operands[0], Address):
        yield from _registers(instruction.operands[0])


def _registers(operand: Operand | None) -> Iterator[str]:
    match operand:
        case Register(name):
            yield name
        case Vector(items) | Arguments(items):
            for item in items:
                yield from _registers(item)
        case Pair(first, second):
            yield from _registers(first)
            yield from _registers(second)
        case Negated(register):
            yield register.name
        case Address(base, _, extra):
            yield from _registers(base)
            for item in extra:
                yield from _registers(item)


def _covering(load: Instruction, read: set[str]) -> int:
    target, assumed = load.operands[0], load.used or 0
    items = target.items if isinstance(target, Vector) else (target,)
    each = TYPE_BYTES[load.opcode.rsplit(".", 1)[-1]]
    for index, item in enumerate(items):
        whole = (1 << each) - 1 << index * each
        if isinstance(item, Register) and item.name in read and not assumed & whole:
            assumed |= whole
    return assumed
