"""Scalar video instructions: 32-bit arithmetic on bytes or halves of registers, with a second operation or a merge.

PTX ISA, "Video Instructions". The operands are extended by the sign of their type; the result is clamped (`.sat`) to
the destination, then combined with c (`.add`, `.min`, `.max`).

No GPU since Maxwell has most of these instructions: ptxas replaces them, and not always by what the ISA says. Of 143
instructions, an H200 (driver 580.159) computed 33 differently. They have a part of a register as their destination,
take the minimum or maximum of c and a sum or difference, or are vmad with more than a product and a sum. According to
the machine code of ptxas 12.9, five more kinds differ from the ISA: `.sat` does not clamp a sum or difference that
exceeds an unsigned result, and clamps what is left of a vshl after 34 bits; a minimum or maximum with c takes a
negative result for a large unsigned one, the result of vset for a signed one, and cuts that of vshl. All these forms
are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from .. import ptx
from .comparison import SIGNS
from .emitter import Emitter
from .registry import helper, special

PARTS = {"": (0, 32), **{f"b{n}": (8 * n, 8) for n in range(4)}, "h0": (0, 16), "h1": (16, 16)}
_ONE_PART = re.compile(r"b[0-3]|h[01]")
_OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "absdiff": lambda a, b: np.abs(a - b),
    "min": np.minimum,
    "max": np.maximum,
    "shl": lambda a, b: np.where(b < 32, a << np.minimum(b, 31), (a << 31) << 1),
    "shr": lambda a, b: a >> b,
    **{sign: getattr(np, {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
                          "ge": "greater_equal"}[sign]) for sign in SIGNS},
}  # fmt: skip
UNLIKE = "a GPU does not compute this form as the PTX ISA says, so the emulator does not run it"
_SECOND = {"add": np.add, "min": np.minimum, "max": np.maximum}


@helper
def video_part(word: np.ndarray, selector: str, signed: bool) -> np.ndarray:
    """Return a part of uint32 words, extended to int64."""
    start, bits = PARTS[selector]
    found = word.astype(np.int64) >> start & (1 << bits) - 1
    return found - ((found >> bits - 1) << bits) if signed else found


@helper
def scalar_video(
    name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, signed: bool, sat: bool, second: str
) -> np.ndarray:
    """Apply the operation on int64 values, then `.sat`, then `second` with c."""
    value = _OPERATIONS[name](a, b).astype(np.int64)
    if sat:
        low, high = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
        value = np.clip(value, low, high)
    if second:
        value = _SECOND[second](value, video_part(c, "", signed))
    return (value & 0xFFFFFFFF).astype(np.uint32)


def _selected(operand: ptx.Operand) -> tuple[ptx.Operand, str, bool]:
    if isinstance(operand, ptx.Part):
        return operand.register, operand.selector, operand.negative
    return operand, "", False


def _source(emitter: Emitter, operand: ptx.Operand, signed: bool) -> str:
    inner, selector, negative = _selected(operand)
    if negative or (selector and not _ONE_PART.fullmatch(selector)):
        emitter.refuse(f"the operand {'-' * negative}{selector} is not one byte or half")
    return f"video_part({emitter.read(inner, 'u32')}, '{selector}', {signed})"


def _range(operand: ptx.Operand, signed: bool) -> tuple[int, int]:
    """Return the least and the greatest value of a source."""
    bits = PARTS[_selected(operand)[1]][1]
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def _unlike(name: str, first: ptx.Operand, other: ptx.Operand, signs: tuple[str, str, str], sat: str, second: str,
            ) -> bool:  # fmt: skip
    """Return whether ptxas compiles an instruction to something other than the ISA says."""
    bound = second in (".min", ".max")
    (low, high), (least, most) = _range(first, signs[1] == "s"), _range(other, signs[2] == "s")
    if name in ("add", "sub", "absdiff"):
        greatest = {"add": high + most, "sub": high - least, "absdiff": max(high - least, most - low)}[name]
        return (bound and name != "absdiff") or (bool(sat) and signs[0] == "u" and greatest >= 1 << 32)
    if name == "shl":
        return bound or bool(sat)
    if name in SIGNS:
        return bound and "s" in signs
    lowest = {"min": min(low, least), "max": max(low, least), "shr": low}[name]
    return bound and not sat and signs[0] == "u" and lowest < 0


def _emit(emitter: Emitter, instruction: ptx.Instruction, name: str, d: str, a: str, b: str, sat: str, second: str,
          wrap: str = "") -> None:  # fmt: skip
    target, first, other, *rest = instruction.operands
    register, selector, _ = _selected(target)
    left, right = _source(emitter, first, a == "s"), _source(emitter, other, b == "s")
    if selector or _unlike(name, first, other, (d, a, b), sat, second):
        emitter.refuse(UNLIKE)
    if name in ("shl", "shr"):
        right = f"({right} & 31)" if wrap else f"np.minimum({right}, 32)"
    if len(rest) != bool(second):
        emitter.refuse("the third operand belongs to a second operation")
    c = emitter.read(rest[0], "u32") if rest else "None"
    arguments = f"{left}, {right}, {c}, {d == 's'}, {bool(sat)}, '{second[1:]}'"
    emitter.write(register, "u32", f"scalar_video('{name}', {arguments})")


_SIGNS = {"d": ("u", "s"), "a": ("u", "s")}
_LATER = {"sat": ("", ".sat"), "second": ("", ".add", ".min", ".max")}
special("v{name}.{d}32.{a}32.{b}32{sat}{second}", results=("u32",), name=("add", "sub", "absdiff", "min", "max"),
        **_SIGNS, b=("u", "s"), **_LATER)(_emit)  # fmt: skip


@special("v{name}.{d}32.{a}32.u32{sat}.{mode}{second}", results=("u32",), name=("shl", "shr"), **_SIGNS,
         mode=("clamp", "wrap"), **_LATER)  # fmt: skip
def _shift(emitter: Emitter, instruction: ptx.Instruction, mode: str, **choices: str) -> None:
    _emit(emitter, instruction, b="u", wrap=mode.removeprefix("clamp"), **choices)


@special("vset.{a}32.{b}32.{name}{second}", results=("u32",), name=tuple(SIGNS), a=("u", "s"), b=("u", "s"),
         second=_LATER["second"])  # fmt: skip
def _set(emitter: Emitter, instruction: ptx.Instruction, **choices: str) -> None:
    _emit(emitter, instruction, d="u", sat="", **choices)


@helper
def video_multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return the low 32 bits of a * b + c."""
    return (a * b + c & 0xFFFFFFFF).astype(np.uint32)


@special("vmad.{d}32.{a}32.{b}32{po}{sat}{scale}", results=("u32",), **_SIGNS, b=("u", "s"), po=("", ".po"),
         sat=("", ".sat"), scale=("", ".shr7", ".shr15"))  # fmt: skip
def _multiply(
    emitter: Emitter, instruction: ptx.Instruction, d: str, a: str, b: str, po: str, sat: str, scale: str
) -> None:
    target, *operands = instruction.operands
    if po or sat or scale or any(_selected(operand)[2] for operand in operands):
        emitter.refuse(UNLIKE)
    first, second, third = (
        _source(emitter, operand, sign) for operand, sign in zip(operands, (a == "s", b == "s", False), strict=True)
    )
    emitter.write(target, "u32", f"video_multiply({first}, {second}, {third})")
