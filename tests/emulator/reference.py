"""The results of PTX instructions, one thread at a time, from Python integers and fractions, independent of NumPy."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

#: By format: bits of the significand, exponents of the smallest and the largest power of two, `struct` codes.
FORMATS = {
    "f32": (24, -149, 127, "<f", "<I"), "f64": (53, -1074, 1023, "<d", "<Q"),
    "f16": (11, -24, 15, "<e", "<H"), "bf16": (8, -133, 127, "", ""),
}  # fmt: skip


def wrap(value: int, kind: str) -> int:
    """The value modulo 2^width, in the range of the type."""
    bits = int(kind[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def limits(kind: str) -> tuple[int, int]:
    """The least and largest value of an integer type."""
    bits = int(kind[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)


def truncated_division(a: int, b: int, kind: str) -> int:
    """The quotient, rounded towards zero; all bits set for division by zero."""
    if b == 0:
        return wrap(-1, kind)
    quotient = abs(a) // abs(b)
    return wrap(-quotient if (a < 0) != (b < 0) else quotient, kind)


def remainder(a: int, b: int, kind: str) -> int:
    """The remainder of `truncated_division`."""
    return wrap(a - truncated_division(a, b, kind) * b, kind)


def bits_of(value: float, kind: str) -> int:
    """The bit pattern of a value that the format holds exactly."""
    _, _, _, pack, unpack = FORMATS[kind]
    return struct.unpack(unpack, struct.pack(pack, value))[0]


def round_to(value: Fraction, kind: str, mode: str = "rn", zero: float = 0.0) -> float:
    """The fraction rounded to the format in the given mode; `zero` is the result for an exact zero."""
    if value == 0:
        return zero
    precision, lowest, highest, _, _ = FORMATS[kind]
    sign, above, below = (-1 if value < 0 else 1), abs(value.numerator), value.denominator
    exponent = above.bit_length() - below.bit_length()
    if below << max(exponent, 0) > above << max(-exponent, 0):
        exponent -= 1
    unit = max(exponent - precision + 1, lowest)
    below <<= max(unit, 0)
    whole, rest = divmod(above << max(-unit, 0), below)
    up = {
        "rn": 2 * rest > below or (2 * rest == below and whole & 1),
        "rz": False,
        "rm": sign < 0 and rest > 0,
        "rp": sign > 0 and rest > 0,
    }[mode]
    whole += bool(up)
    most, top = (1 << precision) - 1, highest - precision + 1  # the largest value is most * 2^top
    if unit >= top and whole << (unit - top) > most:
        stay = mode == "rz" or (mode == "rm" and sign > 0) or (mode == "rp" and sign < 0)
        return sign * (math.ldexp(most, top) if stay else math.inf)
    return sign * math.ldexp(whole, unit)


def _special(*values: float) -> bool:
    return any(math.isnan(v) or math.isinf(v) for v in values)


def _times(a: float, b: float) -> float:
    """a * b, if one of them is infinite or NaN."""
    return a * b


def fma(a: float, b: float, c: float, kind: str, mode: str = "rn") -> float:
    """a * b + c rounded once."""
    if _special(a, b, c):
        if _special(a, b):
            product = _times(a, b)
            return product + c if not (math.isinf(product) and math.isinf(c) and product != c) else math.nan
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    zero = 0.0
    if exact == 0:
        product_negative = math.copysign(1, a) * math.copysign(1, b) < 0
        if Fraction(a) * Fraction(b) == 0 and c == 0 and product_negative == (math.copysign(1, c) < 0):
            zero = c
        else:
            zero = -0.0 if mode == "rm" else 0.0
    return round_to(exact, kind, mode, zero)


def add(a: float, b: float, kind: str, mode: str = "rn") -> float:
    """a + b."""
    return fma(a, 1.0, b, kind, mode)


def mul(a: float, b: float, kind: str, mode: str = "rn") -> float:
    """a * b."""
    if _special(a, b):
        return _times(a, b)
    return round_to(
        Fraction(a) * Fraction(b), kind, mode, math.copysign(0.0, math.copysign(1, a) * math.copysign(1, b))
    )


def div(a: float, b: float, kind: str, mode: str = "rn") -> float:
    """a / b."""
    sign = math.copysign(1, a) * math.copysign(1, b)
    if math.isnan(a) or math.isnan(b) or (math.isinf(a) and math.isinf(b)) or (a == 0 and b == 0):
        return math.nan
    if math.isinf(a) or b == 0:
        return sign * math.inf
    if math.isinf(b):
        return sign * 0.0
    return round_to(Fraction(a) / Fraction(b), kind, mode, sign * 0.0)


def sqrt(a: float, kind: str, mode: str = "rn") -> float:
    """The square root, from the integer root of a scaled integer with enough bits to round once."""
    if math.isnan(a) or a < 0:
        return math.nan
    if a == 0 or math.isinf(a):
        return a
    value = Fraction(a)
    scale = 1 << 1400
    root = math.isqrt(value.numerator * scale * scale // value.denominator)
    exact = root * root * value.denominator == value.numerator * scale * scale
    # A bit far below represents the digits that were cut off.
    return round_to(Fraction(2 * root + (not exact), 2 * scale), kind, mode)


def to_integer(value: float, kind: str, mode: str, of: str) -> int:
    """cvt.rXi: rounded and clamped; NaN becomes 0, or the highest bit if either type has 64 bits."""
    low, high = limits(kind)
    if math.isnan(value):
        wide = of == "f64" or kind[1:] == "64"
        return wrap(1 << (int(kind[1:]) - 1), kind) if wide else 0
    if math.isinf(value):
        return high if value > 0 else low
    exact = Fraction(value)
    whole = {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil, "rni": round}[mode](exact)
    return min(max(whole, low), high)


def flush(value: float) -> float:
    """Flush subnormal float32 values to zero."""
    return math.copysign(0.0, value) if abs(value) < 2.0**-126 else value
