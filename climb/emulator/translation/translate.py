"""Translate a kernel: one generated Python function per basic block.

Between blocks, registers live in a dictionary, each with one dtype that its uses determine. Inside a block, every write
makes a new local variable: a bound value never changes, so moves cost nothing.
"""

from __future__ import annotations

import marshal
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from .. import ptx
from ..errors import UnsupportedInstruction
from ..isa import Rule
from ..isa.architectures import lacks
from ..isa.matrix import complete_operands
from ..isa.resources import without_hints
from ..isa.spelling import respell
from ..memory.layout import Layout, lay_out
from ..ptx import control_flow
from ..ptx.barriers import name_barriers
from ..ptx.frames import use_frames
from ..ptx.inlining import inline
from ..ptx.switches import unfold
from . import late_loads
from .context import KernelContext
from .emitter import Emitter
from .masking import mark
from .object_code import ObjectCode
from .product_registers import analyse
from .registers import remembered, roles, rule_of

_REGISTER = re.compile(r"%[\w.]+")  # in generated code


def translate(
    program: ptx.Program,
    entry: ptx.Function,
    symbols: Mapping[str, int],
    sources: dict[str, list[str]],
) -> ObjectCode:
    """Translate a kernel of a module.

    `symbols` maps the module's variables and functions to their addresses, relative to the module; `sources` maps file
    names to lines.
    Raises UnsupportedInstruction, with the source line, for the first instruction that is not supported.
    """

    def refuse(instruction: ptx.Instruction, why: str) -> NoReturn:
        what = f"{instruction.opcode}: {why} (in: {instruction.text})"
        raise UnsupportedInstruction.at(entry.name, instruction.location, sources, what)

    function = respell(without_hints(unfold(inline(program, entry, refuse))))
    function = name_barriers(complete_operands(function))
    rule = _rules(function, sources, program.target)
    known = remembered(roles)
    function = use_frames(function, rule, known)
    spaces = dict.fromkeys(symbols, "function") | {v.name: v.space for v in program.variables.values()}
    layout = lay_out(function, program.variables.values(), symbols, spaces)
    return generate(function, layout, sources, rule, known)


def _rules(function: ptx.Function, sources: dict[str, list[str]], target: str) -> Callable[[ptx.Instruction], Rule]:
    """Return the function that maps an instruction to its rule. Raises UnsupportedInstruction if an instruction of the
    function has none, or if the module's target does not have it."""

    def rule(instruction: ptx.Instruction) -> Rule:
        found = rule_of(instruction.opcode)
        if found is None:
            refuse(instruction, "is not supported")
        return found

    def refuse(instruction: ptx.Instruction, why: str) -> NoReturn:
        what = f"{instruction.opcode} {why} (in: {instruction.text})"
        raise UnsupportedInstruction.at(function.name, instruction.location, sources, what)

    for item in function.body:
        if isinstance(item, ptx.Instruction):
            rule(item)
            if needed := lacks(item.opcode, target):
                refuse(item, f"needs the target {needed}, and this module is for {target}: compile for {needed}")
    return rule


def generate(
    function: ptx.Function,
    layout: Layout,
    sources: dict[str, list[str]],
    rule: Callable[[ptx.Instruction], Rule],
    roles: control_flow.Roles,
) -> ObjectCode:
    """Generate the code of a function without calls and switch tables. Raises UnsupportedInstruction."""
    context = KernelContext(function, layout, sources, roles)
    blocks = control_flow.build(function, rule, roles)
    context.product_registers = products = analyse(blocks, roles)
    context.late_loads = late_loads.analyse(blocks, roles)
    bodies = []
    for block in blocks:
        emitter = Emitter(context)
        context.spinning = block.spin
        emitter.follow_loads_into(block)
        for instruction in block.instructions:
            context.instruction = instruction
            if products.numbers:
                emitter.check_products(instruction)
            emitter.follow_loads_before(instruction)
            emit = rule(instruction).emit
            if emit is not None:
                emit(emitter, instruction)
            emitter.follow_loads_after(instruction)
        live = frozenset().union(*(blocks[s].live for s in block.successors))
        bodies.append("\n    ".join(["R = G.registers", *emitter.finish(block, live)]))
    mark(blocks, bodies)
    functions = [f"def block_{block.index}(G):\n    {body}" for block, body in zip(blocks, bodies, strict=True)]
    source = "\n\n".join(functions) + "\n"
    # One by one: Python takes a fifth more time for the syntax tree of a large module, which leaves the CPU's caches.
    name = f"<generated from {function.name}>"
    bytecode = marshal.dumps([compile(each, name, "exec") for each in functions])
    control_flow.pack(blocks)
    packed = zlib.compress(source.encode(), 1)
    special_registers = frozenset(_REGISTER.findall(source)) - frozenset(function.registers)
    return ObjectCode(
        replace(function, body=None), layout, blocks, context.sites, context.kinds, special_registers, packed, bytecode,
        context.constants, frozenset(context.relocated_constants), frozenset(context.relocated_sites),
    )  # fmt: skip
