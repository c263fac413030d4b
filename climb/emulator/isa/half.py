"""float16 and bfloat16, alone and in pairs: computed in float64, rounded once.

A value is kept as its 16 bits (uint16), a pair as 32, because registers of PTX are untyped there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import ptx
from . import helper, special
from .floating import maximum, minimum
from .rounding import to_odd, two_sum

FORMATS = ("f16", "bf16")


@helper
def widen(bits: np.ndarray, kind: str) -> np.ndarray:
    """uint16 bits as float64."""
    if kind == "f16":
        return bits.view(np.float16).astype(np.float64)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


@helper
def narrow(value: np.ndarray, kind: str) -> np.ndarray:
    """float64 rounded to nearest even, as uint16 bits; NaN becomes 0x7fff."""
    if kind == "f16":
        bits = value.astype(np.float16).view(np.uint16)
    else:
        # To odd in float32 first, so that rounding to 8 bits is the only one.
        near = value.astype(np.float32)
        cut = np.where(np.abs(near.astype(np.float64)) > np.abs(value), np.nextafter(near, np.float32(0)), near)
        odd = cut.view(np.uint32) | (cut.astype(np.float64) != value)
        odd = odd.astype(np.uint32)
        bits = (odd + np.uint32(0x7FFF) + (odd >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
        bits = bits.astype(np.uint16)
    return np.where(np.isnan(value), np.uint16(0x7FFF), bits)


def _sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The sum, rounded to odd, so that it can be rounded again."""
    total, error = two_sum(a, b)
    return to_odd(total, np.where(np.isfinite(total), error, 0.0))


def _fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """The product of two 11-bit significands is exact in float64."""
    return _sum(a * b, c)


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
    """An operation on uint16 bits of a format."""
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
    """The lower 16 of 32 bits."""
    return pair.astype(np.uint16)


@helper
def high_half(pair: np.ndarray) -> np.ndarray:
    """The upper 16 of 32 bits."""
    return (pair >> np.uint32(16)).astype(np.uint16)


@helper
def join_halves(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two times 16 bits as 32."""
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def _operation(emitter, instruction: ptx.Instruction) -> None:
    name, *modifiers, kind = instruction.opcode.split(".")
    pair = kind.endswith("x2")
    kind = kind.removesuffix("x2")
    sources = [emitter.read(operand, "u32" if pair else "u16") for operand in instruction.operands[1:]]
    head = f"half_operation('{name}', '{kind}', {tuple(modifiers)!r}"
    if pair:
        parts = [f"{head}, {', '.join(f'{side}({s})' for s in sources)})" for side in ("low_half", "high_half")]
        emitter.write(instruction.operands[0], "u32", f"join_halves({', '.join(parts)})")
    else:
        emitter.write(instruction.operands[0], "u16", f"{head}, {', '.join(sources)})")


for _kind in ("f16", "bf16", "f16x2", "bf16x2"):
    _bits = ("u32" if _kind.endswith("x2") else "u16",)
    _flush = ("", ".ftz") if _kind.startswith("f16") else ("",)
    for _ftz in _flush:
        for _name in ("add", "sub", "mul"):
            for _mode in ("", ".rn"):
                for _sat in ("", ".sat"):
                    special(f"{_name}{_mode}{_ftz}{_sat}.{_kind}", results=_bits, operands=_bits * 2)(_operation)
        for _sat in ("", ".sat", ".relu"):
            special(f"fma.rn{_ftz}{_sat}.{_kind}", results=_bits, operands=_bits * 3)(_operation)
        for _name in ("min", "max"):
            for _nan in ("", ".NaN"):
                special(f"{_name}{_ftz}{_nan}.{_kind}", results=_bits, operands=_bits * 2)(_operation)
        for _name in ("neg", "abs"):
            special(f"{_name}{_ftz}.{_kind}", results=_bits, operands=_bits)(_operation)
    special(f"ex2.approx{'.ftz' if _kind[0] == 'b' else ''}.{_kind}", results=_bits, operands=_bits)(_operation)
    special(f"tanh.approx.{_kind}", results=_bits, operands=_bits)(_operation)


def _compare(emitter, instruction: ptx.Instruction) -> None:
    """setp of one value each."""
    from .compare import _comparisons

    parts = instruction.opcode.split(".")
    target, a, b = instruction.operands
    code = _comparisons()[f"{parts[1]}.f64"][1]
    wide = [emitter.fresh(f"widen({emitter.read(each, 'u16')}, '{parts[-1]}')") for each in (a, b)]
    emitter.write(target, "pred", code.format(*wide))


for _kind in FORMATS:
    for _how in ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"):
        special(f"setp.{_how}.{_kind}", results=("pred",), operands=("u16", "u16"))(_compare)


@helper
def any_to_half(value: np.ndarray, kind: str) -> np.ndarray:
    """A float or integer rounded to nearest even, as uint16 bits.

    64-bit integers are rounded to odd in float64 first.
    """
    return narrow(_odd(value), kind)


def _odd(value: np.ndarray) -> np.ndarray:
    """A float or integer as float64, rounded to odd where that does not hold it."""
    wide = value.astype(np.float64)
    if value.dtype.kind in "iu" and value.itemsize == 8:
        error = [int(v) - int(w) for v, w in zip(value.ravel().tolist(), wide.ravel().tolist(), strict=True)]
        wide = to_odd(wide, np.array(error, np.float64).reshape(wide.shape))
    return wide


@helper
def any_to_half_directed(value: np.ndarray, kind: str, mode: str) -> np.ndarray:
    """A float or integer rounded towards zero (rz), down (rm) or up (rp), as uint16 bits.

    Rounding to odd first keeps the value on its side of every value of the formats.
    """
    wide = _odd(value)
    near = narrow(wide, kind)
    back = widen(near, kind)
    negative = near >> np.uint16(15) == 1
    error = np.where(wide == back, 0.0, wide - back) * np.where(negative, -1.0, 1.0)
    down = {"rz": True, "rm": ~negative, "rp": negative}[mode] & (error < 0)
    up = {"rz": False, "rm": negative, "rp": ~negative}[mode] & (error > 0)
    return near - down.astype(np.uint16) + up.astype(np.uint16)


def _to_half(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    to, of = parts[-2:]
    if to.endswith("x2"):
        high, low = (emitter.read(each, "f32") for each in instruction.operands[1:])
        to = to.removesuffix("x2")
        code = f"join_halves(any_to_half({low}, '{to}'), any_to_half({high}, '{to}'))"
        emitter.write(instruction.operands[0], "u32", code)
        return
    value = emitter.read(instruction.operands[1], of)
    directed = "" if parts[1] == "rn" else f", '{parts[1]}'"
    emitter.write(
        instruction.operands[0], "u16", f"any_to_half{'_directed' * bool(directed)}({value}, '{to}'{directed})"
    )


def _from_half(emitter, instruction: ptx.Instruction) -> None:
    parts = instruction.opcode.split(".")
    to, of = parts[-2:]
    value = f"widen({emitter.read(instruction.operands[1], 'u16')}, '{of}')"
    if to in ("f32", "f64"):
        emitter.write(instruction.operands[0], to, f"{value}.astype({'float32' if to == 'f32' else 'float64'})")
    else:
        name = {"u": "uint", "s": "int"}[to[0]] + to[1:]
        code = f"float_to_integer({value}.astype(float32), {name}, '{parts[1]}')"
        emitter.write_extended(instruction.operands[0], to, code)


for _kind in FORMATS:
    special(f"cvt.rn.{_kind}.f32", results=("u16",), operands=("f32",))(_to_half)
    special(f"cvt.rn.{_kind}x2.f32", results=("u32",), operands=("f32", "f32"))(_to_half)
    special(f"cvt.f32.{_kind}", results=("f32",), operands=("u16",))(_from_half)
    for _of in ("f64", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        special(f"cvt.rn.{_kind}.{_of}", results=("u16",), operands=(_of,))(_to_half)
    special(f"cvt.f64.{_kind}", results=("f64",), operands=("u16",))(_from_half)
    for _mode in ("rni", "rzi", "rmi", "rpi"):
        for _to in ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
            special(f"cvt.{_mode}.{_to}.{_kind}", results=(_to,), operands=("u16",))(_from_half)
for _mode in ("rz", "rm", "rp"):
    for _of in ("f32", "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"):
        for _kind in FORMATS:
            special(f"cvt.{_mode}.{_kind}.{_of}", results=("u16",), operands=(_of,))(_to_half)
special("cvt.rn.f16.f16", results=("u16",), operands=("u16",))(
    lambda emitter, instruction: emitter.alias(*instruction.operands, "b16")
)
