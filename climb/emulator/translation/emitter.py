"""Write the Python function of one basic block."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import NoReturn

import numpy as np

from .. import ptx
from ..isa import HELPERS
from ..isa.types import DTYPES, dtype, open_kind, size
from ..ptx.control_flow import Block
from .context import KernelContext
from .late_loads import loaded
from .object_code import constant_array
from .registers import register_names, rule_of

_VARIABLE = re.compile(r"\b_(?!K)[A-Za-z]\w*")  # not a constant, whose name begins with _K
_INVALID = re.compile(r"\W")


class Emitter:
    """Writes the Python code of one basic block. The rules in `isa` call it; see `isa` for how.

    `current` maps registers to (variable, type) of their latest value in the block. `flushes` maps variables to the
    variable that holds their value with subnormals flushed.
    """

    def __init__(self, context: KernelContext) -> None:
        self.context = context
        self.lines: list[str] = []
        self.current: dict[str, tuple[str, str]] = {}
        self.loads: list[str] = []
        self.written: list[str] = []
        self.count = 0
        self.flushes: dict[str, str] = {}

    def line(self, code: str) -> None:
        """Append a statement."""
        self.lines.append(code)

    def fresh(self, code: str, hint: str = "t") -> str:
        """Bind an expression to a new variable and return its name."""
        self.count += 1
        name = f"_{_spelled(hint)}_{self.count}"
        self.lines.append(f"{name} = {code}")
        return name

    def constant(self, value: np.ndarray) -> str:
        """Return the name of a constant, a (1,1) array."""
        return self.context.constant(value)

    def resolve(self, kind: str, target: ptx.Operand) -> str:
        """Return the type that an open kind (`i32`, `b32`) stands for in this destination."""
        if not open_kind(kind):
            return kind
        if isinstance(target, ptx.Register) and target.name != "_":
            have = self.kind(target.name)
            if have != "pred" and size(have) == size(kind) and (kind[0] == "b" or have[0] in "su"):
                return have
        return "u" + kind[1:]

    def kind(self, name: str) -> str:
        """Return the type in which a register is kept between blocks."""
        if name not in self.context.kinds:
            self.refuse(f"{name} is not known")
        return self.context.kinds[name]

    def kind_of(self, operand: ptx.Operand, kind: str) -> str:
        """Return the current type of an operand if it is as wide as `kind`, else the unsigned type of that width."""
        if isinstance(operand, ptx.Register) and operand.name != "_":
            have = self._register(operand.name)[1]
            if have != "pred" and size(have) == size(kind):
                return have
        return "u" + kind[1:]

    def read(self, operand: ptx.Operand, kind: str) -> str:
        """Return an expression for an operand as a value of type `kind`; a wider register gives its low part."""
        if open_kind(kind):
            kind = self.kind_of(operand, kind)
        if isinstance(operand, ptx.Negated):
            return f"~{self.read(operand.register, 'pred')}"
        if isinstance(operand, ptx.Register):
            name, have = self._register(operand.name)
            if have == kind:
                return name
            if (have == "pred") != (kind == "pred"):
                self.refuse(
                    f"{operand.name} is a predicate" if have == "pred" else f"{operand.name} is not a predicate"
                )
            if size(have) == size(kind):
                return f"{name}.view({DTYPES[kind]})"
            if size(have) < size(kind):
                self.refuse(f"{operand.name} is narrower than {kind}")
            narrow = f"{name}.view({DTYPES['u' + str(8 * size(have))]}).astype({DTYPES['u' + str(8 * size(kind))]})"
            return narrow if kind[0] == "u" else f"{narrow}.view({DTYPES[kind]})"
        if isinstance(operand, ptx.Immediate):
            return self.context.constant(_immediate(operand, kind))
        if isinstance(operand, ptx.Symbol):
            value = self.context.symbol(operand, kind)
            return f"shared_taken(G, {value})" if self._is_shared(operand) else value
        if isinstance(operand, ptx.Part):
            self.refuse("parts of a register are operands of video instructions only")
        return self.refuse(f"cannot read the operand {operand}")

    def sources(self, instruction: ptx.Instruction) -> list[str]:
        """Return expressions for the source operands, in the types that the rule states."""
        rule = rule_of(instruction.opcode)
        operands = instruction.operands[rule.writes :]
        if len(operands) != len(rule.operands):
            self.refuse(f"{len(rule.operands)} operands expected, {len(operands)} found")
        target = instruction.operands[0]
        return [
            self.read(operand, self.resolve(kind, target))
            for operand, kind in zip(operands, rule.operands, strict=True)
        ]

    def write(self, target: ptx.Operand, kind: str, code: str) -> None:
        """Bind a register to the value of an expression of type `kind`."""
        if not isinstance(target, ptx.Register):
            self.refuse(f"cannot write to {target}")
        if target.name == "_":
            return
        kind = self.resolve(kind, target)
        have = self.kind(target.name)
        if size(have) != size(kind) or (have == "pred") != (kind == "pred"):
            self.refuse(f"{target.name} does not have the width of {kind}")
        self.current[target.name] = (self.fresh(code, target.name), kind)
        self.written.append(target.name)

    def write_extended(self, target: ptx.Operand, kind: str, code: str) -> None:
        """Like `write`, for a register that may be wider: extend by zeros, or by the sign if `kind` is signed."""
        if not isinstance(target, ptx.Register) or target.name == "_":
            return
        width = size(self.kind(target.name))
        if width > size(kind):
            wide = ("s" if kind[0] == "s" else "u") + str(8 * width)
            if kind[0] == "f":
                self.refuse(f"{target.name} is wider than {kind}")
            self.write(target, wide, f"{code}.astype({DTYPES[wide]})")
        else:
            self.write(target, kind, code)

    def alias(self, target: ptx.Operand, source: ptx.Operand, kind: str) -> None:
        """Let a register stand for another value of the same width."""
        if isinstance(source, ptx.Register):
            value = self._register(source.name)
            if size(value[1]) == size(self.kind(target.name)):
                self.current[target.name] = value
                self.written.append(target.name)
                return
        have = self.resolve("b" + kind[1:] if kind != "pred" else kind, target)
        self.current[target.name] = (self.read(source, have), have)
        self.written.append(target.name)

    def address(self, operand: ptx.Operand, space: str) -> str:
        """Return the base of an address as int64; the offset is part of the site."""
        base = operand.base
        if not isinstance(base, ptx.Register):
            zero = self.context.constant(np.array(0, np.int64))
            return f"shared_taken(G, {zero})" if isinstance(base, ptx.Symbol) and self._is_shared(base) else zero
        have = self._register(base.name)[1]
        if size(have) == 4:
            return f"{self.read(base, 'u32')}.astype(int64)"
        return self.read(base, "s64")

    def _is_shared(self, symbol: ptx.Symbol) -> bool:
        return self.context.layout.addresses.get(symbol.name, ("",))[0] == "shared"

    def parameter_offset(self, instruction: ptx.Instruction, operand: ptx.Operand) -> int:
        """Return the byte offset of an address in parameter space."""
        parameters = self.context.layout.parameters
        if not isinstance(operand.base, ptx.Symbol) or operand.base.name not in parameters:
            self.refuse("a parameter is read at an address that is not constant")
        return parameters[operand.base.name] + operand.base.offset + operand.offset

    def site(self, instruction: ptx.Instruction, space: str, action: str, element: np.dtype, count: int) -> str:
        """Register a memory access of `count` elements and return the name of its Site in generated code."""
        operand = next(o for o in instruction.operands if isinstance(o, ptx.Address))
        offset = operand.offset
        if isinstance(operand.base, ptx.Symbol):
            where, address = self.context.address(operand.base.name)
            if space and where != space:
                self.refuse(f"{operand.base.name} is not in {space} memory")
            offset += address + operand.base.offset
        name = self.context.site(instruction, space, action, element, count, offset)
        if isinstance(operand.base, ptx.Symbol) and operand.base.name in self.context.layout.symbols:
            self.context.relocated_sites.add(self.context.site_named(name).index)
        return name

    def part(self, instruction: ptx.Instruction, space: str, element: np.dtype, count: int, start: int) -> str:
        """Like `site`, for the elements from byte `start` on of a load that another site counts."""
        name = self.site(instruction, space, "load", element, count)
        found = self.context.site_named(name)
        self.context.change_site(replace(found, offset=found.offset + start, part=True))
        return name

    def uncounted(self, site: str) -> None:
        """Exclude the accesses of a site from the counters."""
        self.context.change_site(replace(self.context.site_named(site), part=True))

    def combine(self, site: str) -> None:
        """Mark an atomic that adds one as combinable: its result is not read."""
        self.context.change_site(replace(self.context.site_named(site), combined=True))

    def is_read(self, target: ptx.Operand) -> bool:
        """Return whether any instruction reads a register of a destination."""
        return not self.context.read.isdisjoint(register_names(target))

    def is_in_address(self, target: ptx.Operand) -> bool:
        """Return whether a memory access takes its address from a register, or from sums and products of it."""
        return isinstance(target, ptx.Register) and target.name in self.context.addresses

    def place(self, instruction: ptx.Instruction) -> str:
        """Return the name in generated code of a site that tells errors where the instruction is."""
        return self.context.site(instruction, "", "warp", dtype("u32"), 1, 0)

    def product_number(self, instruction: ptx.Instruction) -> int:
        """Return the number of an asynchronous matrix product among those of the kernel."""
        return self.context.product_registers.numbers[id(instruction)]

    def check_products(self, instruction: ptx.Instruction) -> None:
        """Write the checks of an instruction that uses registers of asynchronous matrix products."""
        found = self.context.product_registers
        if id(instruction) in found.uses:
            site = self.place(instruction)
            for name, numbers in sorted(found.uses[id(instruction)].items()):
                value, _ = self._register(name)
                latest = tuple(sorted(n for n, _ in numbers if (n, False) not in numbers))
                self.line(f"group_register(G, {site}, {value}, {latest})")
        if id(instruction) in found.overwrites:
            self.line(f"group_overwrite(G, {self.place(instruction)}, {found.overwrites[id(instruction)]})")
        if id(instruction) in found.unfenced:
            writer = found.unfenced[id(instruction)]
            self.line(f"group_unfenced(G, {self.place(instruction)}, {writer and self.place(writer)})")

    def follow_loads_into(self, block: Block) -> None:
        """Write what the check of late loads needs at the start of a block."""
        if block.index in self.context.late_loads.starts:
            self.line(f"late_release(G, {self.context.late_loads.starts[block.index]})")

    def follow_loads_before(self, instruction: ptx.Instruction) -> None:
        """Write what the check of late loads needs before an instruction: the loads that end, and one that begins."""
        found, number = self.context.late_loads, self.context.late_loads.loads.get(id(instruction))
        if id(instruction) in found.ends:
            self.line(f"late_end(G, {found.ends[id(instruction)]})")
        if number is not None:
            count, kind, lanes = loaded(instruction.opcode)
            site = self.site(instruction, "shared", "load", dtype(kind), count)
            self.uncounted(site)
            generic = ".shared" not in instruction.opcode
            address = self.address(instruction.operands[1], "" if generic else "shared")
            self.line(f"late_load(G, {site}, {address}, {number}, {lanes}, {generic})")

    def follow_loads_after(self, instruction: ptx.Instruction) -> None:
        """Write what the check of late loads needs after an instruction at which threads arrive at a barrier."""
        if id(instruction) in self.context.late_loads.releases:
            self.line(f"late_release(G, {self.context.late_loads.releases[id(instruction)]})")

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedInstruction for the instruction that is being translated."""
        self.context.refuse(why)

    def flushed(self, value: str) -> str:
        """Return an expression for a float32 value with subnormals flushed to zero; the value itself if it has none."""
        known = self.flushes.get(value)
        if known is None:
            constant = self.context.constants.get(value)
            if constant is not None:
                known = self.context.constant(HELPERS["flush"](constant_array(*constant)))
            else:
                known = self.fresh(f"flush({value})")
            self.flushes[value] = self.flushes[known] = known
        return known

    def mark_flushed(self, target: ptx.Operand) -> None:
        """State that the value just written to a register cannot be subnormal."""
        if isinstance(target, ptx.Register) and target.name in self.current:
            name = self.current[target.name][0]
            self.flushes[name] = name

    def _register(self, name: str) -> tuple[str, str]:
        value = self.current.get(name)
        if value is None:
            kind = self.kind(name)
            local = f"_{_spelled(name)}_0"
            self.loads.append(f"{local} = R[{name!r}]")
            value = self.current[name] = (local, kind)
            if name in self.context.flushed:
                self.flushes[local] = local
        return value

    def finish(self, block: Block, live: frozenset[str]) -> list[str]:
        """Return the statements of the block's function."""
        for name in dict.fromkeys(self.written):
            if name in live:
                value, kind = self.current[name]
                have = self.kind(name)
                view = "" if kind == have else f".view({DTYPES[have]})"
                self.lines.append(f"R[{name!r}] = {value}{view}")
        if block.guard is not None:
            register, negated = block.guard
            value = self.read(register, "pred")
            self.lines.append(f"return {'~' if negated else ''}{value}")
        return self.loads + delete_after_last_use(self.lines)


@functools.lru_cache(1 << 14)
def _spelled(register: str) -> str:
    """Return the name of a register as a part of a name of Python."""
    return _INVALID.sub("_", register.lstrip("%"))


def delete_after_last_use(lines: list[str]) -> list[str]:
    """Delete each variable after its last use, so that its memory, still cached, can hold the next result."""
    last: dict[str, int] = {}
    for index, line in enumerate(lines):
        for name in _VARIABLE.findall(line):
            last[name] = index
    out = []
    ends: dict[int, list[str]] = {}
    for name, index in last.items():
        ends.setdefault(index, []).append(name)
    for index, line in enumerate(lines):
        out.append(line)
        names = ends.get(index)
        if names and not line.startswith("return"):
            out.append(f"del {', '.join(names)}")
    return out


def _immediate(operand: ptx.Immediate, kind: str) -> np.ndarray:
    """Return a literal as a 0-d array of type `kind`; integers wrap, and an integer read as a float gives its bits."""
    target = dtype(kind)
    if kind == "pred":
        return np.array(bool(operand.value))
    if operand.bits:
        value = np.array(operand.value, f"uint{operand.bits}")
        if kind[0] != "f":
            return value.astype(f"uint{8 * target.itemsize}").view(target)
        return value.view(f"float{operand.bits}").astype(target)
    if isinstance(operand.value, float):
        return np.array(operand.value, target)
    bits = 8 * target.itemsize
    return np.array(operand.value & ((1 << bits) - 1), f"uint{bits}").view(target)
