"""Floating point. Results have the bits that IEEE 754 and PTX define, except NaN payloads and `.approx` instructions.

`.approx` instructions are evaluated in float64 and rounded once. That is within the error bound that PTX states, but
the GPU's bits may differ.
"""

from __future__ import annotations

import numpy as np

from .registry import helper, simple
from .types import DTYPES, FLOATS

#: The least normal float32. NumPy takes longer for its own scalars than for arrays without axes.
TINY = np.array(2.0**-126, np.float32)


@helper
def flush(value: np.ndarray) -> np.ndarray:
    """Apply .ftz: subnormal float32 values become zero of the same sign."""
    small = _some_small(np.abs(value) < TINY, value)
    return value if small is None else np.where(small, np.copysign(np.float32(0), value), value)


def _some_small(small: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    """Return which of the values marked by `small` are not zero, which needs no flushing; None if none is.

    Zeros are frequent, above all in padding. For a few lanes count_nonzero takes half the time of any().
    """
    if not np.count_nonzero(small):
        return None
    small &= value != 0
    return small if np.count_nonzero(small) else None


def tiny(exact: np.ndarray, mode: str, unit: np.ndarray | float = 1.0) -> np.ndarray:
    """Return where an exact magnitude (float64, in multiples of `unit`), rounded to the least normal float32, is
    flushed.

    An H200 rounds to 24 bits as if exponents had no lower limit, and flushes what is then below the least normal value:
    IEEE 754's tininess after rounding. A `mode` other than rn has rounded away from zero.
    """
    if mode == "rn":
        return exact < unit * (float(TINY) * (1 - 2.0**-25))
    return exact <= unit * (float(TINY) * (1 - 2.0**-24))


@helper
def flushed_product(value: np.ndarray, a: np.ndarray, b: np.ndarray, mode: str = "rn") -> np.ndarray:
    """Flush `value`, the product of float32 a and b."""
    if _some_small(np.abs(value) <= TINY, value) is None:
        return value
    zero = (np.abs(value) == TINY) & tiny(np.abs(np.multiply(a, b, dtype=np.float64)), mode)
    return flush(np.where(zero, np.copysign(np.float32(0), value), value))


@helper
def flushed_quotient(value: np.ndarray, a: np.ndarray, b: np.ndarray, mode: str = "rn") -> np.ndarray:
    """Flush `value`, the quotient of float32 a and b."""
    if _some_small(np.abs(value) <= TINY, value) is None:
        return value
    zero = (np.abs(value) == TINY) & tiny(np.abs(a), mode, np.abs(b.astype(np.float64)))
    return flush(np.where(zero, np.copysign(np.float32(0), value), value))


@helper
def saturate(value: np.ndarray) -> np.ndarray:
    """Apply .sat: clamp to [0, 1]; NaN becomes +0."""
    out = np.where(value > 0, value, value.dtype.type(0))
    return np.minimum(out, value.dtype.type(1))


def _quiet(value: np.ndarray) -> np.ndarray:
    """Replace NaN by the GPU's canonical NaN, which has all bits except the sign set."""
    nan = value != value
    if not nan.any():
        return value
    bits = f"uint{8 * value.itemsize}"
    return np.where(nan, np.array((1 << (8 * value.itemsize - 1)) - 1, bits).view(value.dtype), value)


def _of_numbers(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Replace NaN by the operand that is a number, if one is: NumPy returns NaN if the other is a signalling NaN."""
    nan = out != out
    if not nan.any():
        return out
    return np.where(nan & (a == a), a, np.where(nan & (b == b), b, out))


@helper
def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX min: the number if one operand is NaN; -0 is below +0."""
    out = _of_numbers(np.fmin(a, b), a, b)
    zero = (out == 0) & (a == b)
    if zero.any():
        out = np.where(zero & (np.signbit(a) | np.signbit(b)), -out.dtype.type(0), out)
    return _quiet(out)


@helper
def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX max: the number if one operand is NaN; +0 is above -0."""
    out = _of_numbers(np.fmax(a, b), a, b)
    zero = (out == 0) & (a == b)
    if zero.any():
        out = np.where(zero & ~(np.signbit(a) & np.signbit(b)), out.dtype.type(0), out)
    return _quiet(out)


@helper
def either_nan(a: np.ndarray, b: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """min.NaN and max.NaN: NaN where an operand is NaN, else `otherwise`."""
    return _quiet(np.where((a != a) | (b != b), np.array(np.nan, a.dtype), otherwise))


def _single(
    opcode: str, operands: int, code: str, flush: str = "flush({code})", sat: tuple[str, ...] = ("", ".sat"),
    suffix: str = "", **choices: tuple[str, ...],
) -> None:  # fmt: skip
    """Register the float32 forms of `opcode`, with and without .ftz and .sat, which `suffix` follows.

    `flush` is the code with .ftz.
    """

    def expression(ftz: str, sat: str = "", **_: str) -> str:
        found = flush.replace("{code}", code) if ftz else code
        return f"saturate({found})" if sat else found

    modifiers = {"ftz": ("", ".ftz"), "sat": sat} if sat else {"ftz": ("", ".ftz")}
    modified = "".join(f"{{{name}}}" for name in modifiers)
    simple(f"{opcode}{modified}{suffix}.f32", "f32", ("f32",) * operands, expression, **modifiers, **choices)


def _double(opcode: str, operands: int, code: str, **choices: tuple[str, ...]) -> None:
    """Register the float64 form of `opcode`."""
    simple(f"{opcode}.f64", "f64", ("f64",) * operands, code, **choices)


# Rounding to nearest, which add, sub and mul need not name.
for _opcode, _operands, _code, _flush in (
    ("add{rn}", 2, "{0} + {1}", "flush({code})"),
    ("sub{rn}", 2, "{0} - {1}", "flush({code})"),
    ("mul{rn}", 2, "{0} * {1}", "flushed_product({code}, {0}, {1})"),
):
    _single(_opcode, _operands, _code, _flush, rn=("", ".rn"))
    _double(_opcode, _operands, _code, rn=("", ".rn"))
for _opcode, _operands, _code, _flush in (
    ("div.rn", 2, "{0} / {1}", "flushed_quotient({code}, {0}, {1})"),
    ("sqrt.rn", 1, "np.sqrt({0})", "flush({code})"),
    ("rcp.rn", 1, "1 / {0}", "flush({code})"),
    ("abs", 1, "np.abs({0})", "flush({code})"),
    ("neg", 1, "-{0}", "flush({code})"),
    ("min", 2, "minimum({0}, {1})", "flush({code})"),
    ("max", 2, "maximum({0}, {1})", "flush({code})"),
):
    _single(_opcode, _operands, _code, _flush, sat=())
    _double(_opcode, _operands, _code)
for _opcode, _code in (("min", "minimum({0}, {1})"), ("max", "maximum({0}, {1})")):
    # Of floats only: PTX has no min.NaN.f64.
    _single(_opcode, 2, f"either_nan({{0}}, {{1}}, {_code})", sat=(), suffix=".NaN")
_single("{name}.rn", 3, "fma32({0}, {1}, {2}, False)", "fma32({0}, {1}, {2}, True)", name=("fma", "mad"))
_double("{name}.rn", 3, "fma64({0}, {1}, {2})", name=("fma", "mad"))

_MODES = {"mode": ("rz", "rm", "rp")}
_single("add.{mode}", 2, "add_directed({0}, {1}, '{mode}')", **_MODES)
_double("add.{mode}", 2, "add_directed({0}, {1}, '{mode}')", **_MODES)
_single("sub.{mode}", 2, "add_directed({0}, -{1}, '{mode}')", **_MODES)
_double("sub.{mode}", 2, "add_directed({0}, -{1}, '{mode}')", **_MODES)
_single("mul.{mode}", 2, "mul_directed({0}, {1}, '{mode}')", "flushed_product({code}, {0}, {1}, '{mode}')", **_MODES)
_double("mul.{mode}", 2, "mul64_directed({0}, {1}, '{mode}')", **_MODES)
_single(
    "fma.{mode}", 3, "fma_directed({0}, {1}, {2}, '{mode}')", "flushed_sum({code}, {0}, {1}, {2}, '{mode}')", **_MODES
)
_double("fma.{mode}", 3, "fma64_directed({0}, {1}, {2}, '{mode}')", **_MODES)
_single(
    "div.{mode}", 2, "div_directed({0}, {1}, '{mode}')", "flushed_quotient({code}, {0}, {1}, '{mode}')", (), **_MODES
)
_double("div.{mode}", 2, "div64_directed({0}, {1}, '{mode}')", **_MODES)
_single("rcp.{mode}", 1, "div_directed(float32(1), {0}, '{mode}')", sat=(), **_MODES)
_double("rcp.{mode}", 1, "div64_directed(np.float64(1), {0}, '{mode}')", **_MODES)
_single("sqrt.{mode}", 1, "sqrt_directed({0}, '{mode}')", sat=(), **_MODES)
_double("sqrt.{mode}", 1, "sqrt64_directed({0}, '{mode}')", **_MODES)

simple("copysign.{t}", "{t}", ("{t}", "{t}"), "np.copysign({1}, {0})", t=FLOATS)
simple("testp.finite.{t}", "pred", ("{t}",), "np.isfinite({0})", t=FLOATS)
simple("testp.infinite.{t}", "pred", ("{t}",), "np.isinf({0})", t=FLOATS)
simple("testp.notanumber.{t}", "pred", ("{t}",), "np.isnan({0})", t=FLOATS)
simple("testp.number.{t}", "pred", ("{t}",), "~np.isnan({0})", t=FLOATS)
for _t in FLOATS:
    _least = f"np.finfo({DTYPES[_t]}).tiny"
    simple(f"testp.normal.{_t}", "pred", (_t,), f"np.isfinite({{0}}) & (np.abs({{0}}) >= {_least})")
    simple(f"testp.subnormal.{_t}", "pred", (_t,), f"({{0}} != 0) & (np.abs({{0}}) < {_least})")


@helper
def approximate(function: str, value: np.ndarray) -> np.ndarray:
    """Evaluate a function in float64 and round to float32."""
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
_single("{name}.approx", 1, "approximate('{name}', {0})", sat=(), name=tuple(APPROXIMATE))


@helper
def divide_full(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """div.full and div.approx: the quotient in float64, rounded."""
    return (a.astype(np.float64) / b).astype(np.float32)


_single("div.{mode}", 2, "divide_full({0}, {1})", sat=(), mode=("full", "approx"))


@helper
def flush64(value: np.ndarray) -> np.ndarray:
    """Replace subnormal float64 values by zero of the same sign."""
    tiny = np.finfo(np.float64).tiny
    return np.where(np.abs(value) < tiny, np.copysign(0.0, value), value)


@helper
def upper_word(value: np.ndarray) -> np.ndarray:
    """Flush subnormals, then clear the lower 32 bits of the pattern; NaN stays NaN."""
    bits = flush64(value).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return np.where(np.isnan(value), value, bits.view(np.float64))


simple("rcp.approx.ftz.f64", "f64", ("f64",), "upper_word(1 / flush64(upper_word({0})))")
simple("rsqrt.approx.ftz.f64", "f64", ("f64",), "upper_word(1 / np.sqrt(flush64(upper_word({0}))))")
simple("rsqrt.approx.f64", "f64", ("f64",), "1 / np.sqrt({0})")
