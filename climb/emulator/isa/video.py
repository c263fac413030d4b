"""SIMD on small integers packed in a word: two of 16 bits, or four of 8.

PTX ISA, "SIMD Video Instructions", and the packed forms of add, min and max.
"""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .integer import part
from .registry import helper, simple, special


def split(word: np.ndarray, bits: int, signed: bool) -> list[np.ndarray]:
    """Return the parts of uint32 words as int64, the lowest first."""
    return [part(word, start, bits, signed) for start in range(0, 32, bits)]


def joined(parts: list[np.ndarray], bits: int) -> np.ndarray:
    """Join the low bits of each part, as uint32 words."""
    out = np.zeros((1, 1), np.int64)
    for number, one in enumerate(parts):
        out = out | (one & (1 << bits) - 1) << bits * number
    return out.astype(np.uint32)


OPERATIONS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": np.minimum,
    "max": np.maximum,
    "absdiff": lambda a, b: np.abs(a - b),
    "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}


@helper
def pairwise(name: str, a: np.ndarray, b: np.ndarray, signed: bool, relu: bool = False) -> np.ndarray:
    """Apply an operation to both 16-bit halves; `relu` replaces negative results by zero."""
    found = [OPERATIONS[name](*both) for both in zip(split(a, 16, signed), split(b, 16, signed), strict=True)]
    return joined([np.maximum(one, 0) for one in found] if relu else found, 16)


simple(
    "{name}.{sign}16x2", "u32", ("u32", "u32"),
    lambda name, sign: f"pairwise('{name}', {{0}}, {{1}}, {sign == 's'})",
    name=("add", "min", "max"), sign=("u", "s"),
)  # fmt: skip
simple("{name}.s16x2.relu", "u32", ("u32", "u32"), "pairwise('{name}', {0}, {1}, True, True)", name=("min", "max"))
simple("{name}.s32.relu", "s32", ("s32", "s32"), "np.maximum(np.{name}imum({0}, {1}), int32(0))", name=("min", "max"))


#: The operations that compare; their results are 0 and 1.
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@helper
def video(
    name: str,
    bits: int,
    signed: tuple[bool, bool, bool],
    modifiers: tuple[str, ...],
    selected: tuple[tuple[int, ...], ...],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
) -> np.ndarray:
    """Apply an operation to parts of `bits` bits, and merge the results of the masked parts into c.

    With the modifier "add", return c plus the sum of these results instead, each with all its bits: ptxas makes
    vadd4.add two sums of four bytes. `signed` tells whether d, a and b are signed. `selected`: for a and for b the part
    that each operation takes, where the parts of b follow those of a; and the parts that the mask names.
    """
    function = OPERATIONS.get(name) or COMPARISONS[name]
    words = [split(a, bits, sign) + split(b, bits, sign) for sign in signed[1:]]
    pairs = zip(selected[0], selected[1], strict=True)
    found = [function(words[0][left], words[1][right]) for left, right in pairs]
    found = [one.astype(np.int64) for one in found]
    if "sat" in modifiers:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed[0] else (0, (1 << bits) - 1)
        found = [np.clip(one, low, high) for one in found]
    mask = selected[2]
    if "add" not in modifiers:
        return joined(
            [one if number in mask else split(c, bits, False)[number] for number, one in enumerate(found)], bits
        )
    return (sum(found[number] for number in mask) + c.astype(np.int64)).astype(np.uint32)


def _chosen(operand: ptx.Operand, default: str) -> tuple[ptx.Operand, tuple[int, ...]]:
    """Return the register of an operand, and the parts that its selector names, the lowest first: `.b3210`, `.h10`."""
    register, selector = (operand.register, operand.selector) if isinstance(operand, ptx.Part) else (operand, "")
    return register, tuple(int(digit) for digit in reversed(selector[1:] or default))


def _emit(
    emitter: Emitter, instruction: ptx.Instruction, name: str, n: str, d: str, a: str, b: str, sat: str, add: str
) -> None:
    signed = tuple(sign == "s" for sign in (d, a, b))
    modifiers = tuple(each[1:] for each in (sat, add) if each)
    every = "10" if n == "2" else "3210"
    others = "32" if n == "2" else "7654"
    target, first, second, third = instruction.operands
    (target, mask), (first, left), (second, right) = (
        _chosen(operand, default) for operand, default in ((target, every), (first, every), (second, others))
    )
    sources = ", ".join(emitter.read(each, "u32") for each in (first, second, third))
    code = (
        f"video('{name}', {32 // int(n)}, {signed!r}, {modifiers!r}, {(left, right, tuple(sorted(mask)))!r}, {sources})"
    )
    emitter.write(target, "u32", code)


_SHAPE = {"n": ("2", "4"), "a": ("u", "s"), "b": ("u", "s"), "add": ("", ".add")}
special(
    "v{name}{n}.{d}32.{a}32.{b}32{sat}{add}", results=("u32",), name=tuple(OPERATIONS), d=("u", "s"), sat=("", ".sat"),
    **_SHAPE,
)(_emit)  # fmt: skip


@special("vset{n}.{a}32.{b}32.{name}{add}", results=("u32",), name=tuple(COMPARISONS), **_SHAPE)
def _set(emitter: Emitter, instruction: ptx.Instruction, **choices: str) -> None:
    _emit(emitter, instruction, d="u", sat="", **choices)
