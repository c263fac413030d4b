"""cvt to and from float16 and bfloat16."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .conversion import INTEGRAL
from .emitter import Emitter
from .half import FORMATS, narrow, widen
from .registry import helper, special
from .rounding import to_odd
from .types import DTYPES, WITH_BYTES


@helper
def any_to_half(value: np.ndarray, kind: str) -> np.ndarray:
    """Round a float or integer to nearest, ties to even, as uint16 bits of a format."""
    return narrow(_odd(value), kind)


def _odd(value: np.ndarray) -> np.ndarray:
    """Return a float or integer as float64. Integers of 64 bits are rounded to odd, so that rounding again is exact."""
    wide = value.astype(np.float64)
    if value.dtype.kind in "iu" and value.itemsize == 8:
        error = [int(v) - int(w) for v, w in zip(value.ravel().tolist(), wide.ravel().tolist(), strict=True)]
        wide = to_odd(wide, np.array(error, np.float64).reshape(wide.shape))
    return wide


@helper
def any_to_half_directed(value: np.ndarray, kind: str, mode: str) -> np.ndarray:
    """Round a float or integer towards zero (rz), down (rm) or up (rp) to a format, as uint16 bits.

    Rounding to odd first keeps the value on its side of every value of the format.
    """
    wide = _odd(value)
    near = narrow(wide, kind)
    back = widen(near, kind)
    negative = near >> np.uint16(15) == 1
    error = np.where(wide == back, 0.0, wide - back) * np.where(negative, -1.0, 1.0)
    down = {"rz": True, "rm": ~negative, "rp": negative}[mode] & (error < 0)
    up = {"rz": False, "rm": negative, "rp": ~negative}[mode] & (error > 0)
    return near - down.astype(np.uint16) + up.astype(np.uint16)


@special("cvt.{mode}.{to}.{of}", results=("u16",), operands=("{of}",), mode=("rn", "rz", "rm", "rp"), to=FORMATS,
         of=("f32", *WITH_BYTES))  # fmt: skip
@special("cvt.rn.{to}.{of}", results=("u16",), operands=("{of}",), to=FORMATS, of=("f64",))
def _to_half(emitter: Emitter, instruction: ptx.Instruction, to: str, of: str, mode: str = "rn") -> None:
    value = emitter.read(instruction.operands[1], of)
    code = f"any_to_half({value}, '{to}')" if mode == "rn" else f"any_to_half_directed({value}, '{to}', '{mode}')"
    emitter.write(instruction.operands[0], "u16", code)


@helper
def half_relu(bits: np.ndarray) -> np.ndarray:
    """Replace negative values and -0 by +0; bits of either format, in which NaN has no sign."""
    return np.where(bits >> np.uint16(15) == 1, np.uint16(0), bits)


@special("cvt.{mode}{relu}.{to}x2.f32", results=("u32",), operands=("f32", "f32"), mode=("rn", "rz"),
         relu=("", ".relu"), to=FORMATS)  # fmt: skip
def _to_pair(emitter: Emitter, instruction: ptx.Instruction, mode: str, relu: str, to: str) -> None:
    halves = [_rounded(emitter.read(each, "f32"), mode, relu, to) for each in instruction.operands[1:]]
    emitter.write(instruction.operands[0], "u32", f"join_halves({halves[1]}, {halves[0]})")


@special("cvt.{mode}.relu.{to}.f32", results=("u16",), operands=("f32",), mode=("rn", "rz"), to=FORMATS)
def _to_half_relu(emitter: Emitter, instruction: ptx.Instruction, mode: str, to: str) -> None:
    value = emitter.read(instruction.operands[1], "f32")
    emitter.write(instruction.operands[0], "u16", _rounded(value, mode, "relu", to))


def _rounded(value: str, mode: str, relu: str, to: str) -> str:
    """Return the expression that rounds a float32 to a format."""
    code = f"any_to_half({value}, '{to}')" if mode == "rn" else f"any_to_half_directed({value}, '{to}', '{mode}')"
    return f"half_relu({code})" if relu else code


@special("cvt.{to}.{of}", results=("{to}",), operands=("u16",), to=("f32", "f64"), of=FORMATS)
def _from_half(emitter: Emitter, instruction: ptx.Instruction, to: str, of: str) -> None:
    value = f"widen({emitter.read(instruction.operands[1], 'u16')}, '{of}')"
    emitter.write(instruction.operands[0], to, f"{value}.astype({DTYPES[to]})")


@special("cvt.{mode}.{to}.{of}", results=("{to}",), operands=("u16",), mode=tuple(INTEGRAL), to=WITH_BYTES, of=FORMATS)
def _to_integer(emitter: Emitter, instruction: ptx.Instruction, mode: str, to: str, of: str) -> None:
    value = f"widen({emitter.read(instruction.operands[1], 'u16')}, '{of}')"
    code = f"float_to_integer({value}.astype(float32), {DTYPES[to]}, '{mode}')"
    emitter.write_extended(instruction.operands[0], to, code)


@special("cvt.rn.f16.f16", results=("u16",), operands=("u16",))
def _copy(emitter: Emitter, instruction: ptx.Instruction) -> None:
    emitter.alias(*instruction.operands, "b16")


@helper
def whole_half(bits: np.ndarray, kind: str, how: str) -> np.ndarray:
    """Round values of a format, given and returned as uint16 bits, to integral values; `how` names NumPy's function."""
    return narrow(getattr(np, how)(widen(bits, kind)), kind)


@special("cvt.{mode}.{t}.{t}", results=("u16",), operands=("u16",), mode=tuple(INTEGRAL), t=FORMATS)
def _integral(emitter: Emitter, instruction: ptx.Instruction, mode: str, t: str) -> None:
    value = emitter.read(instruction.operands[1], "u16")
    emitter.write(instruction.operands[0], "u16", f"whole_half({value}, '{t}', '{INTEGRAL[mode].__name__}')")
