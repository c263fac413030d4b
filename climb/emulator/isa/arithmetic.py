"""Integer arithmetic. PTX integers wrap; division truncates towards zero and never traps."""

from __future__ import annotations

import numpy as np

from . import helper, simple
from .types import INTEGERS, SIGNED, UNSIGNED

SIZES = ("16", "32", "64")


def _agnostic(name: str, expression: str, operands: int, kinds: str = "su") -> None:
    for kind in kinds:
        for bits in SIZES:
            simple(f"{name}.{kind}{bits}", f"i{bits}", (f"i{bits}",) * operands, expression)


_agnostic("add", "{0} + {1}", 2)
_agnostic("sub", "{0} - {1}", 2)
_agnostic("mul.lo", "{0} * {1}", 2)
_agnostic("mad.lo", "{0} * {1} + {2}", 3)
_agnostic("neg", "-{0}", 1, "s")

WIDE = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
NUMPY = {"s16": "int16", "u16": "uint16", "s32": "int32", "u32": "uint32", "s64": "int64", "u64": "uint64"}
for narrow, wide in WIDE.items():
    product = f"{{0}}.astype({NUMPY[wide]}) * {{1}}.astype({NUMPY[wide]})"
    simple(f"mul.wide.{narrow}", wide, (narrow, narrow), product)
    simple(f"mad.wide.{narrow}", wide, (narrow, narrow, wide), product + " + {2}")
    shift = str(8 * np.dtype(NUMPY[narrow]).itemsize)
    high = f"(({product}) >> {shift}).astype({NUMPY[narrow]})"
    simple(f"mul.hi.{narrow}", narrow, (narrow, narrow), high)
    simple(f"mad.hi.{narrow}", narrow, (narrow, narrow, narrow), high + " + {2}")


@helper
def mulhi_u64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper 64 bits of a 128-bit product, from four products of halves."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = a & mask, a >> half, b & mask, b >> half
    low = al * bl
    middle = ah * bl + (low >> half)
    other = al * bh + (middle & mask)
    return ah * bh + (middle >> half) + (other >> half)


@helper
def mulhi_s64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper 64 bits of a signed 128-bit product."""
    high = mulhi_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


for kind in ("s64", "u64"):
    simple(f"mul.hi.{kind}", kind, (kind, kind), f"mulhi_{kind}({{0}}, {{1}})")
    simple(f"mad.hi.{kind}", kind, (kind, kind, kind), f"mulhi_{kind}({{0}}, {{1}}) + {{2}}")


@helper
def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotient towards zero. By zero: all bits set, as NVIDIA GPUs return (PTX leaves it open)."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // safe
    else:
        # INT_MIN / -1 wraps to INT_MIN.
        minus = safe == -1
        safe = np.where(minus, b.dtype.type(1), safe)
        quotient = a // safe
        quotient += ((quotient < 0) & (quotient * safe != a)).astype(a.dtype)
        quotient = np.where(minus, -a, quotient)
    return np.where(zero, ~np.zeros((), b.dtype), quotient)


@helper
def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - divide(a, b) * b: the sign of a; by zero, a - (all bits set) * 0 = a."""
    if a.dtype.kind == "u" and b.shape == (1, 1):
        divisor = int(b[0, 0])
        if divisor and not divisor & (divisor - 1):
            return a & b.dtype.type(divisor - 1)
    return a - divide(a, b) * b


simple("div.{t}", "{t}", ("{t}", "{t}"), "divide({0}, {1})", t=INTEGERS)
simple("rem.{t}", "{t}", ("{t}", "{t}"), "remainder({0}, {1})", t=INTEGERS)
simple("min.{t}", "{t}", ("{t}", "{t}"), "np.minimum({0}, {1})", t=INTEGERS)
simple("max.{t}", "{t}", ("{t}", "{t}"), "np.maximum({0}, {1})", t=INTEGERS)
simple("abs.{t}", "{t}", ("{t}",), "np.abs({0})", t=SIGNED)


@helper
def mul24(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lower 32 bits of the product of the lower 24 bits, sign-extended for signed types."""
    shift = a.dtype.type(8)
    return (((a << shift) >> shift) * ((b << shift) >> shift)).astype(a.dtype)


simple("mul24.lo.{t}", "{t}", ("{t}", "{t}"), "mul24({0}, {1})", t=("s32", "u32"))
simple("mad24.lo.{t}", "{t}", ("{t}", "{t}", "{t}"), "mul24({0}, {1}) + {2}", t=("s32", "u32"))


@helper
def saturating(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Clamp the sum of two int32 values to int32."""
    wide = a.astype(np.int64) + b
    return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)


simple("add.sat.s32", "s32", ("s32", "s32"), "saturating({0}, {1})")
simple("sub.sat.s32", "s32", ("s32", "s32"), "saturating({0}, -{1}.astype(int64))")
simple("sad.{t}", "{t}", ("{t}", "{t}", "{t}"), "np.where({0} < {1}, {1} - {0}, {0} - {1}) + {2}", t=UNSIGNED + SIGNED)


@helper
def part(word: np.ndarray, start: int, bits: int, signed: bool) -> np.ndarray:
    """`bits` bits of uint32 words from bit `start` on, as int64."""
    found = word.astype(np.int64) >> start & (1 << bits) - 1
    return found - ((found >> bits - 1) << bits) if signed else found


@helper
def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, signed: tuple[bool, bool], bits: int, first: int) -> np.ndarray:
    """c plus the products of the parts of `a`, of `bits` bits, and of bytes of `b` from byte `first` on; uint32."""
    out = c.astype(np.int64)
    for i in range(32 // bits):
        out = out + part(a, bits * i, bits, signed[0]) * part(b, 8 * (first + i), 8, signed[1])
    return out.astype(np.uint32)


for _a in "su":
    for _b in "su":
        for _name, _bits, _first in (("dp4a", 8, 0), ("dp2a.lo", 16, 0), ("dp2a.hi", 16, 2)):
            _signs = f"({_a == 's'}, {_b == 's'})"
            _call = f"dot({{0}}, {{1}}, {{2}}, {_signs}, {_bits}, {_first})"
            simple(f"{_name}.{_a}32.{_b}32", "u32", ("u32", "u32", "u32"), _call)
