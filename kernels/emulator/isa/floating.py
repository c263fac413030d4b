"""Floating point: results as IEEE 754 and PTX define them, bit for bit, except for NaN payloads and `.approx`
instructions.

`.approx` instructions are evaluated in float64 and rounded once: within the error bound that PTX states, but not the
GPU's bits.
"""

from __future__ import annotations

import numpy as np

from . import helper, simple

TINY = np.float32(2.0**-126)
_LOW = np.int64((1 << 29) - 1)
_HALF = np.int64(1 << 28)


@helper
def flush(value: np.ndarray) -> np.ndarray:
    """.ftz: subnormal float32 values become zero of the same sign."""
    size = np.abs(value)
    if size.min() >= TINY:
        return value
    return np.where(size < TINY, np.copysign(np.float32(0), value), value)


@helper
def saturate(value: np.ndarray) -> np.ndarray:
    """.sat: clamp to [0, 1]; NaN becomes +0."""
    out = np.where(value > 0, value, value.dtype.type(0))
    return np.minimum(out, value.dtype.type(1))


@helper
def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Knuth: (s, e), s = a + b rounded, s + e = a + b exactly (no overflow)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


@helper
def to_odd(s: np.ndarray, e: np.ndarray) -> np.ndarray:
    """s + e rounded to odd: where e is not zero, the neighbour of s with an odd last bit on e's side."""
    bits = s.view(np.int64)
    even = (bits & 1) == 0
    toward = np.where((e > 0) == (s > 0), bits + 1, bits - 1)
    # s = 0 with e != 0 cannot be: then the sum would have been e.
    return np.where((e != 0) & even & np.isfinite(s), toward, bits).view(np.float64)


@helper
def fma32(a: np.ndarray, b: np.ndarray, c: np.ndarray, ftz: bool = False) -> np.ndarray:
    """a * b + c in float32, rounded once; with `ftz` a subnormal result becomes zero.

    The product is exact in float64. The float64 sum, rounded again to float32, differs from the exact result only where
    it lies halfway between two float32 values (low 29 bits 1000...0), or where the result is subnormal; those lanes are
    summed to odd (Boldo and Melquiond, 2008), after which rounding to float32 is right.
    """
    product = np.multiply(a, b, dtype=np.float64)
    total = product + c
    out = total.astype(np.float32)
    suspect = np.bitwise_and(total.view(np.int64), _LOW) == _HALF
    size = np.abs(out)
    small = not size.min() >= TINY
    if small or suspect.any():
        if small:
            suspect |= (size <= TINY) & (total != 0)
        if suspect.any():
            wide = np.broadcast_to(c, total.shape)[suspect].astype(np.float64)
            sums = two_sum(np.broadcast_to(product, total.shape)[suspect], wide)
            out[suspect] = to_odd(*sums).astype(np.float32)
        if ftz and small:
            out = flush(out)
    return out


@helper
def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX min: of a number and NaN the number; -0 below +0."""
    out = np.fmin(a, b)
    zero = (out == 0) & (a == b)
    return np.where(zero & (np.signbit(a) | np.signbit(b)), -out.dtype.type(0), out) if zero.any() else out


@helper
def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX max: of a number and NaN the number; +0 above -0."""
    out = np.fmax(a, b)
    zero = (out == 0) & (a == b)
    return np.where(zero & ~(np.signbit(a) & np.signbit(b)), out.dtype.type(0), out) if zero.any() else out


def _forms(name: str, operands: int, expression: str, rounding: tuple[str, ...], sat: bool = True) -> None:
    """Register name[.rn][.ftz][.sat].f32 and name[.rn].f64."""
    for mode in rounding:
        simple(f"{name}{mode}.f64", "f64", ("f64",) * operands, expression)
        for ftz in ("", ".ftz"):
            for clamp in ("", ".sat") if sat else ("",):
                code = f"flush({expression})" if ftz else expression
                code = f"saturate({code})" if clamp else code
                simple(f"{name}{mode}{ftz}{clamp}.f32", "f32", ("f32",) * operands, code, bool(ftz))


_forms("add", 2, "{0} + {1}", ("", ".rn"))
_forms("sub", 2, "{0} - {1}", ("", ".rn"))
_forms("mul", 2, "{0} * {1}", ("", ".rn"))
_forms("min", 2, "minimum({0}, {1})", ("",), sat=False)
_forms("max", 2, "maximum({0}, {1})", ("",), sat=False)
_forms("div", 2, "{0} / {1}", (".rn",), sat=False)
_forms("sqrt", 1, "np.sqrt({0})", (".rn",), sat=False)
_forms("rcp", 1, "1 / {0}", (".rn",), sat=False)
_forms("abs", 1, "np.abs({0})", ("",), sat=False)
_forms("neg", 1, "-{0}", ("",), sat=False)
for _name in ("fma.rn", "mad.rn"):
    for _ftz in ("", ".ftz"):
        for _sat in ("", ".sat"):
            _code = f"fma32({{0}}, {{1}}, {{2}}, {bool(_ftz)})"
            _code = f"saturate({_code})" if _sat else _code
            simple(f"{_name}{_ftz}{_sat}.f32", "f32", ("f32",) * 3, _code, bool(_ftz))
for _kind in ("f32", "f64"):
    simple(f"copysign.{_kind}", _kind, (_kind, _kind), "np.copysign({1}, {0})")
    simple(f"testp.finite.{_kind}", "pred", (_kind,), "np.isfinite({0})")
    simple(f"testp.infinite.{_kind}", "pred", (_kind,), "np.isinf({0})")
    simple(f"testp.notanumber.{_kind}", "pred", (_kind,), "np.isnan({0})")
    simple(f"testp.number.{_kind}", "pred", (_kind,), "~np.isnan({0})")


@helper
def approximate(function: str, value: np.ndarray) -> np.ndarray:
    """A function evaluated in float64, rounded to float32."""
    wide = value.astype(np.float64)
    return APPROXIMATE[function](wide).astype(np.float32)


APPROXIMATE = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
for _name in APPROXIMATE:
    simple(f"{_name}.approx.f32", "f32", ("f32",), f"approximate('{_name}', {{0}})")
    simple(f"{_name}.approx.ftz.f32", "f32", ("f32",), f"flush(approximate('{_name}', {{0}}))", True)


@helper
def divide_full(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """div.full and div.approx: the quotient in float64, rounded."""
    return (a.astype(np.float64) / b).astype(np.float32)


for _mode in ("full", "approx"):
    simple(f"div.{_mode}.f32", "f32", ("f32", "f32"), "divide_full({0}, {1})")
    simple(f"div.{_mode}.ftz.f32", "f32", ("f32", "f32"), "flush(divide_full({0}, {1}))", True)
