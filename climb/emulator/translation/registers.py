"""The registers of a function: those that an instruction reads and writes, and the type in which each is kept."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ptx
from ..isa import Rule, lookup
from ..isa.move import SPECIAL_TYPES
from ..isa.types import DTYPES, open_kind, size
from ..ptx.control_flow import Roles

CARRY = "%carry"


def rule_of(opcode: str) -> Rule | None:
    """Return the rule that translates an opcode; None if the opcode is not supported."""
    return lookup(opcode)


def register_names(operand: ptx.Operand | None) -> list[str]:
    """Return the names of the registers in an operand."""
    kind = type(operand)
    if kind is ptx.Register:
        return [operand.name] if operand.name != "_" else []
    if kind is ptx.Immediate or kind is ptx.Symbol:
        return []
    if isinstance(operand, ptx.Address):
        return register_names(operand.base) + [n for extra in operand.extra for n in register_names(extra)]
    if isinstance(operand, (ptx.Vector, ptx.Arguments)):
        return [name for item in operand.items for name in register_names(item)]
    if isinstance(operand, ptx.Pair):
        return register_names(operand.first) + register_names(operand.second)
    if isinstance(operand, (ptx.Negated, ptx.Part)):
        return register_names(operand.register)
    return []


def roles(instruction: ptx.Instruction) -> tuple[list[str], list[str]]:
    """Return the registers that an instruction writes, and those that it reads. Its opcode must be supported."""
    rule = rule_of(instruction.opcode)
    first_read = 0 if rule.terminator or rule.emit is None else rule.writes
    writes: list[str] = []
    reads: list[str] = []
    for number, operand in enumerate(instruction.operands):
        names = writes if number < first_read else reads
        if type(operand) is not ptx.Register:
            names += register_names(operand)
        elif operand.name != "_":
            names.append(operand.name)
    if any(rule.carry) and not rule.terminator and rule.emit is not None:
        writes += [CARRY] * rule.carry[1]
        reads += [CARRY] * rule.carry[0]
    return writes, reads


def remembered(plain: Roles) -> Roles:
    """Wrap `plain` so that it computes the roles of each instruction once. Callers must not change the lists."""
    known: dict[int, tuple[ptx.Instruction, tuple[list[str], list[str]]]] = {}

    def look_up(instruction: ptx.Instruction) -> tuple[list[str], list[str]]:
        found = known.get(id(instruction))
        if found is None:
            found = known[id(instruction)] = instruction, plain(instruction)  # which keeps its id from being reused
        return found[1]

    return look_up


def register_kinds(function: ptx.Function) -> dict[str, str]:
    """Return the type in which each register is kept between blocks: the one that most of its uses require."""
    votes: dict[str, dict[str, int]] = {name: {} for name in function.registers}

    def vote(operand: ptx.Operand, kind: str) -> None:
        if type(operand) is ptx.Register and kind:
            found = votes.get(operand.name)
            if found is not None:
                found[kind] = found.get(kind, 0) + 1

    known: dict[str, tuple[list[str], str]] = {}  # by opcode: see `_stated_kinds`
    for item in function.body:
        if isinstance(item, ptx.Label):
            continue
        opcode = item.opcode
        if opcode not in known:
            known[opcode] = _stated_kinds(opcode)
        stated, moved = known[opcode]
        for operand, kind in zip(item.operands, stated, strict=False):
            vote(operand, kind)
        for operand in item.operands:
            if type(operand) is ptx.Address:
                vote(operand.base, "s64")
            if moved:
                for part in operand.items if isinstance(operand, ptx.Vector) else (operand,):
                    vote(part, moved)
    kinds = dict(SPECIAL_TYPES)
    kinds[CARRY] = "pred"
    for name, declared in function.registers.items():
        if declared == "pred":
            kinds[name] = "pred"
            continue
        width = size(declared) if declared in DTYPES else ptx.TYPE_BYTES[declared]
        fitting = {k: n for k, n in votes[name].items() if k in DTYPES and k != "pred" and size(k) == width}
        if declared[0] == "f" and declared in DTYPES:
            kinds[name] = declared
        elif fitting:
            kinds[name] = max(sorted(fitting), key=fitting.get)
        else:
            kinds[name] = f"u{8 * width}"
    return kinds


def _stated_kinds(opcode: str) -> tuple[list[str], str]:
    """Return the type that an opcode states for each operand, empty if it leaves that open; and the type that a load or
    store moves, empty for other instructions."""
    rule, last = rule_of(opcode), opcode.rsplit(".", 1)[-1]
    moves = opcode.startswith(("ld.", "st.")) and last in DTYPES and not open_kind(last)
    return ["" if open_kind(kind) else kind for kind in rule.results + rule.operands], last if moves else ""


#: The instructions that record the origin of an address for later accesses.
_MAKES_ADDRESSES = ("add.s32", "add.u32", "add.s64", "add.u64", "mul.wide.s32", "mul.wide.u32")


def address_registers(function: ptx.Function) -> frozenset[str]:
    """Return the registers that hold the address of a memory access, or sums and products from which addresses are
    made."""
    instructions = [item for item in function.body if isinstance(item, ptx.Instruction)]
    operands = [operand for item in instructions for operand in item.operands if isinstance(operand, ptx.Address)]
    found = {operand.base.name for operand in operands if isinstance(operand.base, ptx.Register)}
    makers: dict[str, set[str]] = {}
    for item in instructions:
        if item.opcode in _MAKES_ADDRESSES:
            target, *sources = item.operands
            makers.setdefault(target.name, set()).update(name for each in sources for name in register_names(each))
    left = list(found)
    while left:
        fresh = makers.get(left.pop(), set()) - found
        found |= fresh
        left += fresh
    return frozenset(found)


def flushed_registers(function: ptx.Function, roles: Roles) -> frozenset[str]:
    """Return the registers that never hold a subnormal float32: every write flushes, or copies such a register."""
    safe: set[str] = set()
    copies: list[tuple[list[str], Sequence[ptx.Operand]]] = []
    unsafe: set[str] = set()
    known: dict[str, tuple[slice, bool]] = {}  # by opcode
    for item in function.body:
        if not isinstance(item, ptx.Instruction):
            continue
        written, _ = roles(item)
        safe.update(written)
        opcode = item.opcode
        if opcode not in known:
            known[opcode] = _copied(opcode), _flushes(opcode)
        copied, flushes = known[opcode]
        if sources := item.operands[copied]:
            copies.append((written, sources))
        elif not flushes:
            unsafe.update(written)

    def keeps(operand: ptx.Operand) -> bool:
        if isinstance(operand, ptx.Register):
            return operand.name in safe
        if isinstance(operand, ptx.Immediate) and operand.bits == 32:
            exponent, fraction = operand.value & 0x7F800000, operand.value & 0x7FFFFF
            return bool(exponent) or not fraction
        return False

    while unsafe:
        safe -= unsafe
        spoiled = (written for written, copied in copies if not all(map(keeps, copied)))
        unsafe = {name for written in spoiled for name in written if name in safe}
    return frozenset(safe)


def _copied(opcode: str) -> slice:
    """Return the operands that an instruction may copy, one of them at a time; empty for other instructions."""
    if rule_of(opcode).ftz:
        return slice(0)
    if opcode in ("mov.f32", "mov.b32", "mov.u32"):
        return slice(1, 2)
    return slice(1, 3) if opcode in ("selp.f32", "selp.b32") else slice(0)


def _flushes(opcode: str) -> bool:
    """Return whether an instruction that copies nothing never writes a subnormal float32."""
    rule = rule_of(opcode)
    if rule.ftz:
        return rule.results == ("f32",)
    return opcode.startswith("cvt.rn.f32.") and opcode.rsplit(".", 1)[1][0] in "su"
