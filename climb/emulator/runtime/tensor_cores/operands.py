"""Codes of the formats that tensor cores multiply, as values and exponents."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from ...isa.eight_bits import EIGHT_BITS, values_of
from ...isa.half import widen

INTEGERS = ("s8", "u8", "s4", "u4", "b1", "s32")
ZERO = -4000  # stands for the exponent of zero: below all others, even in a sum of two
_FIELDS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}  # exponent, fraction bits
LEAST_EXPONENT = {kind: 2 - (1 << bits - 1) for kind, (bits, _) in _FIELDS.items()}


class Operand(NamedTuple):
    """Elements of a matrix: `value` float64, exact; `exponent` int16, the power of two of the significand's first
    place, which subnormal numbers have not set, and `ZERO` for zeros."""

    value: np.ndarray
    exponent: np.ndarray


def exponents(value: np.ndarray, least: int) -> np.ndarray:
    """Return the exponents of float64 values, at least `least`; `ZERO` for zero. For infinities and NaN they are
    arbitrary."""
    _, power = np.frexp(value)
    found = np.maximum(power.astype(np.int16) - np.int16(1), np.int16(least))
    return np.where(value == 0, np.int16(ZERO), found)


@functools.cache
def _table(kind: str) -> Operand:
    """Return the operands of all codes of a format of 8 or 16 bits."""
    if kind in EIGHT_BITS:
        value = values_of(kind)
    else:
        value = widen(np.arange(1 << 16, dtype=np.uint16), kind)
    return Operand(value, exponents(value, LEAST_EXPONENT[kind]))


def decode_normal(codes: np.ndarray, kind: str) -> Operand:
    """Like `decode`, for codes converted to a format with more exponents first, which normalises subnormals."""
    value = decode(codes, kind).value
    return Operand(value, exponents(value, LEAST_EXPONENT["f16" if kind in EIGHT_BITS else "f32"]))


def decode(codes: np.ndarray, kind: str) -> Operand:
    """Decode codes of "f16", "bf16", "e4m3", "e5m2", "f32" or "tf32"; the lower 13 bits of tf32 are ignored."""
    if kind in ("f32", "tf32"):
        if kind == "tf32":
            codes = codes & np.uint32(0xFFFFE000)
        value = codes.view(np.float32).astype(np.float64)
        return Operand(value, exponents(value, LEAST_EXPONENT["f32"]))
    table = _table(kind)
    return Operand(table.value.take(codes), table.exponent.take(codes))


def integers(codes: np.ndarray, kind: str) -> np.ndarray:
    """Return codes of an integer type as float64; "b1" as 0 and 1."""
    if kind == "s8":
        return codes.view(np.int8).astype(np.float64)
    if kind == "s4":
        return ((codes ^ np.uint8(8)).astype(np.int8) - np.int8(8)).astype(np.float64)
    return codes.astype(np.float64)
