"""Exact rounding: fused multiply-add, and the rounding modes that NumPy does not have.

Error-free sums and products of float64 values give the exact result; where exponents are too extreme for them, Python's
integers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .registry import helper

TINY = np.array(2.0**-126, np.float32)  # NumPy takes longer for its own scalars than for arrays without axes
_LOW = np.array((1 << 29) - 1)
_HALF = np.array(1 << 28)


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Knuth's sum: s = a + b rounded, and e with s + e = a + b exactly, if nothing overflows.

    If b is the largest finite number, `s - v` can overflow although s does not.
    """
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Dekker's product: p = a * b rounded, and e with p + e = a * b exactly, if nothing over- or underflows."""
    p = a * b
    split = 134217729.0  # Veltkamp's splitting: 2^27 + 1
    ah = split * a
    ah = ah - (ah - a)
    bh = split * b
    bh = bh - (bh - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def to_odd(s: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Return s + e rounded to odd: s, or its neighbour on the side of e if s is even and e is not zero."""
    bits = s.view(np.int64)
    even = (bits & 1) == 0
    toward = np.where((e > 0) == (s > 0), bits + 1, bits - 1)
    # s = 0 with e != 0 cannot occur: the sum would have been e.
    return np.where((e != 0) & even & np.isfinite(s), toward, bits).view(np.float64)


@helper
def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray, ftz: bool = False) -> np.ndarray:
    """Return a * b + c in float32, rounded once; with `ftz` a subnormal result becomes zero.

    The product is exact in float64. Rounding the float64 sum again to float32 differs from rounding once only where the
    sum lies halfway between two float32 values (low 29 bits 1000...0) or the result is subnormal. Those lanes are
    rounded to odd first (Boldo and Melquiond, 2008), which makes rounding to float32 correct.
    """
    # Operands are converted first, because NumPy takes twice as long to do that in pieces during the operation.
    # Arrays of a large batch leave the L2 cache of a CPU: make as few as possible.
    if b.size == 1 or a.shape == b.shape:
        total = a.astype(np.float64)
        total *= b.astype(np.float64)
    else:
        total = np.multiply(a, b, dtype=np.float64)
    if c.size == 1 or total.shape == c.shape:
        total += c.astype(np.float64)
    else:
        total = total + c
    out = total.astype(np.float32)
    tiny = np.abs(out) <= TINY
    # For a few lanes count_nonzero takes half the time of any().
    if np.count_nonzero(tiny):
        tiny &= total != 0  # an exact zero is neither rounded nor flushed
    else:
        tiny = None
    bits = total.view(np.int64)
    suspect = np.bitwise_and(bits, _LOW, out=bits) == _HALF
    if tiny is not None:
        suspect |= tiny
    if np.count_nonzero(suspect):
        at = np.flatnonzero(suspect)
        few = [np.broadcast_to(each, out.shape).reshape(-1).take(at) for each in (a, b, c)]
        sums = two_sum(np.multiply(few[0], few[1], dtype=np.float64), few[2].astype(np.float64))
        out[suspect] = to_odd(*sums).astype(np.float32)
        if ftz and tiny is not None and np.count_nonzero(tiny):
            out = flushed_sum(out, a, b, c)
    return out


@helper
def flushed_sum(value: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str = "rn") -> np.ndarray:
    """Flush `value`, which is a * b + c of float32; see `floating.tiny`."""
    size = np.abs(value)
    if size.min() > TINY:
        return value
    least = size == TINY
    if least.any():
        product = np.broadcast_to(np.multiply(a, b, dtype=np.float64), value.shape)
        total, error = two_sum(product, np.broadcast_to(c, value.shape).astype(np.float64))
        bound = float(TINY) * (1 - 2.0**-25 if mode == "rn" else 1 - 2.0**-24)
        beside = error * total < 0 if mode == "rn" else error * total <= 0
        below = (np.abs(total) < bound) | ((np.abs(total) == bound) & beside)
        value = np.where(least & below, np.copysign(np.float32(0), value), value)
    return np.where(size < TINY, np.copysign(np.float32(0), value), value)


@helper
def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return a * b + c in float64, rounded once (Boldo and Melquiond, 2008); with integers for extreme exponents."""
    a, b, c = np.broadcast_arrays(a, b, c)
    ph, pl = two_product(a, b)
    th, tl = two_sum(c, pl)
    vh, vl = two_sum(ph, th)
    out = vh + to_odd(*two_sum(tl, vl))
    plain = a * b + c
    hard = np.zeros(out.shape, np.bool_)
    for value in (a, b, c, ph, plain):
        size = np.abs(value)
        hard |= ~((size < 2.0**900) & ((size > 2.0**-900) | (value == 0)))
    # The plain expression is exact where the product is zero or an operand is not finite.
    # A product that underflows to zero still gives its sign to a sum with zero.
    hard |= (ph == 0) & (a != 0) & (b != 0)
    special = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (a == 0) | (b == 0)
    out = np.where(special, plain, out)
    out = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, out)
    hard &= ~special
    if hard.any():
        out[hard] = [
            exact_fma(*each) for each in zip(a[hard].tolist(), b[hard].tolist(), c[hard].tolist(), strict=True)
        ]
    zero = (out == 0) & ~special & ~hard
    return np.where(zero, plain, out) if zero.any() else out


def exact_fma(a: float, b: float, c: float) -> float:
    """Return a * b + c of finite floats, rounded once to nearest, ties to even."""
    (an, ad), (bn, bd), (cn, cd) = (x.as_integer_ratio() for x in (a, b, c))
    top, bottom = an * bn * cd + cn * ad * bd, ad * bd * cd
    if top == 0:
        return a * b + c
    try:
        return top / bottom  # Python's integer division is correctly rounded, subnormal results too
    except OverflowError:
        return float("inf") if top > 0 else float("-inf")


@helper
def exact_sign(value: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the exact sign of value - near, where near is the float nearest to value."""
    if value.dtype.kind == "f":
        wide = near.astype(np.float64)
        return np.sign(np.where(value == wide, 0.0, value - wide))
    # Compare as integers, except where the nearest float is 2^63 or 2^64, which does not fit.
    top = float(int(np.iinfo(value.dtype).max) + 1)
    over = near.astype(np.float64) >= top
    back = np.where(over, 0, near).astype(value.dtype)
    sign = np.where(value > back, 1.0, np.where(value < back, -1.0, 0.0))
    return np.where(over, -1.0, sign)


@helper
def directed(near: np.ndarray, sign: np.ndarray, mode: str) -> np.ndarray:
    """Change a result rounded to nearest to the mode rz, rm or rp; `sign` is that of the exact value minus `near`.

    Where `near` overflowed but the exact value is finite (sign -1 for +inf, 1 for -inf), rz and the mode that points
    inwards give the largest finite value.
    """
    kind = near.dtype.type
    down, up = np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))
    if mode == "rm":
        return np.where(sign < 0, down, near)
    if mode == "rp":
        return np.where(sign > 0, up, near)
    positive = (near > 0) | ((near == 0) & (sign > 0))
    negative = (near < 0) | ((near == 0) & (sign < 0))
    return np.where(positive & (sign < 0), down, np.where(negative & (sign > 0), up, near))


def _narrow(high: np.ndarray, low: np.ndarray, zero: np.ndarray, mode: str) -> np.ndarray:
    """Round high + low to float32 in the given mode. `zero` marks exact zeros that rm makes negative."""
    near = to_odd(high, low).astype(np.float32)
    sign = np.sign((high - near) + low)
    out = directed(near, np.where(np.isfinite(high), sign, 0), mode)
    return np.where(zero & (out == 0) & (sign == 0), np.float32(-0.0), out) if mode == "rm" else out


@helper
def fma_directed(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """fma.{rz,rm,rp}.f32."""
    product, wide = np.broadcast_arrays(np.multiply(a, b, dtype=np.float64), c.astype(np.float64))
    both = (product == 0) & (wide == 0)
    opposite = np.where(both, np.signbit(product) | np.signbit(wide), product == -wide)
    return _narrow(*two_sum(product, wide), opposite, mode)


@helper
def mul_directed(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """mul.{rz,rm,rp}.f32."""
    product = np.multiply(a, b, dtype=np.float64)
    return _narrow(product, np.zeros_like(product), np.zeros(product.shape, np.bool_), mode)


@helper
def add_directed(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """add.{rz,rm,rp} of float32 or float64."""
    if a.dtype == np.float32:
        return fma_directed(a, np.ones((1, 1), np.float32), b, mode)
    s = a + b
    # Large terms are quartered: so is then the error of their sum, and nothing overflows on the way.
    quarter = np.where((np.abs(a) > 2.0**900) & (np.abs(b) > 2.0**900), 0.25, 1.0)
    e = two_sum(a * quarter, b * quarter)[1]
    finite = np.isfinite(a) & np.isfinite(b)
    sign = np.where(np.isfinite(s), np.sign(e), np.where(finite, -np.sign(s), 0))
    out = directed(s, sign, mode)
    negative = np.where((a == 0) & (b == 0), np.signbit(a) | np.signbit(b), a == -b)
    return np.where(negative & (s == 0), -0.0, out) if mode == "rm" else out


@helper
def mul64_directed(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """mul.{rz,rm,rp}.f64, exact for every exponent; Python's integers step in where float64 cannot hold the error."""
    a, b = np.broadcast_arrays(a, b)
    near = a * b
    finite = np.isfinite(a) & np.isfinite(b)
    sign = np.zeros(near.shape)
    # The parts of a product that is nearly infinite can be infinite.
    size = np.abs(near)
    plain = finite & (size > 2.0**-900) & (size < 2.0**1000) & (np.abs(a) < 2.0**900) & (np.abs(b) < 2.0**900)
    error = two_product(np.where(plain, a, 0.0), np.where(plain, b, 0.0))[1]
    sign = np.sign(error)
    rest = finite & ~plain & (a != 0) & (b != 0)
    if rest.any():
        sign[rest] = [_product_error(*each) for each in zip(a[rest].tolist(), b[rest].tolist(), strict=True)]
    return directed(near, sign, mode)


def _product_error(a: float, b: float) -> int:
    """Return the sign of a * b (exact) minus a * b (rounded)."""
    near = a * b
    if near in (float("inf"), float("-inf")):
        return -1 if near > 0 else 1
    (an, ad), (bn, bd), (nn, nd) = (x.as_integer_ratio() for x in (a, b, near))
    error = an * bn * nd - nn * ad * bd
    return (error > 0) - (error < 0)


@helper
def div_directed(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """div.{rz,rm,rp}.f32. The error has the sign of (a - near * b) / b; near * b is exact in float64."""
    near = np.divide(a, b, dtype=np.float32)
    residual = a - np.multiply(near, b, dtype=np.float64)
    exact = ~(np.isfinite(a) & np.isfinite(b)) | (b == 0)
    return directed(near, np.where(exact, 0, np.sign(residual) * np.copysign(1, b)), mode)


@helper
def sqrt_directed(a: np.ndarray, mode: str) -> np.ndarray:
    """sqrt.{rz,rm,rp}.f32."""
    near = np.sqrt(a)
    residual = a - np.multiply(near, near, dtype=np.float64)
    return directed(near, np.where(np.isfinite(a), np.sign(residual), 0), mode)


def _sign(top: int, bottom: int, near: float) -> int:
    """Return the sign of top / bottom minus a float; bottom is positive."""
    if math.isinf(near):
        return -1 if near > 0 else 1
    n, d = near.as_integer_ratio()
    error = top * d - n * bottom
    return (error > 0) - (error < 0)


def _fma_error(a: float, b: float, c: float, near: float) -> int:
    (an, ad), (bn, bd), (cn, cd) = (x.as_integer_ratio() for x in (a, b, c))
    return _sign(an * bn * cd + cn * ad * bd, ad * bd * cd, near)


def _quotient_error(a: float, b: float, near: float) -> int:
    (an, ad), (bn, bd) = (x.as_integer_ratio() for x in (a, b))
    return _sign(an * bd * (-1 if bn < 0 else 1), ad * abs(bn), near)


def _root_error(a: float, near: float) -> int:
    (an, ad), (nn, nd) = (x.as_integer_ratio() for x in (a, near))
    error = an * nd * nd - nn * nn * ad
    return (error > 0) - (error < 0)


def _exactly(error: Callable[..., int], known: np.ndarray, near: np.ndarray, *values: np.ndarray) -> np.ndarray:
    """Return the sign of the exact result minus `near`, by Python's integers, where `known`; 0 elsewhere."""
    sign = np.zeros(near.shape)
    columns = [np.broadcast_to(each, near.shape)[known].tolist() for each in (*values, near)]
    sign[known] = [error(*row) for row in zip(*columns, strict=True)]
    return sign


@helper
def fma64_directed(a: np.ndarray, b: np.ndarray, c: np.ndarray, mode: str) -> np.ndarray:
    """fma.{rz,rm,rp}.f64."""
    near = fma64(a, b, c)
    finite = np.broadcast_to(np.isfinite(a) & np.isfinite(b) & np.isfinite(c), near.shape)
    sign = _exactly(_fma_error, finite, near, a, b, c)
    out = directed(near, sign, mode)
    if mode != "rm":
        return out
    # Rounding down, an exact zero is negative, except as the sum of two positive zeros. A sum below the least subnormal
    # number is not an exact zero: down from above zero it is +0.
    exact = finite & (near == 0) & (sign == 0)
    positive = ((a == 0) | (b == 0)) & (np.signbit(a) == np.signbit(b)) & (c == 0) & ~np.signbit(c)
    return np.where(exact & ~positive, -0.0, out)


@helper
def div64_directed(a: np.ndarray, b: np.ndarray, mode: str) -> np.ndarray:
    """div.{rz,rm,rp}.f64."""
    near = np.divide(a, b)
    known = np.broadcast_to(np.isfinite(a) & np.isfinite(b) & (b != 0) & (a != 0), near.shape)
    return directed(near, _exactly(_quotient_error, known, near, a, b), mode)


@helper
def sqrt64_directed(a: np.ndarray, mode: str) -> np.ndarray:
    """sqrt.{rz,rm,rp}.f64."""
    near = np.sqrt(a)
    return directed(near, _exactly(_root_error, np.isfinite(a) & (a > 0), near, a), mode)
