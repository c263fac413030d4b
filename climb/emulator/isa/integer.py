"""Integer arithmetic. PTX integers wrap; division truncates towards zero and never traps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import helper, simple, special
from .types import DTYPES, INTEGERS, SIGNED, UNSIGNED, WIDTHS, size

# The low bits of these are the same for both signs, so the destination chooses the dtype.
simple("add.{sign}16", "i16", ("i16", "i16"), "{0} + {1}", sign=("s", "u"))
simple("sub.{sign}{n}", "i{n}", ("i{n}", "i{n}"), "{0} - {1}", sign=("s", "u"), n=WIDTHS)
simple("mul.lo.{sign}{n}", "i{n}", ("i{n}", "i{n}"), "{0} * {1}", sign=("s", "u"), n=WIDTHS)
simple("mad.lo.{sign}{n}", "i{n}", ("i{n}", "i{n}", "i{n}"), "{0} * {1} + {2}", sign=("s", "u"), n=WIDTHS)
simple("neg.s{n}", "i{n}", ("i{n}",), "-{0}", n=WIDTHS)

for _narrow, _wide in {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}.items():
    _product = f"{{0}}.astype({DTYPES[_wide]}) * {{1}}.astype({DTYPES[_wide]})"
    simple(f"mad.wide.{_narrow}", _wide, (_narrow, _narrow, _wide), f"{_product} + {{2}}")
    if _narrow[1:] == "16":
        simple(f"mul.wide.{_narrow}", _wide, (_narrow, _narrow), _product)
    _high = f"(({_product}) >> {8 * size(_narrow)}).astype({DTYPES[_narrow]})"
    simple(f"mul.hi.{_narrow}", _narrow, (_narrow, _narrow), _high)
    simple(f"mad.hi.{_narrow}", _narrow, (_narrow, _narrow, _narrow), f"{_high} + {{2}}")


@special("add.{sign}{n}", results=("i{n}",), operands=("i{n}", "i{n}"), sign=("s", "u"), n=("32", "64"))
def _add(emitter: Emitter, instruction: ptx.Instruction, sign: str, n: str) -> None:
    """Emit a sum. If an address depends on it, record its origin, so that later accesses can reuse a pattern."""
    a, b = emitter.sources(instruction)
    code = f"moved_by({a}, {b})" if emitter.is_in_address(instruction.operands[0]) else f"{a} + {b}"
    emitter.write(instruction.operands[0], f"i{n}", code)


@special("mul.wide.{sign}32", results=("{sign}64",), operands=("{sign}32", "{sign}32"), sign=("s", "u"))
def _mul_wide(emitter: Emitter, instruction: ptx.Instruction, sign: str) -> None:
    """Emit a product of twice the width; its origin is recorded as for sums."""
    a, b = emitter.sources(instruction)
    tracked = emitter.is_in_address(instruction.operands[0])
    code = f"scaled({a}, {b})" if tracked else f"np.multiply({a}, {b}, dtype={DTYPES[sign + '64']})"
    emitter.write(instruction.operands[0], f"{sign}64", code)


@helper
def mulhi_u64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper 64 bits of a 128-bit product, from four products of 32-bit halves."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    al, ah, bl, bh = a & mask, a >> half, b & mask, b >> half
    low = al * bl
    middle = ah * bl + (low >> half)
    other = al * bh + (middle & mask)
    return ah * bh + (middle >> half) + (other >> half)


@helper
def mulhi_s64(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the upper 64 bits of a signed 128-bit product."""
    high = mulhi_u64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return high - np.where(a < 0, b, 0) - np.where(b < 0, a, 0)


simple("mul.hi.{t}", "{t}", ("{t}", "{t}"), "mulhi_{t}({0}, {1})", t=("s64", "u64"))
simple("mad.hi.{t}", "{t}", ("{t}", "{t}", "{t}"), "mulhi_{t}({0}, {1}) + {2}", t=("s64", "u64"))


@helper
def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the quotient, truncated towards zero. Division by zero sets all bits, as NVIDIA GPUs do; PTX leaves it
    open."""
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
    """Return a - divide(a, b) * b, which has the sign of a; for b = 0 it is a."""
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
    """Return the lower 32 bits of the product of the lower 24 bits, sign-extended for signed types."""
    shift = a.dtype.type(8)
    return (((a << shift) >> shift) * ((b << shift) >> shift)).astype(a.dtype)


simple("mul24.lo.{t}", "{t}", ("{t}", "{t}"), "mul24({0}, {1})", t=("s32", "u32"))
simple("mad24.lo.{t}", "{t}", ("{t}", "{t}", "{t}"), "mul24({0}, {1}) + {2}", t=("s32", "u32"))


@helper
def mul24_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return bits 16 to 47 of the product of the lower 24 bits, sign-extended for signed types."""
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    shift = a.dtype.type(8)
    return ((((a << shift) >> shift).astype(wide) * ((b << shift) >> shift).astype(wide)) >> 16).astype(a.dtype)


_HIGH = "(({0}.astype(int64) * {1}.astype(int64)) >> 32)"
simple("mul24.hi.{t}", "{t}", ("{t}", "{t}"), "mul24_high({0}, {1})", t=("s32", "u32"))
simple("mad24.hi.{t}", "{t}", ("{t}", "{t}", "{t}"), "mul24_high({0}, {1}) + {2}", t=("s32", "u32"))
simple("mad24.hi.sat.s32", "s32", ("s32", "s32", "s32"), "saturating(mul24_high({0}, {1}), {2})")
simple("mad.hi.sat.s32", "s32", ("s32", "s32", "s32"), f"saturating({_HIGH}, {{2}})")


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
    """Extract `bits` bits of uint32 words from bit `start` on, as int64."""
    found = word.astype(np.int64) >> start & (1 << bits) - 1
    return found - ((found >> bits - 1) << bits) if signed else found


@helper
def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray, signed: tuple[bool, bool], bits: int, first: int) -> np.ndarray:
    """Add to c the dot product of the `bits`-bit parts of a and the bytes of b from byte `first` on; uint32."""
    out = c.astype(np.int64)
    for i in range(32 // bits):
        out = out + part(a, bits * i, bits, signed[0]) * part(b, 8 * (first + i), 8, signed[1])
    return out.astype(np.uint32)


def _dot_product(bits: int, first: int) -> Callable[[str, str], str]:
    return lambda a, b: f"dot({{0}}, {{1}}, {{2}}, {(a == 's', b == 's')}, {bits}, {first})"


for _name, _bits, _first in (("dp4a", 8, 0), ("dp2a.lo", 16, 0), ("dp2a.hi", 16, 2)):
    simple(
        f"{_name}.{{a}}32.{{b}}32", "u32", ("u32", "u32", "u32"), _dot_product(_bits, _first),
        a=("s", "u"), b=("s", "u"),
    )  # fmt: skip
