"""Registers of asynchronous matrix products: find the instructions that use registers of a product that may be in
flight.

wgmma.mma_async reads the registers of a, and reads and writes those of d, until wgmma.wait_group covers it. The values
are followed through the kernel: through moves, and through other products that add to the same accumulators, which may
follow each other without a wait if they have the same shape. Only at run time is it known whether a product is in
flight when an instruction is executed. This module finds the products to check, and whether the value can come from an
earlier execution of the product, which an execution in flight does not touch.

A register of a, or of the metadata of a sparse product, must keep its value while the product is in flight: this module
also finds the instructions that write one.

A wgmma.fence must lie between ordinary writes to those registers and the product, and before the first product. Moves
are not counted as writes: the compiler places moves of constants and copies, and moves that join halves, freely.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import ptx
from ..ptx.control_flow import Block, Roles

PRODUCT = "wgmma.mma_async."
_FENCE = "wgmma.fence."


@dataclass(frozen=True)
class _Value:
    """The state of a register: the products that may have written it, as (number, whether it was their latest
    execution), and the instruction that has written it since the last fence, if one may have."""

    products: frozenset[tuple[int, bool]] = frozenset()
    writer: ptx.Instruction | None = None

    def __or__(self, other: _Value) -> _Value:
        return _Value(self.products | other.products, self.writer or other.writer)


_CLEAN = _Value()


@dataclass
class _State:
    values: dict[str, _Value] = field(default_factory=dict)
    fenced: bool = False

    def copy(self) -> _State:
        return _State(dict(self.values), self.fenced)

    def join(self, other: _State) -> bool:
        """Join another path to the same place; return whether that changes anything."""
        changed = self.fenced and not other.fenced
        self.fenced &= other.fenced
        for name, value in other.values.items():
            mine = self.values.get(name, _CLEAN)
            if mine is value:
                continue
            both = mine | value
            if both.products != mine.products or (both.writer is None) != (mine.writer is None):
                self.values[name], changed = both, True
        return changed


@dataclass
class ProductRegisters:
    """The result of `analyse` for a kernel.

    `numbers`: its products, by the id of their instruction. `uses`: by the id of an instruction, the registers that it
    uses and products may write, each with these, as in `_Value`. `unfenced`: the products before which a fence may be
    missing, with the instruction that has written one of their registers, None before the first product. `overwrites`:
    by the id of an instruction, the products that read a register which it writes.
    """

    numbers: dict[int, int] = field(default_factory=dict)
    uses: dict[int, dict[str, frozenset[tuple[int, bool]]]] = field(default_factory=dict)
    unfenced: dict[int, ptx.Instruction | None] = field(default_factory=dict)
    overwrites: dict[int, tuple[int, ...]] = field(default_factory=dict)


def analyse(blocks: list[Block], roles: Roles) -> ProductRegisters:
    """Follow the registers of the products of a kernel, whose entry is the first block."""
    out = ProductRegisters()
    products: list[ptx.Instruction] = []
    for block in blocks:
        for instruction in block.instructions:
            if instruction.opcode.startswith(PRODUCT):
                out.numbers[id(instruction)] = len(products)
                products.append(instruction)
    if not products:
        return out
    _note_overwrites(blocks, products, roles, out)
    shapes = [each.opcode for each in products]
    followed = _followed(blocks, roles)
    entries: dict[int, _State] = {0: _State()}
    work = {0}
    while work:
        # Blocks are nearly in program order, in which most have seen all paths to them.
        index = min(work)
        work.remove(index)
        state = entries[index].copy()
        for instruction in blocks[index].instructions:
            _step(state, instruction, roles, out, shapes, followed)
        if blocks[index].guard is not None:
            _note_use(state, blocks[index].branch, [blocks[index].guard[0].name], out, frozenset())
        for successor in blocks[index].successors:
            if successor not in entries:
                entries[successor] = state.copy()
                work.add(successor)
            elif entries[successor].join(state):
                work.add(successor)
    return out


def _followed(blocks: list[Block], roles: Roles) -> set[str]:
    """Return the registers of products, and those that moves connect with them: no others can hold their values."""
    found: set[str] = set()
    moves: dict[str, list[str]] = {}
    for block in blocks:
        for instruction in block.instructions:
            if instruction.opcode.startswith(PRODUCT):
                found.update(*roles(instruction))
            elif instruction.opcode.startswith("mov."):
                writes, reads = roles(instruction)
                for target in writes:
                    for source in reads:
                        moves.setdefault(target, []).append(source)
                        moves.setdefault(source, []).append(target)
    work = list(found)
    while work:
        near = [name for name in moves.get(work.pop(), ()) if name not in found]
        found.update(near)
        work += near
    return found


def _note_overwrites(
    blocks: list[Block], products: list[ptx.Instruction], roles: Roles, out: ProductRegisters
) -> None:  # fmt: skip
    """Find the instructions that write registers which products read. Moves are left out, as everywhere here."""
    readers: dict[str, list[int]] = {}
    for number, product in enumerate(products):
        _, left, _, *rest = product.operands
        registers = list(left.items) if isinstance(left, ptx.Vector) else []
        for each in registers + (rest[:1] if ".sp." in product.opcode else []):
            if isinstance(each, ptx.Register):
                readers.setdefault(each.name, []).append(number)
    for block in blocks:
        for instruction in block.instructions:
            if not instruction.opcode.startswith((PRODUCT, "mov.")):
                found = {number for name in roles(instruction)[0] for number in readers.get(name, ())}
                if found:
                    out.overwrites[id(instruction)] = tuple(sorted(found))


def _step(
    state: _State,
    instruction: ptx.Instruction,
    roles: Roles,
    out: ProductRegisters,
    shapes: list[str],
    followed: set[str],
) -> None:
    opcode = instruction.opcode
    if opcode.startswith(_FENCE):
        state.fenced = True
        state.values = {name: _Value(value.products) for name, value in state.values.items()}
        return
    writes, reads = (([name for name in names if name in followed]) for names in roles(instruction))
    if opcode.startswith(PRODUCT):
        number = out.numbers[id(instruction)]
        same = frozenset(each for each, shape in enumerate(shapes) if shape == opcode)
        left = [name for name in reads if name not in writes]
        _note_use(state, instruction, left, out, frozenset())
        _note_use(state, instruction, writes, out, same)
        first = isinstance(instruction.operands[1], ptx.Vector)
        ordered = writes + ([each.name for each in instruction.operands[1].items] if first else [])
        dirty = [state.values[name].writer for name in ordered if state.values.get(name, _CLEAN).writer is not None]
        if dirty or not state.fenced:
            out.unfenced[id(instruction)] = dirty[0] if dirty else None
        for name, value in state.values.items():
            if (number, True) in value.products:
                state.values[name] = _Value(value.products - {(number, True)} | {(number, False)}, value.writer)
        for name in writes:
            state.values[name] = _Value(frozenset({(number, True)}))
        return
    if opcode.startswith("mov.") and len(instruction.operands) == 2:
        target, source = instruction.operands
        if isinstance(target, ptx.Register) and target.name not in followed:
            return
        if isinstance(target, ptx.Register) and isinstance(source, ptx.Register):
            state.values[target.name] = state.values.get(source.name, _CLEAN)
            return
        if isinstance(target, ptx.Register) and isinstance(source, ptx.Immediate | ptx.Vector):
            _note_use(state, instruction, reads, out, frozenset())
            writers = [state.values.get(name, _CLEAN).writer for name in reads]
            state.values[target.name] = _Value(writer=next((each for each in writers if each is not None), None))
            return
    _note_use(state, instruction, reads, out, frozenset())
    for name in writes:
        state.values[name] = _Value(writer=instruction)


def _note_use(
    state: _State, instruction: ptx.Instruction, names: list[str], out: ProductRegisters, allowed: frozenset[int]
) -> None:  # fmt: skip
    for name in names:
        found = frozenset(each for each in state.values.get(name, _CLEAN).products if each[0] not in allowed)
        if found:
            uses = out.uses.setdefault(id(instruction), {})
            uses[name] = uses.get(name, frozenset()) | found
