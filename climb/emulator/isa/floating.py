"""Floating point: results as IEEE 754 and PTX define them, bit for bit, except for NaN payloads and `.approx`
instructions.

`.approx` instructions are evaluated in float64 and rounded once: within the error bound that PTX states, but not the
GPU's bits.
"""

from __future__ import annotations

import numpy as np

from . import helper, simple

TINY = np.float32(2.0**-126)


@helper
def flush(value: np.ndarray) -> np.ndarray:
    """.ftz: subnormal float32 values become zero of the same sign."""
    size = np.abs(value)
    if size.min() >= TINY:
        return value
    return np.where(size < TINY, np.copysign(np.float32(0), value), value)


def tiny(exact: np.ndarray, mode: str, unit: np.ndarray | float = 1.0) -> np.ndarray:
    """Where a magnitude (float64, in multiples of `unit`) that was rounded to the least normal float32 is flushed.

    An H200 looks at the result rounded to 24 bits, whatever its exponent: IEEE 754's tininess after rounding. `mode`
    other than rn has rounded away from zero.
    """
    if mode == "rn":
        return exact < unit * (float(TINY) * (1 - 2.0**-25))
    return exact <= unit * (float(TINY) * (1 - 2.0**-24))


@helper
def flushed_product(value: np.ndarray, a: np.ndarray, b: np.ndarray, mode: str = "rn") -> np.ndarray:
    """`value`, the product of float32 a and b, flushed."""
    if np.abs(value).min() > TINY:
        return value
    zero = (np.abs(value) == TINY) & tiny(np.abs(np.multiply(a, b, dtype=np.float64)), mode)
    return flush(np.where(zero, np.copysign(np.float32(0), value), value))


@helper
def flushed_quotient(value: np.ndarray, a: np.ndarray, b: np.ndarray, mode: str = "rn") -> np.ndarray:
    """`value`, the quotient of float32 a and b, flushed."""
    if np.abs(value).min() > TINY:
        return value
    zero = (np.abs(value) == TINY) & tiny(np.abs(a), mode, np.abs(b.astype(np.float64)))
    return flush(np.where(zero, np.copysign(np.float32(0), value), value))


@helper
def saturate(value: np.ndarray) -> np.ndarray:
    """.sat: clamp to [0, 1]; NaN becomes +0."""
    out = np.where(value > 0, value, value.dtype.type(0))
    return np.minimum(out, value.dtype.type(1))


def _quiet(value: np.ndarray) -> np.ndarray:
    """NaN results become the canonical NaN of the GPU, all bits but the sign set."""
    nan = value != value
    if not nan.any():
        return value
    bits = f"uint{8 * value.itemsize}"
    return np.where(nan, np.array((1 << (8 * value.itemsize - 1)) - 1, bits).view(value.dtype), value)


def _of_numbers(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The operand that is a number where NumPy says NaN: of a signalling NaN it makes one."""
    nan = out != out
    if not nan.any():
        return out
    return np.where(nan & (a == a), a, np.where(nan & (b == b), b, out))


@helper
def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX min: of a number and NaN the number; -0 below +0."""
    out = _of_numbers(np.fmin(a, b), a, b)
    zero = (out == 0) & (a == b)
    if zero.any():
        out = np.where(zero & (np.signbit(a) | np.signbit(b)), -out.dtype.type(0), out)
    return _quiet(out)


@helper
def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """PTX max: of a number and NaN the number; +0 above -0."""
    out = _of_numbers(np.fmax(a, b), a, b)
    zero = (out == 0) & (a == b)
    if zero.any():
        out = np.where(zero & ~(np.signbit(a) & np.signbit(b)), out.dtype.type(0), out)
    return _quiet(out)


@helper
def either_nan(a: np.ndarray, b: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """min.NaN and max.NaN: NaN where one operand is."""
    return _quiet(np.where((a != a) | (b != b), np.array(np.nan, a.dtype), otherwise))


def _forms(name: str, operands: int, expression: str, rounding: tuple[str, ...], sat: bool = True) -> None:
    """Register name[.rn][.ftz][.sat].f32 and name[.rn].f64."""
    for mode in rounding:
        simple(f"{name}{mode}.f64", "f64", ("f64",) * operands, expression)
        for ftz in ("", ".ftz"):
            for clamp in ("", ".sat") if sat else ("",):
                code = f"flush({expression})" if ftz else expression
                if ftz and name in ("mul", "div"):
                    code = f"flushed_{'product' if name == 'mul' else 'quotient'}({expression}, {{0}}, {{1}})"
                code = f"saturate({code})" if clamp else code
                simple(f"{name}{mode}{ftz}{clamp}.f32", "f32", ("f32",) * operands, code, bool(ftz))


_forms("add", 2, "{0} + {1}", ("", ".rn"))
_forms("sub", 2, "{0} - {1}", ("", ".rn"))
_forms("mul", 2, "{0} * {1}", ("", ".rn"))
_forms("min", 2, "minimum({0}, {1})", ("",), sat=False)
_forms("max", 2, "maximum({0}, {1})", ("",), sat=False)
_forms("min.NaN", 2, "either_nan({0}, {1}, minimum({0}, {1}))", ("",), sat=False)
_forms("max.NaN", 2, "either_nan({0}, {1}, maximum({0}, {1}))", ("",), sat=False)
_forms("div", 2, "{0} / {1}", (".rn",), sat=False)
_forms("sqrt", 1, "np.sqrt({0})", (".rn",), sat=False)
_forms("rcp", 1, "1 / {0}", (".rn",), sat=False)
_forms("abs", 1, "np.abs({0})", ("",), sat=False)
_forms("neg", 1, "-{0}", ("",), sat=False)
for _name in ("fma.rn", "mad.rn"):
    simple(f"{_name}.f64", "f64", ("f64",) * 3, "fma64({0}, {1}, {2})")
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
    _least = f"np.finfo({'float32' if _kind == 'f32' else 'float64'}).tiny"
    simple(f"testp.normal.{_kind}", "pred", (_kind,), f"np.isfinite({{0}}) & (np.abs({{0}}) >= {_least})")
    simple(f"testp.subnormal.{_kind}", "pred", (_kind,), f"({{0}} != 0) & (np.abs({{0}}) < {_least})")

for _mode in ("rz", "rm", "rp"):
    for _ftz in ("", ".ftz"):
        for _sat in ("", ".sat"):
            for _name, _number, _code in (
                ("add", 2, "add_directed({0}, {1}, '{m}')"),
                ("sub", 2, "add_directed({0}, -{1}, '{m}')"),
                ("mul", 2, "mul_directed({0}, {1}, '{m}')"),
                ("fma", 3, "fma_directed({0}, {1}, {2}, '{m}')"),
                ("div", 2, "div_directed({0}, {1}, '{m}')"),
                ("rcp", 1, "div_directed(float32(1), {0}, '{m}')"),
                ("sqrt", 1, "sqrt_directed({0}, '{m}')"),
            ):
                if _sat and _name in ("div", "rcp", "sqrt"):
                    continue
                _code = _code.replace("{m}", _mode)
                if _ftz and _name in ("mul", "div"):
                    _which = "product" if _name == "mul" else "quotient"
                    _code = f"flushed_{_which}({_code}, {{0}}, {{1}}, '{_mode}')"
                elif _ftz and _name == "fma":
                    _code = f"flushed_sum({_code}, {{0}}, {{1}}, {{2}}, '{_mode}')"
                elif _ftz:
                    _code = f"flush({_code})"
                _code = f"saturate({_code})" if _sat else _code
                simple(f"{_name}.{_mode}{_ftz}{_sat}.f32", "f32", ("f32",) * _number, _code, bool(_ftz))
    simple(f"add.{_mode}.f64", "f64", ("f64", "f64"), f"add_directed({{0}}, {{1}}, '{_mode}')")
    simple(f"sub.{_mode}.f64", "f64", ("f64", "f64"), f"add_directed({{0}}, -{{1}}, '{_mode}')")
    simple(f"mul.{_mode}.f64", "f64", ("f64", "f64"), f"mul64_directed({{0}}, {{1}}, '{_mode}')")
    simple(f"fma.{_mode}.f64", "f64", ("f64",) * 3, f"fma64_directed({{0}}, {{1}}, {{2}}, '{_mode}')")
    simple(f"div.{_mode}.f64", "f64", ("f64", "f64"), f"div64_directed({{0}}, {{1}}, '{_mode}')")
    simple(f"rcp.{_mode}.f64", "f64", ("f64",), f"div64_directed(np.float64(1), {{0}}, '{_mode}')")
    simple(f"sqrt.{_mode}.f64", "f64", ("f64",), f"sqrt64_directed({{0}}, '{_mode}')")


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


@helper
def flush64(value: np.ndarray) -> np.ndarray:
    """Subnormal float64 values become zero of the same sign."""
    tiny = np.finfo(np.float64).tiny
    return np.where(np.abs(value) < tiny, np.copysign(0.0, value), value)


@helper
def upper_word(value: np.ndarray) -> np.ndarray:
    """The value with the lower 32 bits of its pattern zero."""
    bits = flush64(value).view(np.uint64) & np.uint64(0xFFFFFFFF00000000)
    return np.where(np.isnan(value), value, bits.view(np.float64))


simple("rcp.approx.ftz.f64", "f64", ("f64",), "upper_word(1 / flush64(upper_word({0})))")
simple("rsqrt.approx.ftz.f64", "f64", ("f64",), "upper_word(1 / np.sqrt(flush64(upper_word({0}))))")
simple("rsqrt.approx.f64", "f64", ("f64",), "1 / np.sqrt({0})")
