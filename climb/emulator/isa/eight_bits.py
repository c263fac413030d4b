"""The 8-bit floating-point formats e4m3 and e5m2: their values, rounding to them, and cvt.

Both are those of Micikevicius et al., "FP8 formats for deep learning" (2022): e5m2 has the infinities and NaN of
IEEE 754, e4m3 has no infinities and one NaN of each sign, 0x7f and 0xff.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import ptx
from .emitter import Emitter
from .half import narrow, widen
from .registry import helper, special

EIGHT_BITS = ("e4m3", "e5m2")
_LARGEST = {"e4m3": 0x7E, "e5m2": 0x7B}  # codes of the largest finite values
_NAN = np.uint8(0x7F)


@functools.cache
def values_of(kind: str) -> np.ndarray:
    """Return the values of all 256 codes of a format: float64 (256,)."""
    fraction_bits = int(kind[3])
    exponent_bits = 7 - fraction_bits
    bias = (1 << exponent_bits - 1) - 1
    code = np.arange(256)
    field, fraction = code >> fraction_bits & (1 << exponent_bits) - 1, code & (1 << fraction_bits) - 1
    significand = np.where(field > 0, fraction + (1 << fraction_bits), fraction)
    value = np.ldexp(significand.astype(np.float64), np.maximum(field, 1) - bias - fraction_bits)
    largest = _LARGEST[kind]
    value = np.where(code & 0x7F > largest, np.nan, value)
    if kind == "e5m2":
        value = np.where(code & 0x7F == largest + 1, np.inf, value)
    return np.where(code > 0x7F, -value, value)


@helper
def widen_byte(codes: np.ndarray, kind: str) -> np.ndarray:
    """Codes of a format (uint8) as float64."""
    return values_of(kind).take(codes)


@helper
def narrow_byte(value: np.ndarray, kind: str) -> np.ndarray:
    """Round float64 to nearest, ties to even, and saturate to the largest finite value; NaN becomes 0x7f. uint8."""
    positive = values_of(kind)[: _LARGEST[kind] + 1]
    between = (positive[1:] + positive[:-1]) / 2
    size = np.abs(value)
    low, high = np.searchsorted(between, size, "left"), np.searchsorted(between, size, "right")
    code = np.where(low & 1, high, low).astype(np.uint8)  # at a tie the two differ: take the even one
    code |= np.signbit(value).astype(np.uint8) << np.uint8(7)
    return np.where(np.isnan(value), _NAN, code)


@helper
def bytes_from_floats(high: np.ndarray, low: np.ndarray, kind: str, relu: bool) -> np.ndarray:
    """cvt.rn.satfinite{.relu}.KINDx2.f32: two float32 as a pair of codes, uint16."""
    parts = [narrow_byte(_relu(each.astype(np.float64), relu), kind).astype(np.uint16) for each in (high, low)]
    return parts[0] << np.uint16(8) | parts[1]


@helper
def bytes_from_halves(pair: np.ndarray, kind: str, relu: bool) -> np.ndarray:
    """cvt.rn.satfinite{.relu}.KINDx2.f16x2: two float16 (uint32) as a pair of codes, uint16."""
    halves = [widen((pair >> np.uint32(shift)).astype(np.uint16), "f16") for shift in (16, 0)]
    codes = [narrow_byte(_relu(each, relu), kind).astype(np.uint16) for each in halves]
    return codes[0] << np.uint16(8) | codes[1]


@helper
def halves_from_bytes(pair: np.ndarray, kind: str, relu: bool) -> np.ndarray:
    """cvt.rn{.relu}.f16x2.KINDx2: a pair of codes (uint16) as two float16, uint32. Every value of both is a float16."""
    values = [_relu(values_of(kind).take(pair >> np.uint16(shift) & np.uint16(255)), relu) for shift in (8, 0)]
    bits = [narrow(each, "f16").astype(np.uint32) for each in values]
    return bits[0] << np.uint32(16) | bits[1]


def _relu(value: np.ndarray, relu: bool) -> np.ndarray:
    return np.where(value <= 0, 0.0, value) if relu else value


_CHOICES = {"relu": ("", ".relu"), "kind": EIGHT_BITS}


@special("cvt.rn.satfinite{relu}.{kind}x2.f32", results=("u16",), operands=("f32", "f32"), **_CHOICES)
def _from_floats(emitter: Emitter, instruction: ptx.Instruction, relu: str, kind: str) -> None:
    high, low = (emitter.read(each, "f32") for each in instruction.operands[1:])
    emitter.write(instruction.operands[0], "u16", f"bytes_from_floats({high}, {low}, '{kind}', {bool(relu)})")


@special("cvt.rn.satfinite{relu}.{kind}x2.f16x2", results=("u16",), operands=("u32",), **_CHOICES)
def _from_halves(emitter: Emitter, instruction: ptx.Instruction, relu: str, kind: str) -> None:
    pair = emitter.read(instruction.operands[1], "u32")
    emitter.write(instruction.operands[0], "u16", f"bytes_from_halves({pair}, '{kind}', {bool(relu)})")


@special("cvt.rn{relu}.f16x2.{kind}x2", results=("u32",), operands=("u16",), **_CHOICES)
def _to_halves(emitter: Emitter, instruction: ptx.Instruction, relu: str, kind: str) -> None:
    pair = emitter.read(instruction.operands[1], "u16")
    emitter.write(instruction.operands[0], "u32", f"halves_from_bytes({pair}, '{kind}', {bool(relu)})")
