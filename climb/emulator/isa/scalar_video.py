"""Scalar video instructions: 32-bit arithmetic on bytes or halves of registers, with a second operation or a merge.

PTX ISA, "Video Instructions". The operands are extended by the sign of their type; the result is clamped (`.sat`) to
the destination, then combined with c (`.add`, `.min`, `.max`), or written to a part of c.
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
_SECOND = {"add": np.add, "min": np.minimum, "max": np.maximum}


@helper
def video_part(word: np.ndarray, selector: str, signed: bool) -> np.ndarray:
    """A part of uint32 words, extended to int64."""
    start, bits = PARTS[selector]
    found = word.astype(np.int64) >> start & (1 << bits) - 1
    return found - ((found >> bits - 1) << bits) if signed else found


@helper
def scalar_video(
    name: str, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, signed: bool, sat: bool, second: str, target: str
) -> np.ndarray:
    """The operation on int64 values, then `.sat`, then `second` with c or the merge into the part `target` of c."""
    value = _OPERATIONS[name](a, b).astype(np.int64)
    start, bits = PARTS[target]
    if sat:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        value = np.clip(value, low, high)
    if second:
        value = _SECOND[second](value, video_part(c, "", signed))
    value = value & 0xFFFFFFFF
    if target:
        mask = (1 << bits) - 1
        value = (value & mask) << start | c.astype(np.int64) & ~(mask << start)
    return value.astype(np.uint32)


def _selected(operand: ptx.Operand) -> tuple[ptx.Operand, str, bool]:
    if isinstance(operand, ptx.Part):
        return operand.register, operand.selector, operand.negative
    return operand, "", False


def _source(emitter: Emitter, operand: ptx.Operand, signed: bool) -> str:
    inner, selector, negative = _selected(operand)
    if negative or (selector and not _ONE_PART.fullmatch(selector)):
        emitter.refuse(f"the operand {'-' * negative}{selector} is not one byte or half")
    return f"video_part({emitter.read(inner, 'u32')}, '{selector}', {signed})"


def _emit(emitter: Emitter, instruction: ptx.Instruction, name: str, d: str, a: str, b: str, sat: str, second: str,
          wrap: str = "") -> None:  # fmt: skip
    target, first, other, *rest = instruction.operands
    register, selector, _ = _selected(target)
    left, right = _source(emitter, first, a == "s"), _source(emitter, other, b == "s")
    if name in ("shl", "shr"):
        right = f"({right} & 31)" if wrap else f"np.minimum({right}, 32)"
    if len(rest) != bool(second or selector):
        emitter.refuse("the third operand belongs to a second operation or to a part of the destination")
    c = emitter.read(rest[0], "u32") if rest else "None"
    arguments = f"{left}, {right}, {c}, {d == 's'}, {bool(sat)}, '{second[1:]}', '{selector}'"
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
def video_multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray, plus: int, shift: int, limits: tuple) -> np.ndarray:
    """a * b + c + `plus`, exactly, shifted right and clamped to `limits` if there are any; the low 32 bits."""
    whole = (a.astype(object) * b.astype(object) + c.astype(object) + plus) >> shift
    if limits:
        whole = np.minimum(np.maximum(whole, limits[0]), limits[1])
    return (whole & 0xFFFFFFFF).astype(np.uint32)


@special("vmad.{d}32.{a}32.{b}32{po}{sat}{scale}", results=("u32",), **_SIGNS, b=("u", "s"), po=("", ".po"),
         sat=("", ".sat"), scale=("", ".shr7", ".shr15"))  # fmt: skip
def _multiply(
    emitter: Emitter, instruction: ptx.Instruction, d: str, a: str, b: str, po: str, sat: str, scale: str
) -> None:
    """vmad d, {-}a, {-}b, {-}c. A negative product or c is complemented and one is added; `.po` adds one besides."""
    target, *operands = instruction.operands
    negative = [_selected(operand)[2] for operand in operands]
    plain = [ptx.Part(*_selected(operand)[:2]) for operand in operands]
    minus = negative[0] != negative[1]
    signed = a == "s" or b == "s" or minus or negative[2]
    first, second = _source(emitter, plain[0], a == "s"), _source(emitter, plain[1], b == "s")
    third = _source(emitter, plain[2], signed)
    first = f"-{first}" if minus else first
    third = f"-{third}" if negative[2] else third
    limits = ((-(2**31), 2**31 - 1) if signed else (0, 2**32 - 1)) if sat else ()
    shift = int(scale.removeprefix(".shr") or 0)
    code = f"video_multiply({first}, {second}, {third}, {int(bool(po))}, {shift}, {limits!r})"
    emitter.write(target, "u32", code)
