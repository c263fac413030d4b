"""cvt:

Between integer widths, between integers and floats, between float formats, with the rounding that the opcode names.
"""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, simple, special
from .types import DTYPES

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def _integer(emitter, instruction: ptx.Instruction) -> None:
    """cvt.d.s and cvt.sat.d.s between integers: truncate or extend by the source's sign; clamp with .sat."""
    parts = instruction.opcode.split(".")
    to, of = parts[-2:]
    value = emitter.read(instruction.operands[1], of)
    if "sat" in parts:
        value = f"clamp_integer({value}, {DTYPES[to]})"
    elif to != of:
        value = f"{value}.astype({DTYPES[to]})"
    emitter.write_extended(instruction.operands[0], to, value)


for _to in INTEGERS:
    for _of in INTEGERS:
        for _sat in ("", "sat."):
            special(f"cvt.{_sat}{_to}.{_of}", results=(_to,), operands=(_of,))(_integer)


@helper
def clamp_integer(value: np.ndarray, to: type) -> np.ndarray:
    """Clamp to the range of `to`."""
    low, high = int(np.iinfo(to).min), int(np.iinfo(to).max)
    have = np.iinfo(value.dtype)
    low, high = max(low, int(have.min)), min(high, int(have.max))
    return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(to)


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@helper
def float_to_integer(value: np.ndarray, to: type, mode: str) -> np.ndarray:
    """Round, then clamp to the range of `to`. NaN gives 0, or the highest bit where a side has 64 bits."""
    bits = np.iinfo(to)
    whole = ROUND[mode](value.astype(np.float64) if value.dtype != np.float64 else value)
    # 2^n is exact in float64 where the largest integer is not.
    over, under = whole >= float(int(bits.max) + 1), whole < float(bits.min)
    nan = whole != whole
    out = np.where(over | under | nan, 0.0, whole).astype(to)
    out = np.where(over, to(bits.max), out)
    out = np.where(under, to(bits.min), out)
    if value.dtype != np.float64 and bits.bits < 64:
        return out
    return np.where(nan, to(bits.min) if bits.min < 0 else to(1 << (bits.bits - 1)), out)


def _to_integer(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    to, of = parts[-2:]
    value = emitter.read(instruction.operands[1], of)
    if "ftz" in parts:
        value = emitter.flushed(value)
    emitter.write_extended(instruction.operands[0], to, f"float_to_integer({value}, {DTYPES[to]}, '{parts[1]}')")


for _to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
    for _of in ("f32", "f64"):
        for _mode in ROUND:
            for _ftz in ("", "ftz.") if _of == "f32" else ("",):
                special(f"cvt.{_mode}.{_ftz}{_to}.{_of}", results=(_to,), operands=(_of,))(_to_integer)


def _nearest(emitter, instruction: ptx.Instruction) -> None:
    to, of = instruction.opcode.split(".")[-2:]
    value = emitter.read(instruction.operands[1], of)
    emitter.write(instruction.operands[0], to, f"{value}.astype({DTYPES[to]})")


for _to in ("f32", "f64"):
    for _of in INTEGERS:
        special(f"cvt.rn.{_to}.{_of}", results=(_to,), operands=(_of,))(_nearest)
special("cvt.f64.f32", results=("f64",), operands=("f32",))(_nearest)
simple("cvt.ftz.f64.f32", "f64", ("f32",), "{0}.astype(float64)", True)
simple("cvt.rn.ftz.f32.f64", "f32", ("f64",), "flushed_narrow({0}.astype(float32), {0}, 'rn')", True)
special("cvt.rn.f32.f64", results=("f32",), operands=("f64",))(_nearest)


@helper
def flushed_narrow(near: np.ndarray, value: np.ndarray, mode: str) -> np.ndarray:
    """`near`, a float64 value rounded to float32, flushed; see `floating.tiny`."""
    from .floating import tiny

    least, size = np.float32(2.0**-126), np.abs(near)
    zero = (size < least) | ((size == least) & tiny(np.abs(value), mode))
    return np.where(zero, np.copysign(np.float32(0), near), near)


@helper
def narrow_directed(value: np.ndarray, mode: str, to: type) -> np.ndarray:
    """float64 or integer to float32, or integer to float64, rounded towards zero (rz), down (rm) or up (rp)."""
    near = value.astype(to)
    return directed(near, exact_sign(value, near), mode)


@helper
def exact_sign(value: np.ndarray, near: np.ndarray) -> np.ndarray:
    """The sign of value - near, exactly; near is the nearest float."""
    if value.dtype.kind == "f":
        wide = near.astype(np.float64)
        return np.sign(np.where(value == wide, 0.0, value - wide))
    # Integers: compare as integers; 2^64 and 2^63, which may be the nearest, do not fit.
    top = float(int(np.iinfo(value.dtype).max) + 1)
    over = near.astype(np.float64) >= top
    back = np.where(over, 0, near).astype(value.dtype)
    sign = np.where(value > back, 1.0, np.where(value < back, -1.0, 0.0))
    return np.where(over, -1.0, sign)


@helper
def directed(near: np.ndarray, sign: np.ndarray, mode: str) -> np.ndarray:
    """Correct a result rounded to nearest, given the sign of the exact value minus it, to the mode rz, rm or rp.

    An infinite `near` of a finite exact value (sign -1 for +inf, 1 for -inf) comes back to the largest finite one.
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


def _directed(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    to, of = parts[-2:]
    value = emitter.read(instruction.operands[1], of)
    code = f"narrow_directed({value}, '{parts[1]}', {DTYPES[to]})"
    emitter.write(
        instruction.operands[0], to, f"flushed_narrow({code}, {value}, '{parts[1]}')" if "ftz" in parts else code
    )


for _mode in ("rz", "rm", "rp"):
    for _of in INTEGERS:
        for _to in ("f32", "f64"):
            special(f"cvt.{_mode}.{_to}.{_of}", results=(_to,), operands=(_of,))(_directed)
    for _ftz in ("", "ftz."):
        special(f"cvt.{_mode}.{_ftz}f32.f64", results=("f32",), operands=("f64",))(_directed)


def _integral(emitter, instruction: ptx.Instruction) -> None:
    """cvt.rXi.f.f: to the nearest integral value, in the same format."""
    parts = instruction.opcode.split(".")
    kind = parts[-1]
    name = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[parts[1]]
    value = emitter.read(instruction.operands[1], kind)
    value = emitter.flushed(value) if "ftz" in parts else value
    value = f"np.{name}({value})"
    emitter.write(instruction.operands[0], kind, f"saturate({value})" if "sat" in parts else value)


for _mode in ROUND:
    for _ftz in ("", "ftz."):
        for _sat in ("", "sat."):
            special(f"cvt.{_mode}.{_ftz}{_sat}f32.f32", results=("f32",), operands=("f32",))(_integral)
    special(f"cvt.{_mode}.f64.f64", results=("f64",), operands=("f64",))(_integral)


def _same(emitter, instruction: ptx.Instruction) -> None:
    """cvt.sat.f32.f32, cvt.ftz.f32.f32, and plain copies."""
    parts = instruction.opcode.split(".")
    value = emitter.read(instruction.operands[1], parts[-1])
    value = emitter.flushed(value) if "ftz" in parts else value
    emitter.write(instruction.operands[0], parts[-1], f"saturate({value})" if "sat" in parts else value)


for _name in ("cvt.sat.f32.f32", "cvt.ftz.f32.f32", "cvt.ftz.sat.f32.f32", "cvt.f32.f32"):
    special(_name, results=("f32",), operands=("f32",))(_same)


@helper
def to_tf32(value: np.ndarray, away: bool) -> np.ndarray:
    """float32 rounded to the 10 bits of fraction of tf32, ties away from zero or to even, as uint32 bits."""
    bits = value.view(np.uint32)
    half = np.uint32(0x1000) if away else np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1))
    return np.where(np.isnan(value), np.uint32(0x7FFFFFFF), (bits + half) & np.uint32(0xFFFFE000))


for _mode in ("rna", "rn"):
    simple(f"cvt.{_mode}.tf32.f32", "u32", ("f32",), f"to_tf32({{0}}, {_mode == 'rna'})")
