"""The registry of instructions: patterns of opcodes, and the rules that translate the matching opcodes.

A pattern is an opcode with choices in braces: `add{sat}.{t}` with `sat=("", ".sat")` and `t=("s32", "u32")` accepts
four opcodes and no other. Patterns are kept as written. `lookup` matches them against the opcodes that a program
contains and keeps each answer; only tests enumerate a pattern, through `Pattern.expand`.

This module imports no instruction. The instruction modules import it, and `isa/__init__.py` imports them.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .. import ptx
from .emitter import Emitter

Emit = Callable[..., None]
#: Python code with the operands as {0}, {1}, ..., or a function that takes the choices by name and returns such code.
Expression = str | Callable[..., str]
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Rule:
    """The translation of an instruction.

    `emit(emitter, instruction)` writes the code; None writes nothing. `results` and `operands` are PTX types in operand
    order, and the first `writes` operands are destinations. `terminator` ("branch" or "exit") ends a basic block;
    `gate` (like a basic block's) marks where lanes may have to wait for others. `waits` marks a read with which a loop
    can wait for another thread. With `ftz`, float32 operands are flushed first; the code flushes its own result.
    `carry` tells whether the carry flag is (read, written).
    """

    emit: Emit | None
    results: tuple[str, ...] = ()
    operands: tuple[str, ...] = ()
    writes: int = 1
    terminator: str = ""
    gate: str = ""
    waits: bool = False
    ftz: bool = False
    carry: tuple[bool, bool] = (False, False)


@dataclass(frozen=True)
class Pattern:
    """Opcodes that share a rule. `spellings` are the orders in which compilers write the same modifiers; each one is
    literal text and the names of choices by turns. `build` makes the rule from the value of each choice."""

    spellings: tuple[tuple[str, ...], ...]
    choices: dict[str, tuple[str, ...]]
    build: Callable[[dict[str, str]], Rule]

    def match(self, opcode: str) -> dict[str, str] | None:
        """Return the value of each choice in `opcode`; None if the pattern does not accept it."""
        return next((found for spelling in self.spellings for found in self._read(opcode, spelling, {})), None)

    def readings(self, opcode: str) -> list[dict[str, str]]:
        """Yield every way to match `opcode`; more than one with equal values only if two spellings coincide."""
        return [found for spelling in self.spellings for found in self._read(opcode, spelling, {})]

    def expand(self) -> set[str]:
        """Yield every opcode that the pattern accepts: for tests, not for translating."""
        return {opcode for spelling in self.spellings for opcode in self._write(spelling)}

    def mnemonics(self) -> set[str]:
        """The part of each opcode before its first dot."""
        return {mnemonic for spelling in self.spellings for mnemonic in self._mnemonics(spelling)}

    def _read(self, text: str, spelling: tuple[str, ...], chosen: dict[str, str]) -> Iterator[dict[str, str]]:
        literal, *rest = spelling
        if not text.startswith(literal):
            return
        text = text[len(literal) :]
        if not rest:
            if not text:
                yield chosen
            return
        name, *rest = rest
        for value in (chosen[name],) if name in chosen else self.choices[name]:
            if text.startswith(value):
                yield from self._read(text[len(value) :], rest, {**chosen, name: value})

    def _write(self, spelling: tuple[str, ...]) -> Iterator[str]:
        for values in itertools.product(*self.choices.values()):
            chosen = dict(zip(self.choices, values, strict=True))
            yield "".join(chosen[part] if index % 2 else part for index, part in enumerate(spelling))

    def _mnemonics(self, spelling: tuple[str, ...]) -> Iterator[str]:
        starts = {""}
        for index, part in enumerate(spelling):
            longer = {start + value for start in starts for value in (self.choices[part] if index % 2 else (part,))}
            yield from {text.partition(".")[0] for text in longer if "." in text}
            starts = {text for text in longer if "." not in text}
        yield from starts


HELPERS: dict[str, Callable] = {}
_patterns: dict[str, list[Pattern]] = {}
_registered: set[tuple] = set()


def patterns() -> list[Pattern]:
    """Return the registered patterns, each once."""
    return list({id(pattern): pattern for each in _patterns.values() for pattern in each}.values())


def patterns_of(opcode: str) -> Sequence[Pattern]:
    """Return the patterns of the opcode's mnemonic."""
    return _patterns.get(opcode.partition(".")[0], ())


@functools.cache
def lookup(opcode: str) -> Rule | None:
    """Return the rule for a full opcode; None if no pattern accepts it."""
    for pattern in patterns_of(opcode):
        chosen = pattern.match(opcode)
        if chosen is not None:
            return pattern.build(chosen)
    return None


def register(*opcodes: str, rule: Rule | Callable[[dict[str, str]], Rule], **choices: tuple[str, ...]) -> None:
    """Register a rule, or a function from the value of each choice to a rule, for the opcodes of a pattern.

    Several `opcodes` are spellings of one instruction and have the same choices. Raises ValueError if the same pattern
    is registered already, or if its fields are not the choices. Patterns that differ and overlap are found by a test.
    """
    for name, values in choices.items():
        if isinstance(values, str) or not values or len(set(values)) != len(values):
            raise ValueError(f"{opcodes[0]}: the choice {name} is not a tuple of distinct values: {values!r}")
    for opcode in opcodes:
        if (opcode, *choices.items()) in _registered:
            raise ValueError(f"two rules for {opcode}")
        if set(_FIELD.findall(opcode)) != set(choices):
            raise ValueError(f"the fields of {opcode} are not the choices {', '.join(choices) or '(none)'}")
    _registered.update((opcode, *choices.items()) for opcode in opcodes)
    build = (lambda chosen: rule) if isinstance(rule, Rule) else rule
    pattern = Pattern(tuple(tuple(_FIELD.split(opcode)) for opcode in opcodes), choices, build)
    for mnemonic in pattern.mnemonics():
        _patterns.setdefault(mnemonic, []).append(pattern)
    lookup.cache_clear()


def simple(
    opcode: str, result: str, operands: tuple[str, ...], expression: Expression, /, **choices: tuple[str, ...]
) -> None:
    """Register `opcode` as one NumPy expression of its operands {0}, {1}, ...

    Types and expression may name the choices: "{t}". The choice `ftz`, where it is not empty, flushes float32 operands;
    the expression flushes the result. Raises ValueError if a type or the expression names anything else.
    """
    known = {*choices, *map(str, range(len(operands)))}
    for text in (result, *operands) if callable(expression) else (result, *operands, expression):
        unknown = set(_FIELD.findall(text)) - known
        if unknown:
            raise ValueError(f"{opcode}: {', '.join(sorted(unknown))} is neither a choice nor an operand")

    def build(chosen: dict[str, str]) -> Rule:
        code = expression(**chosen) if callable(expression) else expression
        kinds = _filled(operands, chosen)
        (target,) = _filled((result,), chosen)
        ftz = bool(chosen.get("ftz"))
        return Rule(_evaluate(_fill(code, chosen), target, kinds, ftz), (target,), kinds, ftz=ftz)

    register(opcode, rule=build, **choices)


def special(
    *opcodes: str, results: tuple[str, ...] = (), operands: tuple[str, ...] = (), writes: int = 1, gate: str = "",
    waits: bool = False, carry: tuple[bool, bool] = (False, False), **choices: tuple[str, ...],
) -> Callable[[Emit], Emit]:  # fmt: skip
    """Register a function as the translation of `opcodes`, which are spellings of one instruction.

    The function is called with the emitter, the instruction, and the value of each choice by name. `results` and
    `operands` may name the choices: "{t}". The other arguments are those of `Rule`.
    """

    def decorate(emit: Emit) -> Emit:
        def build(chosen: dict[str, str]) -> Rule:
            types = _filled(results, chosen), _filled(operands, chosen)
            bound = functools.partial(emit, **chosen) if chosen else emit
            return Rule(bound, *types, writes=writes, gate=gate, waits=waits, carry=carry)

        register(*opcodes, rule=build, **choices)
        return emit

    return decorate


def helper(function: Callable) -> Callable:
    """Make a function callable from generated code, under its own name.

    Raises ValueError if another helper has that name.
    """
    if HELPERS.setdefault(function.__name__, function) is not function:
        raise ValueError(f"two helpers are named {function.__name__}")
    return function


def _fill(text: str, chosen: dict[str, str]) -> str:
    """Return `text` with the values of choices; the fields {0}, {1}, ... stay."""
    return _FIELD.sub(lambda found: chosen.get(found[1], found[0]), text)


def _filled(texts: Iterable[str], chosen: dict[str, str]) -> tuple[str, ...]:
    return tuple(_fill(text, chosen) for text in texts)


def _evaluate(code: str, result: str, operands: tuple[str, ...], ftz: bool) -> Emit:
    """Write `code`, an expression of the sources, to the destination."""

    def emit(emitter: Emitter, instruction: ptx.Instruction) -> None:
        sources = emitter.sources(instruction)
        if ftz:
            sources = [
                emitter.flushed(source) if kind == "f32" else source
                for source, kind in zip(sources, operands, strict=True)
            ]
        emitter.write(instruction.operands[0], result, code.format(*sources))
        if ftz and result == "f32":
            emitter.mark_flushed(instruction.operands[0])

    return emit
