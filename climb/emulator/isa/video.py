"""SIMD on small integers packed in a word: two of 16 bits, or four of 8.

PTX ISA, "SIMD Video Instructions", without byte selections and masks, which the compiler does not write; and the packed
forms of add, min and max.
"""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .integer import part
from .registry import helper, simple, special


def split(word: np.ndarray, bits: int, signed: bool) -> list[np.ndarray]:
    """The parts of uint32 words as int64, the lowest first."""
    return [part(word, start, bits, signed) for start in range(0, 32, bits)]


def joined(parts: list[np.ndarray], bits: int) -> np.ndarray:
    """The low bits of each part, as uint32 words."""
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


@helper
def video(
    name: str,
    bits: int,
    signed: tuple[bool, bool, bool],
    modifiers: tuple[str, ...],
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
) -> np.ndarray:
    """Apply an operation to the parts of `bits` bits; with the modifier "add", return c plus the sum of the results.

    `signed` tells whether d, a and b are signed.
    """
    found = [OPERATIONS[name](*both) for both in zip(split(a, bits, signed[1]), split(b, bits, signed[2]), strict=True)]
    if "sat" in modifiers:
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed[0] else (0, (1 << bits) - 1)
        found = [np.clip(one, low, high) for one in found]
    if "add" not in modifiers:
        return joined(found, bits)
    parts = split(joined(found, bits), bits, signed[0])
    return (sum(parts) + c.astype(np.int64)).astype(np.uint32)


@special(
    "v{name}{n}.{d}32.{a}32.{b}32{sat}{add}", results=("u32",), operands=("u32", "u32", "u32"), name=tuple(OPERATIONS),
    n=("2", "4"), d=("u", "s"), a=("u", "s"), b=("u", "s"), sat=("", ".sat"), add=("", ".add"),
)  # fmt: skip
def _video(
    emitter: Emitter, instruction: ptx.Instruction, name: str, n: str, d: str, a: str, b: str, sat: str, add: str
) -> None:
    signed = tuple(sign == "s" for sign in (d, a, b))
    modifiers = tuple(each[1:] for each in (sat, add) if each)
    sources = ", ".join(emitter.sources(instruction))
    code = f"video('{name}', {32 // int(n)}, {signed!r}, {modifiers!r}, {sources})"
    emitter.write(instruction.operands[0], "u32", code)
