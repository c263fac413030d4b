"""cvt between integers, float32 and float64, with the rounding that the opcode names."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .floating import tiny
from .registry import helper, simple, special
from .rounding import directed, exact_sign
from .types import DTYPES, FLOATS, WITH_BYTES


@special("cvt{sat}.{to}.{of}", results=("{to}",), operands=("{of}",), sat=("", ".sat"), to=WITH_BYTES, of=WITH_BYTES)
def _integer(emitter: Emitter, instruction: ptx.Instruction, sat: str, to: str, of: str) -> None:
    """Truncate, or extend by the source's sign; clamp with .sat."""
    value = emitter.read(instruction.operands[1], of)
    if sat:
        value = f"clamp_integer({value}, {DTYPES[to]})"
    elif to != of:
        value = f"{value}.astype({DTYPES[to]})"
    emitter.write_extended(instruction.operands[0], to, value)


_NARROW = ("u8", "s8", "u16", "s16")


@special("cvt.pack.sat.{to}.s32", operands=("s32", "s32"), to=("u16", "s16"))
@special("cvt.pack.sat.{to}.s32.b32", operands=("s32", "s32", "u32"), to=(*_NARROW, "u4", "s4", "u2", "s2"))
def _pack(emitter: Emitter, instruction: ptx.Instruction, to: str) -> None:
    """Two integers, saturated, in the low bits: a above b. With c, its low bits stand above them."""
    values = emitter.sources(instruction)
    bits = int(to[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    mask = f"np.uint32({(1 << bits) - 1})"
    a, b = (f"(np.clip({each}, {low}, {high}).astype(int32).view(uint32) & {mask})" for each in values[:2])
    above = f" | {values[2]} << np.uint32({2 * bits})" if len(values) > 2 and bits < 16 else ""
    emitter.write(instruction.operands[0], "u32", f"({a} << np.uint32({bits}) | {b}{above})")


@helper
def clamp_integer(value: np.ndarray, to: type) -> np.ndarray:
    """Clamp to the range of `to`."""
    low, high = int(np.iinfo(to).min), int(np.iinfo(to).max)
    have = np.iinfo(value.dtype)
    low, high = max(low, int(have.min)), min(high, int(have.max))
    return np.clip(value, value.dtype.type(low), value.dtype.type(high)).astype(to)


INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@helper
def float_to_integer(value: np.ndarray, to: type, mode: str) -> np.ndarray:
    """Round, then clamp to the range of `to`. NaN gives 0, or the highest bit if either side has 64 bits."""
    bits = np.iinfo(to)
    whole = INTEGRAL[mode](value.astype(np.float64) if value.dtype != np.float64 else value)
    # float64 holds 2^n, but not always the largest integer, 2^n - 1.
    over, under = whole >= float(int(bits.max) + 1), whole < float(bits.min)
    nan = whole != whole
    out = np.where(over | under | nan, 0.0, whole).astype(to)
    out = np.where(over, to(bits.max), out)
    out = np.where(under, to(bits.min), out)
    if value.dtype != np.float64 and bits.bits < 64:
        return out
    return np.where(nan, to(bits.min) if bits.min < 0 else to(1 << (bits.bits - 1)), out)


@special("cvt.{mode}{ftz}.{to}.{of}", results=("{to}",), operands=("{of}",), mode=tuple(INTEGRAL), ftz=("", ".ftz"),
         to=WITH_BYTES, of=("f32",))  # fmt: skip
@special("cvt.{mode}.{to}.{of}", results=("{to}",), operands=("{of}",), mode=tuple(INTEGRAL), to=WITH_BYTES,
         of=("f64",))  # fmt: skip
def _to_integer(emitter: Emitter, instruction: ptx.Instruction, mode: str, to: str, of: str, ftz: str = "") -> None:
    value = emitter.read(instruction.operands[1], of)
    if ftz:
        value = emitter.flushed(value)
    emitter.write_extended(instruction.operands[0], to, f"float_to_integer({value}, {DTYPES[to]}, '{mode}')")


@special("cvt.rn.{to}.{of}", results=("{to}",), operands=("{of}",), to=FLOATS, of=WITH_BYTES)
@special("cvt.rn.{to}.{of}", results=("{to}",), operands=("{of}",), to=("f32",), of=("f64",))
@special("cvt.{to}.{of}", results=("{to}",), operands=("{of}",), to=("f64",), of=("f32",))
def _nearest(emitter: Emitter, instruction: ptx.Instruction, to: str, of: str) -> None:
    value = emitter.read(instruction.operands[1], of)
    emitter.write(instruction.operands[0], to, f"{value}.astype({DTYPES[to]})")


simple("cvt{ftz}.f64.f32", "f64", ("f32",), "{0}.astype(float64)", ftz=(".ftz",))
simple("cvt.rn{ftz}.f32.f64", "f32", ("f64",), "flushed_narrow({0}.astype(float32), {0}, 'rn')", ftz=(".ftz",))


@helper
def flushed_narrow(near: np.ndarray, value: np.ndarray, mode: str) -> np.ndarray:
    """Flush `near`, which is a float64 value rounded to float32; see `floating.tiny`."""
    least, size = np.float32(2.0**-126), np.abs(near)
    zero = (size < least) | ((size == least) & tiny(np.abs(value), mode))
    return np.where(zero, np.copysign(np.float32(0), near), near)


@helper
def narrow_directed(value: np.ndarray, mode: str, to: type) -> np.ndarray:
    """Convert to float32 or float64, rounding towards zero (rz), down (rm) or up (rp)."""
    near = value.astype(to)
    return directed(near, exact_sign(value, near), mode)


_DIRECTED = ("rz", "rm", "rp")


@special("cvt.{mode}.{to}.{of}", results=("{to}",), operands=("{of}",), mode=_DIRECTED, to=FLOATS, of=WITH_BYTES)
@special("cvt.{mode}{ftz}.{to}.{of}", results=("{to}",), operands=("{of}",), mode=_DIRECTED, ftz=("", ".ftz"),
         to=("f32",), of=("f64",))  # fmt: skip
def _directed(emitter: Emitter, instruction: ptx.Instruction, mode: str, to: str, of: str, ftz: str = "") -> None:
    value = emitter.read(instruction.operands[1], of)
    code = f"narrow_directed({value}, '{mode}', {DTYPES[to]})"
    emitter.write(instruction.operands[0], to, f"flushed_narrow({code}, {value}, '{mode}')" if ftz else code)


@special("cvt.{mode}{ftz}{sat}.{t}.{t}", results=("{t}",), operands=("{t}",), mode=tuple(INTEGRAL), ftz=("", ".ftz"),
         sat=("", ".sat"), t=("f32",))  # fmt: skip
@special("cvt.{mode}.{t}.{t}", results=("{t}",), operands=("{t}",), mode=tuple(INTEGRAL), t=("f64",))
@special("cvt{ftz}{sat}.{t}.{t}", results=("{t}",), operands=("{t}",), ftz=("", ".ftz"), sat=("", ".sat"), t=("f32",))
def _same_format(
    emitter: Emitter, instruction: ptx.Instruction, t: str, mode: str = "", ftz: str = "", sat: str = ""
) -> None:
    """Round to an integral value of the same format, or copy; flush and saturate."""
    value = emitter.read(instruction.operands[1], t)
    value = emitter.flushed(value) if ftz else value
    value = f"np.{INTEGRAL[mode].__name__}({value})" if mode else value
    emitter.write(instruction.operands[0], t, f"saturate({value})" if sat else value)


@helper
def to_tf32(value: np.ndarray, mode: str, relu: bool) -> np.ndarray:
    """Round float32 to the 10 fraction bits of tf32: rna (ties away from zero), rn (to even) or rz; uint32 bits.

    NaN becomes the canonical NaN of tf32, but rna keeps the upper bits of its payload, as an H200 does.
    """
    bits = value.view(np.uint32)
    near = {"rna": np.uint32(0x1000), "rz": np.uint32(0)}.get(mode)
    half = np.uint32(0xFFF) + (bits >> np.uint32(13) & np.uint32(1)) if near is None else near
    nan = bits if mode == "rna" else np.uint32(0x7FFFFFFF)
    out = np.where(np.isnan(value), nan, bits + half) & np.uint32(0xFFFFE000)
    return np.where(out >> np.uint32(31) == 1, np.uint32(0), out) if relu else out


def _to_tf32(mode: str, relu: str = "") -> str:
    return f"to_tf32({{0}}, '{mode}', {bool(relu)})"


@helper
def to_finite_tf32(value: np.ndarray) -> np.ndarray:
    """cvt.rna.satfinite.tf32.f32: like `to_tf32`, but infinity, and every value that rounds to it, becomes the largest
    finite value. An H200 subtracts the same unit from the bits of NaN."""
    bits = to_tf32(value, "rna", False)
    return np.where(bits & np.uint32(0x7F800000) == np.uint32(0x7F800000), bits - np.uint32(0x2000), bits)


simple("cvt.rna.tf32.f32", "u32", ("f32",), _to_tf32("rna"))
simple("cvt.rna.satfinite.tf32.f32", "u32", ("f32",), "to_finite_tf32({0})")
simple("cvt.{mode}{relu}.tf32.f32", "u32", ("f32",), _to_tf32, mode=("rn", "rz"), relu=("", ".relu"))
