"""From a parsed kernel to one Python function per basic block.

Registers live between blocks in a dictionary, each in one dtype of its own, chosen from the instructions that use it.
Inside a block every write makes a new local variable, so that a value is never changed once it is bound, and moves cost
nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from . import access, atomics, cfg, copies, mbarrier, named, ptx, system, tensor, textures, warps, watch
from .errors import UnsupportedInstruction
from .isa import HELPERS, Rule, lookup
from .isa.move import SPECIAL_TYPES
from .isa.types import DTYPES, dtype, open_kind, size
from .layout import Layout
from .memory import LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW

_NAMES = {name: getattr(np, name) for name in set(DTYPES.values()) if name != "bool"}
_VARIABLE = re.compile(r"\b_[A-Za-z]\w*\b")
CARRY = "%carry"
_INVALID = re.compile(r"\W")


@dataclass(frozen=True)
class Code:
    """A translated kernel: its blocks, their functions, the access sites, and the source of the generated Python."""

    blocks: list[cfg.Block]
    functions: list
    sites: list[access.Site]
    kinds: dict[str, str]
    source: str


def find_rule(instruction: ptx.Instruction, kernel: str, sources: dict[str, list[str]]) -> Rule:
    """The rule for an instruction.

    Raises UnsupportedInstruction, with the source line, where there is none.
    """
    rule = lookup(instruction.opcode)
    if rule is None:
        raise UnsupportedInstruction.at(
            kernel, instruction.location, sources, f"{instruction.opcode} is not supported (in: {instruction.text})"
        )
    return rule


def _names(operand: ptx.Operand | None) -> list[str]:
    """The registers in an operand."""
    if isinstance(operand, ptx.Register):
        return [operand.name] if operand.name != "_" else []
    if isinstance(operand, ptx.Address):
        return _names(operand.base) + [n for extra in operand.extra for n in _names(extra)]
    if isinstance(operand, (ptx.Vector, ptx.Group)):
        return [name for item in operand.items for name in _names(item)]
    if isinstance(operand, ptx.Pair):
        return _names(operand.first) + _names(operand.second)
    if isinstance(operand, ptx.Negated):
        return _names(operand.register)
    return []


def roles(instruction: ptx.Instruction) -> tuple[list[str], list[str]]:
    """The registers that an instruction writes, and those that it reads."""
    rule = lookup(instruction.opcode)
    if rule.terminator or rule.emit is None:
        return [], [n for operand in instruction.operands for n in _names(operand)]
    writes = [n for operand in instruction.operands[: rule.writes] for n in _names(operand)]
    reads = [n for operand in instruction.operands[rule.writes :] for n in _names(operand)]
    carried = [CARRY]
    return writes + carried * rule.carry[1], reads + carried * rule.carry[0]


def _kinds(function: ptx.Function) -> dict[str, str]:
    """The type in which each register is kept: the one that most of its uses ask for."""
    votes: dict[str, Counter] = {name: Counter() for name in function.registers}

    def vote(operand: ptx.Operand, kind: str) -> None:
        if isinstance(operand, ptx.Register) and operand.name in votes and not open_kind(kind):
            votes[operand.name][kind] += 1

    for item in function.body:
        if isinstance(item, ptx.Label):
            continue
        rule = lookup(item.opcode)
        kinds = rule.results + rule.operands
        for operand, kind in zip(item.operands, kinds, strict=False):
            vote(operand, kind)
        for operand in item.operands:
            if isinstance(operand, ptx.Address) and isinstance(operand.base, ptx.Register):
                vote(operand.base, "s64")
        last = item.opcode.rsplit(".", 1)[-1]
        if item.opcode.startswith(("ld.", "st.")) and last in DTYPES:
            for operand in item.operands:
                for part in operand.items if isinstance(operand, ptx.Vector) else (operand,):
                    vote(part, last)
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


def _flushed(function: ptx.Function) -> frozenset[str]:
    """Registers that never hold a subnormal float32: all that writes them flushes, or copies such a register."""
    writes = [(name, item) for item in function.body if isinstance(item, ptx.Instruction) for name in roles(item)[0]]

    def keeps(operand: ptx.Operand) -> bool:
        if isinstance(operand, ptx.Register):
            return operand.name in safe
        if isinstance(operand, ptx.Immediate) and operand.bits == 32:
            exponent, fraction = operand.value & 0x7F800000, operand.value & 0x7FFFFF
            return bool(exponent) or not fraction
        return False

    def flushes(item: ptx.Instruction) -> bool:
        rule = lookup(item.opcode)
        if rule.ftz:
            return rule.results == ("f32",)
        if item.opcode in ("mov.f32", "mov.b32", "mov.u32"):
            return keeps(item.operands[1])
        if item.opcode in ("selp.f32", "selp.b32"):
            return keeps(item.operands[1]) and keeps(item.operands[2])
        return item.opcode.startswith("cvt.rn.f32.") and item.opcode.rsplit(".", 1)[1][0] in "su"

    safe = frozenset(name for name, _ in writes)
    while True:
        kept = safe - {name for name, item in writes if not flushes(item)}
        if kept == safe:
            return safe
        safe = kept


class Emitter:
    """Writes the body of one block; rules call it."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self.lines: list[str] = []
        self.current: dict[str, tuple[str, str]] = {}
        self.loads: list[str] = []
        self.written: list[str] = []
        self.count = 0
        self.flushes: dict[str, str] = {}

    # What rules may use -----------------------------------------------------------------------------------------------

    def line(self, code: str) -> None:
        """Append a statement."""
        self.lines.append(code)

    def fresh(self, code: str, hint: str = "t") -> str:
        """Bind an expression to a new variable; its name."""
        self.count += 1
        name = f"_{_INVALID.sub('_', hint.lstrip('%'))}_{self.count}"
        self.lines.append(f"{name} = {code}")
        return name

    def constant(self, value: np.ndarray) -> str:
        """The name of a constant, a (1, 1) array."""
        return self.translation.constant(value)

    def resolve(self, kind: str, target: ptx.Operand) -> str:
        """The type that an open kind (`i32`, `b32`) means for this destination."""
        if not open_kind(kind):
            return kind
        if isinstance(target, ptx.Register) and target.name != "_":
            have = self.kind(target.name)
            if have != "pred" and size(have) == size(kind) and (kind[0] == "b" or have[0] in "su"):
                return have
        return "u" + kind[1:]

    def kind(self, name: str) -> str:
        """The type in which a register is kept between blocks."""
        if name not in self.translation.kinds:
            self.refuse(f"{name} is not known")
        return self.translation.kinds[name]

    def kind_of(self, operand: ptx.Operand, kind: str) -> str:
        """The type that an operand has now, where it is of the size of `kind`; else the unsigned type of that size."""
        if isinstance(operand, ptx.Register) and operand.name != "_":
            have = self._register(operand.name)[1]
            if have != "pred" and size(have) == size(kind):
                return have
        return "u" + kind[1:]

    def read(self, operand: ptx.Operand, kind: str) -> str:
        """An expression for an operand as a value of type `kind`; a register that is wider gives its low part."""
        if open_kind(kind):
            kind = self.kind_of(operand, kind)
        if isinstance(operand, ptx.Negated):
            return f"~{self.read(operand.register, 'pred')}"
        if isinstance(operand, ptx.Register):
            name, have = self._register(operand.name)
            if have == kind:
                return name
            if (have == "pred") != (kind == "pred"):
                self.refuse(f"{operand.name} is a predicate" if have == "pred" else f"{operand.name} is no predicate")
            if size(have) == size(kind):
                return f"{name}.view({DTYPES[kind]})"
            if size(have) < size(kind):
                self.refuse(f"{operand.name} is narrower than {kind}")
            narrow = f"{name}.view({DTYPES['u' + str(8 * size(have))]}).astype({DTYPES['u' + str(8 * size(kind))]})"
            return narrow if kind[0] == "u" else f"{narrow}.view({DTYPES[kind]})"
        if isinstance(operand, ptx.Immediate):
            return self.translation.constant(_immediate(operand, kind))
        if isinstance(operand, ptx.Symbol):
            _, address = self.translation.address(operand.name, self)
            return self.translation.constant(np.array(address + operand.offset, np.int64).astype(DTYPES[kind]))
        return self.refuse(f"cannot read the operand {operand}")

    def sources(self, instruction: ptx.Instruction) -> list[str]:
        """The source operands as the rule types them."""
        rule = lookup(instruction.opcode)
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
            self.refuse(f"{target.name} has not the size of {kind}")
        self.current[target.name] = (self.fresh(code, target.name), kind)
        self.written.append(target.name)

    def write_extended(self, target: ptx.Operand, kind: str, code: str) -> None:
        """As `write`, for a register that may be wider: extended by zeros, or by the sign for signed types."""
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
        """Make a register stand for another value of the same size."""
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
        """The base of an address as int64; the offset is part of the site."""
        base = operand.base
        if not isinstance(base, ptx.Register):
            return self.translation.constant(np.array(0, np.int64))
        have = self._register(base.name)[1]
        if size(have) == 4:
            return f"{self.read(base, 'u32')}.astype(int64)"
        return self.read(base, "s64")

    def parameter_offset(self, instruction: ptx.Instruction, operand: ptx.Operand) -> int:
        """The byte offset of an address in parameter space."""
        parameters = self.translation.layout.parameters
        if not isinstance(operand.base, ptx.Symbol) or operand.base.name not in parameters:
            self.refuse("a parameter is read at an address that is not constant")
        return parameters[operand.base.name] + operand.base.offset + operand.offset

    def site(self, instruction: ptx.Instruction, space: str, action: str, element: np.dtype, count: int) -> str:
        """Register a memory instruction; the name of its Site in generated code."""
        operand = next(o for o in instruction.operands if isinstance(o, ptx.Address))
        offset = operand.offset
        if isinstance(operand.base, ptx.Symbol):
            where, address = self.translation.address(operand.base.name, self)
            if space and where != space:
                self.refuse(f"{operand.base.name} is not in {space} memory")
            offset += address + operand.base.offset
        return self.translation.site(instruction, space, action, element, count, offset)

    def part(self, instruction: ptx.Instruction, space: str, element: np.dtype, count: int, start: int) -> str:
        """As `site`, for the elements from byte `start` on of a load that another site counts."""
        name = self.site(instruction, space, "load", element, count)
        found = self.translation.namespace[name]
        found = self.translation.namespace[name] = replace(found, offset=found.offset + start, part=True)
        self.translation.sites[found.index] = found
        return name

    def uncounted(self, site: str) -> None:
        """Say that the accesses of a site are counted as none."""
        found = self.translation.namespace[site]
        found = self.translation.namespace[site] = replace(found, part=True)
        self.translation.sites[found.index] = found

    def combine(self, site: str, result: ptx.Operand | None) -> None:
        """Say that an atomic counts up by one, where nobody reads its result."""
        if result is None or not set(_names(result)) & self.translation.wanted:
            found = self.translation.namespace[site]
            combined = self.translation.namespace[site] = replace(found, combined=True)
            self.translation.sites[found.index] = combined

    def place(self, instruction: ptx.Instruction) -> str:
        """The name in generated code of a site that stands for the place of an instruction, for errors."""
        return self.translation.site(instruction, "", "warp", dtype("u32"), 1, 0)

    def refuse(self, why: str) -> NoReturn:
        """Raise UnsupportedInstruction for the instruction that is being translated."""
        instruction = self.translation.instruction
        raise UnsupportedInstruction.at(
            self.translation.function.name,
            instruction.location,
            self.translation.sources,
            f"{instruction.opcode}: {why} (in: {instruction.text})",
        )

    def flushed(self, value: str) -> str:
        """An expression for a float32 value with subnormals flushed to zero; no code where it cannot be subnormal."""
        known = self.flushes.get(value)
        if known is None:
            constant = self.translation.namespace.get(value)
            if constant is not None:
                known = self.translation.constant(HELPERS["flush"](constant))
            else:
                known = self.fresh(f"flush({value})")
            self.flushes[value] = self.flushes[known] = known
        return known

    def mark_flushed(self, target: ptx.Operand) -> None:
        """Say that the value just written to a register cannot be subnormal."""
        if isinstance(target, ptx.Register) and target.name in self.current:
            name = self.current[target.name][0]
            self.flushes[name] = name

    def _register(self, name: str) -> tuple[str, str]:
        value = self.current.get(name)
        if value is None:
            kind = self.kind(name)
            local = f"_{_INVALID.sub('_', name.lstrip('%'))}_0"
            self.loads.append(f"{local} = R[{name!r}]")
            value = self.current[name] = (local, kind)
            if name in self.translation.flushed:
                self.flushes[local] = local
        return value

    def finish(self, block: cfg.Block, live: frozenset[str]) -> list[str]:
        """The statements of the block's function."""
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
        return self.loads + _release(self.lines)


def _release(lines: list[str]) -> list[str]:
    """Delete each variable after its last use, so that its memory, still in the cache, serves the next result."""
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
        names = [name for name in ends.get(index, ()) if not name.startswith("_K")]
        if names and not line.startswith("return"):
            out.append(f"del {', '.join(names)}")
    return out


def _immediate(operand: ptx.Immediate, kind: str) -> np.ndarray:
    """A literal as a scalar array of the type; integers wrap, and where a float is expected they are its bits."""
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


class Translation:
    """The translation of one kernel; `addresses` come from the layout of the module and the kernel."""

    def __init__(self, function: ptx.Function, layout: Layout, sources: dict[str, list[str]]) -> None:
        self.function, self.layout, self.sources = function, layout, sources
        for item in function.body:
            if isinstance(item, ptx.Instruction):
                find_rule(item, function.name, sources)
        self.kinds = _kinds(function)
        self.flushed = _flushed(function)
        self.wanted = frozenset(
            name
            for item in function.body
            if isinstance(item, ptx.Instruction)
            for name in (*roles(item)[1], *([item.guard[0].name] if item.guard else ()))
        )
        self.sites: list[access.Site] = []
        self.namespace: dict = {
            "np": np, "bool": np.bool_, "SHARED_WINDOW": SHARED_WINDOW, "LOCAL_WINDOW": LOCAL_WINDOW,
            "PARAM_WINDOW": PARAM_WINDOW,
            **_NAMES, **HELPERS, **access.RUNTIME, **warps.RUNTIME, **atomics.RUNTIME,
            **watch.RUNTIME, **copies.RUNTIME, **system.RUNTIME, **tensor.RUNTIME, **textures.RUNTIME,
            **named.RUNTIME, **mbarrier.RUNTIME,
        }  # fmt: skip
        self.constants: dict[tuple[str, bytes], str] = {}
        self.instruction: ptx.Instruction | None = None
        self.spinning = False

    def constant(self, value: np.ndarray) -> str:
        """The name of a constant, a (1,1) array."""
        key = (value.dtype.str, value.tobytes())
        name = self.constants.get(key)
        if name is None:
            name = self.constants[key] = f"_K{len(self.constants)}"
            value = np.ascontiguousarray(value).reshape(1, 1)
            value.flags.writeable = False
            self.namespace[name] = value
        return name

    def address(self, name: str, emitter: Emitter) -> tuple[str, int]:
        """(space, address) of a variable."""
        found = self.layout.addresses.get(name)
        if found is None:
            emitter.refuse(f"{name} is not a variable that has an address here")
        return found

    def site(
        self, instruction: ptx.Instruction, space: str, action: str, element: np.dtype, count: int, offset: int
    ) -> str:
        """A new site; its name in generated code."""
        index = len(self.sites)
        location = instruction.location
        lines = self.sources.get(location.file, ())
        text = lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""
        site = access.Site(
            index, space, action, element, count, offset, location, text, instruction.text, self.spinning
        )
        self.sites.append(site)
        self.namespace[f"S{index}"] = site
        return f"S{index}"

    def run(self) -> Code:
        """Translate.

        Raises UnsupportedInstruction for the first instruction that is not known.
        """
        name = self.function.name

        def rule(instruction: ptx.Instruction) -> Rule:
            return find_rule(instruction, name, self.sources)

        blocks = cfg.build(self.function, rule, roles)
        parts = []
        for block in blocks:
            emitter = Emitter(self)
            self.spinning = block.spin
            for instruction in block.instructions:
                self.instruction = instruction
                what = lookup(instruction.opcode)
                if what.emit is not None:
                    what.emit(emitter, instruction)
            live = frozenset().union(*(blocks[s].live for s in block.successors))
            body = emitter.finish(block, live)
            header = f"def block_{block.index}(G):"
            parts.append("\n    ".join([header, "R = G.registers", *body]))
        source = "\n\n".join(parts) + "\n"
        exec(compile(source, f"<generated from {name}>", "exec"), self.namespace)
        functions = [self.namespace[f"block_{block.index}"] for block in blocks]
        return Code(blocks, functions, self.sites, self.kinds, source)
