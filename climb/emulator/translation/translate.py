"""Translate a kernel: one generated Python function per basic block.

Between blocks, registers live in a dictionary, each with one dtype that its uses determine. Inside a block, every write
makes a new local variable: a bound value never changes, so moves cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NoReturn

import numpy as np

from .. import ptx
from ..errors import UnsupportedInstruction
from ..isa import Rule
from ..isa.matrix import complete_operands
from ..isa.resources import without_hints
from ..isa.types import DTYPES
from ..memory.device_memory import Allocation, DeviceMemory
from ..memory.layout import Layout, lay_out
from ..ptx import control_flow
from ..ptx.barriers import name_barriers
from ..ptx.frames import use_frames
from ..ptx.inlining import inline
from ..ptx.switches import unfold
from ..simt.code import Code, TranslatedKernel
from .context import KernelContext
from .emitter import Emitter
from .product_registers import analyse
from .registers import roles, rule_of

_REGISTER = re.compile(r"%[\w.]+")  # in generated code


def translate(
    program: ptx.Program,
    entry: ptx.Function,
    variables: DeviceMemory,
    symbols: Mapping[str, Allocation],
    sources: dict[str, list[str]],
) -> TranslatedKernel:
    """Translate a kernel of a module.

    `variables` holds the module's variables, `symbols` their allocations and those of functions by name, `sources` the
    lines of each file.
    Raises UnsupportedInstruction, with the source line, for the first instruction that is not supported.
    """

    def refuse(instruction: ptx.Instruction, why: str) -> NoReturn:
        what = f"{instruction.opcode}: {why} (in: {instruction.text})"
        raise UnsupportedInstruction.at(entry.name, instruction.location, sources, what)

    function = name_barriers(complete_operands(without_hints(unfold(inline(program, entry, refuse)))))
    rule = _rules(function, sources)
    function = use_frames(function, rule, roles)
    spaces = dict.fromkeys(symbols, "function") | {v.name: v.space for v in program.variables.values()}
    layout = lay_out(function, program.variables.values(), symbols, spaces)
    code = generate(function, layout, sources, rule)
    special_registers = frozenset(_REGISTER.findall(code.source)) - frozenset(function.registers)
    zeros = {name: np.zeros((1, 1), DTYPES[kind]) for name, kind in code.kinds.items()}
    return TranslatedKernel(function, layout, code, variables, special_registers, zeros, sources)


def _rules(function: ptx.Function, sources: dict[str, list[str]]) -> Callable[[ptx.Instruction], Rule]:
    """What gives the rule of an instruction. Raises UnsupportedInstruction if one of the function has none."""

    def rule(instruction: ptx.Instruction) -> Rule:
        found = rule_of(instruction.opcode)
        if found is None:
            what = f"{instruction.opcode} is not supported (in: {instruction.text})"
            raise UnsupportedInstruction.at(function.name, instruction.location, sources, what)
        return found

    for item in function.body:
        if isinstance(item, ptx.Instruction):
            rule(item)
    return rule


def generate(
    function: ptx.Function, layout: Layout, sources: dict[str, list[str]], rule: Callable[[ptx.Instruction], Rule]
) -> Code:
    """Generate the code of a function without calls and switch tables. Raises UnsupportedInstruction."""
    context = KernelContext(function, layout, sources)
    blocks = control_flow.build(function, rule, roles)
    context.product_registers = products = analyse(blocks, roles)
    parts = []
    for block in blocks:
        emitter = Emitter(context)
        context.spinning = block.spin
        for instruction in block.instructions:
            context.instruction = instruction
            if products.numbers:
                emitter.check_products(instruction)
            emit = rule(instruction).emit
            if emit is not None:
                emit(emitter, instruction)
        live = frozenset().union(*(blocks[s].live for s in block.successors))
        parts.append("\n    ".join([f"def block_{block.index}(G):", "R = G.registers", *emitter.finish(block, live)]))
    source = "\n\n".join(parts) + "\n"
    exec(compile(source, f"<generated from {function.name}>", "exec"), context.namespace)
    functions = [context.namespace[f"block_{block.index}"] for block in blocks]
    return Code(blocks, functions, context.sites, context.kinds, source)
