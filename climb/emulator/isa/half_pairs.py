"""float16 and bfloat16: comparisons that give values, and roundings to whole numbers."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, special
from .compare import _comparisons
from .half import FORMATS, narrow, widen

ONE = {"f16": 0x3C00, "bf16": 0x3F80}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def _set(emitter, instruction: ptx.Instruction) -> None:
    """set: one, or all bits, where the comparison holds, else zero; of pairs part by part."""
    parts = instruction.opcode.split(".")
    how, result, kind = parts[1], parts[-2], parts[-1]
    pair, kind = kind.endswith("x2"), kind.removesuffix("x2")
    code = _comparisons()[f"{how}.f64"][1]
    wide = "u32" if pair else "u16"
    a, b = (emitter.fresh(emitter.read(operand, wide)) for operand in instruction.operands[1:])
    true = ONE[kind] if result.startswith(kind) else 0xFFFF

    def compared(side: str) -> str:
        each = [emitter.fresh(f"widen({side}({value}), '{kind}')" if side else f"widen({value}, '{kind}')")
                for value in (a, b)]  # fmt: skip
        return f"np.where({code.format(*each)}, uint16({true}), uint16(0))"

    if pair:
        value = f"join_halves({compared('low_half')}, {compared('high_half')})"
        emitter.write(instruction.operands[0], "u32", value)
    elif result in ("u32", "s32"):
        emitter.write(instruction.operands[0], "u32", f"({compared('')}.astype(uint32) * uint32(0x10001))")
    else:
        emitter.write(instruction.operands[0], "u16", compared(""))


for _kind in FORMATS:
    for _how in COMPARISONS:
        for _result in (_kind, "u32", "s32"):
            special(f"set.{_how}.{_result}.{_kind}", results=("b",), operands=())(_set)
        for _result in (f"{_kind}x2", "u32", "s32"):
            special(f"set.{_how}.{_result}.{_kind}x2", results=("u32",), operands=("u32", "u32"))(_set)


@helper
def whole_half(bits: np.ndarray, kind: str, how: str) -> np.ndarray:
    """uint16 bits rounded to a whole number of the format."""
    return narrow(getattr(np, how)(widen(bits, kind)), kind)


def _whole(emitter, instruction: ptx.Instruction) -> None:
    _, mode, _, kind = instruction.opcode.split(".")
    how = {"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"}[mode]
    value = emitter.read(instruction.operands[1], "u16")
    emitter.write(instruction.operands[0], "u16", f"whole_half({value}, '{kind}', '{how}')")


for _kind in FORMATS:
    for _mode in ("rni", "rzi", "rmi", "rpi"):
        special(f"cvt.{_mode}.{_kind}.{_kind}", results=("u16",), operands=("u16",))(_whole)
