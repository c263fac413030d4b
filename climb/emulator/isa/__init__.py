"""The instructions that the emulator runs: an allow-list keyed on the full opcode with its modifiers.

To add one, register a rule in the module that it belongs to. A rule without memory or control flow is one line:

    simple("add.{t}", "{t}", ("{t}", "{t}"), "{0} + {1}", t=("s32", "u32"))

the opcode, the type of the result, the types of the operands, and the NumPy expression, in which helper functions of
`isa.numeric`-like modules may be named once they are registered with `@helper`. Types are PTX types; `i32` stands for
"32-bit integer of either sign" and `b32` for "any 32 bits": the operands are then given in the type that the
destination register has.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import ptx

Emitter = Any
Emit = Callable[[Emitter, ptx.Instruction], None]


@dataclass(frozen=True)
class Rule:
    """How one opcode is translated.

    `results` and `operands` are PTX types in operand order; `emit` writes the code. `writes` is how many leading
    operands are destinations. `terminator` marks control flow, `gate` an instruction at which lanes may have to wait
    for others. With `ftz` the float32 operands are flushed before, and the code flushes its result.
    `carry` tells whether the carry flag is (read, written).
    """

    opcode: str
    emit: Emit | None
    results: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    writes: int = 1
    terminator: str = ""
    gate: str = ""
    waits: bool = False
    ftz: bool = False
    carry: tuple[bool, bool] = (False, False)


RULES: dict[str, Rule] = {}
HELPERS: dict[str, Any] = {}


def helper(function: Callable) -> Callable:
    """Make a function callable from generated code, under its own name."""
    HELPERS[function.__name__] = function
    return function


def register(rule: Rule) -> None:
    """Add a rule; an opcode has one only."""
    if rule.opcode in RULES:
        raise ValueError(f"two rules for {rule.opcode}")
    RULES[rule.opcode] = rule


def _expand(choices: dict[str, tuple[str, ...]]) -> list[dict[str, str]]:
    names = list(choices)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*choices.values())]


def simple(
    opcode: str,
    result: str,
    operands: tuple[str, ...],
    expression: str,
    ftz: bool = False,
    **choices: tuple[str, ...],
) -> None:
    """Register `opcode` as one NumPy expression of its operands {0}, {1}, ...

    {t} and others are filled from `choices`. With `ftz` the float32 operands are flushed; the expression flushes the
    result.
    """
    for choice in _expand(choices):
        kinds = tuple(kind.format(**choice) for kind in operands)
        full = opcode.format(**choice)
        code = expression
        for name, value in choice.items():
            code = code.replace("{" + name + "}", value)
        register(Rule(full, _expression(code), (result.format(**choice),), kinds, ftz=ftz))


def _expression(code: str) -> Emit:
    def emit(emitter: Emitter, instruction: ptx.Instruction) -> None:
        rule = RULES[instruction.opcode]
        sources = emitter.sources(instruction, rule)
        if rule.ftz:
            sources = [
                emitter.flushed(source) if kind == "f32" else source
                for source, kind in zip(sources, rule.operands, strict=True)
            ]
        emitter.write(instruction.operands[0], rule.results[0], code.format(*sources))
        if rule.ftz and rule.results[0] == "f32":
            emitter.mark_flushed(instruction.operands[0])

    return emit


def special(opcode: str, **kwargs: Any) -> Callable[[Emit], Emit]:
    """Register a function as the translation of an opcode; choices in braces are given as `choices={...}`."""
    choices = kwargs.pop("choices", {})

    def decorate(emit: Emit) -> Emit:
        for choice in _expand(choices):
            full = opcode.format(**choice)
            filled = {
                key: tuple(part.format(**choice) for part in value) if key in ("results", "operands") else value
                for key, value in kwargs.items()
            }
            register(Rule(full, emit, **filled))
        return emit

    return decorate


from . import (  # noqa: E402
    arithmetic,  # noqa: F401
    asynchronous,  # noqa: F401
    atomic,  # noqa: F401
    carry,  # noqa: F401
    compare,  # noqa: F401
    control,  # noqa: F401
    conversion,  # noqa: F401
    floating,  # noqa: F401
    half,  # noqa: F401
    half_pairs,  # noqa: F401
    logic,  # noqa: F401
    matrix,  # noqa: F401
    mbarrier,  # noqa: F401
    move,  # noqa: F401
    rounding,  # noqa: F401
    storage,  # noqa: F401
    system,  # noqa: F401
    texture,  # noqa: F401
    video,  # noqa: F401
    warp,  # noqa: F401
)
