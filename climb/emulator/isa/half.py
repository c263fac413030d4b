"""Arithmetic of float16 and bfloat16, alone and in pairs: computed in float64 and rounded once.

PTX keeps half precision in untyped registers, so a value is held as its 16 bits (uint16) and a pair as 32 (uint32).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ptx
from .emitter import Emitter
from .floating import maximum, minimum
from .registry import helper, special
from .rounding import to_odd, two_sum

FORMATS = ("f16", "bf16")


@helper
def widen(bits: np.ndarray, kind: str) -> np.ndarray:
    """Return uint16 bits as float64."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@helper
def narrow(value: np.ndarray, kind: str) -> np.ndarray:
    """Round float64 to nearest, ties to even, as uint16 bits; NaN becomes 0x7fff."""
    if kind == "f16":
        bits = value.astype(np.float16).view(np.uint16)
    else:
        # Round to odd in float32 first: rounding that to 8 bits gives the same as rounding once.
        near = value.astype(np.float32)
        cut = np.where(np.abs(near.astype(np.float64)) > np.abs(value), np.nextafter(near, np.float32(0)), near)
        odd = cut.view(np.uint32) | (cut.astype(np.float64) != value)
        odd = odd.astype(np.uint32)
        bits = (odd + np.uint32(0x7FFF) + (odd >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
        bits = bits.astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return a + b rounded to odd in float64, so that rounding it again is exact."""
    total, error = two_sum(a, b)
    return to_odd(total, np.where(np.isfinite(total), error, 0.0))


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    return _sum(a * b, c)  # the product of two 11-bit significands is exact in float64


def _clamp(value: np.ndarray) -> np.ndarray:
    return np.where(value > 0, np.minimum(value, 1.0), 0.0)


OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "add": _sum,
    "sub": lambda a, b: _sum(a, -b),
    "mul": lambda a, b: a * b,
    "fma": _fma,
    "min": minimum,
    "max": maximum,
    "neg": lambda a: -a,
    "abs": np.abs,
    "ex2": np.exp2,
    "tanh": np.tanh,
}


@helper
def half_operation(name: str, kind: str, modifiers: tuple[str, ...], *bits: np.ndarray) -> np.ndarray:
    """Apply an operation to values of a format, given and returned as uint16 bits."""
    values = [widen(each, kind) for each in bits]
    if "ftz" in modifiers:
        values = [np.where(np.abs(v) < 2.0**-14, np.copysign(0.0, v), v) for v in values]
    out = OPERATIONS[name](*values)
    if "NaN" in modifiers:
        out = np.where(np.isnan(values[0]) | np.isnan(values[1]), np.nan, out)
    if "relu" in modifiers:
        out = np.where(np.isnan(out), out, np.maximum(out, 0.0))
    out = narrow(_clamp(out) if "sat" in modifiers else out, kind)
    if "ftz" in modifiers:
        out = np.where(np.abs(widen(out, kind)) < 2.0**-14, out & np.uint16(0x8000), out)
    return out


@helper
def low_half(pair: np.ndarray) -> np.ndarray:
    """Return the lower 16 of 32 bits."""
    return pair.astype(np.uint16)


@helper
def high_half(pair: np.ndarray) -> np.ndarray:
    """Return the upper 16 of 32 bits."""
    return (pair >> np.uint32(16)).astype(np.uint16)


@helper
def join_halves(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Join two times 16 bits to 32."""
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def _operation(emitter: Emitter, instruction: ptx.Instruction, t: str, **_: str) -> None:
    name, *modifiers, _ = instruction.opcode.split(".")
    pair = t.endswith("x2")
    sources = [emitter.read(operand, "u32" if pair else "u16") for operand in instruction.operands[1:]]
    head = f"half_operation('{name}', '{t.removesuffix('x2')}', {tuple(modifiers)!r}"
    if pair:
        parts = [f"{head}, {', '.join(f'{half}({s})' for s in sources)})" for half in ("low_half", "high_half")]
        emitter.write(instruction.operands[0], "u32", f"join_halves({', '.join(parts)})")
    else:
        emitter.write(instruction.operands[0], "u16", f"{head}, {', '.join(sources)})")


for _t, _bits, _ftz in (
    ("f16", "u16", ("", ".ftz")), ("f16x2", "u32", ("", ".ftz")), ("bf16", "u16", ("",)), ("bf16x2", "u32", ("",)),
):  # fmt: skip
    for _opcode, _operands, _choices in (
        ("{name}{rn}{ftz}{sat}", 2, {"name": ("add", "sub", "mul"), "rn": ("", ".rn"), "sat": ("", ".sat")}),
        ("fma.rn{ftz}{clamp}", 3, {"clamp": ("", ".sat", ".relu")}),
        ("{name}{ftz}{nan}", 2, {"name": ("min", "max"), "nan": ("", ".NaN")}),
        ("{name}{ftz}", 1, {"name": ("neg", "abs")}),
    ):
        special(
            f"{_opcode}.{{t}}", results=(_bits,), operands=(_bits,) * _operands, ftz=_ftz, t=(_t,), **_choices
        )(_operation)  # fmt: skip
    # bfloat16 has ex2 with .ftz only, float16 without it only.
    for _opcode in ("ex2.approx.{t}" if _t[0] == "f" else "ex2.approx.ftz.{t}", "tanh.approx.{t}"):
        special(_opcode, results=(_bits,), operands=(_bits,), t=(_t,))(_operation)
