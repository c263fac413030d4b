"""setp and set of float16 and bfloat16."""

from __future__ import annotations

from .. import ptx
from .comparison import FLOATING
from .emitter import Emitter
from .half import FORMATS
from .registry import special

ONE = {"f16": 0x3C00, "bf16": 0x3F80}


@special("setp.{how}.{t}", results=("pred",), operands=("u16", "u16"), how=tuple(FLOATING), t=FORMATS)
def _setp(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str) -> None:
    target, a, b = instruction.operands
    wide = [emitter.fresh(f"widen({emitter.read(each, 'u16')}, '{t}')") for each in (a, b)]
    emitter.write(target, "pred", FLOATING[how].format(*wide))


def _compared(emitter: Emitter, values: tuple[str, str], how: str, t: str, true: int, half: str = "") -> str:
    """Return an expression for `true` where the comparison holds, else 0. `half` is the function that picks half of a
    pair."""
    wide = [emitter.fresh(f"widen({half}({value}), '{t}')" if half else f"widen({value}, '{t}')") for value in values]
    return f"np.where({FLOATING[how].format(*wide)}, uint16({true}), uint16(0))"


def _read(emitter: Emitter, instruction: ptx.Instruction, kind: str) -> tuple[str, str]:
    a, b = (emitter.fresh(emitter.read(operand, kind)) for operand in instruction.operands[1:])
    return a, b


@special("set.{how}.{t}.{t}", results=("b",), how=tuple(FLOATING), t=FORMATS)
def _set(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str) -> None:
    values = _read(emitter, instruction, "u16")
    emitter.write(instruction.operands[0], "u16", _compared(emitter, values, how, t, ONE[t]))


@special("set.{how}.{result}.{t}", results=("b",), how=tuple(FLOATING), result=("u32", "s32"), t=FORMATS)
def _set_integer(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str, **_: str) -> None:
    values = _read(emitter, instruction, "u16")
    code = _compared(emitter, values, how, t, 0xFFFF)
    emitter.write(instruction.operands[0], "u32", f"({code}.astype(uint32) * uint32(0x10001))")


_PAIR = {"results": ("u32",), "operands": ("u32", "u32"), "how": tuple(FLOATING), "t": FORMATS}


@special("set.{how}.{t}x2.{t}x2", **_PAIR)
@special("set.{how}.{result}.{t}x2", result=("u32", "s32"), **_PAIR)
def _set_pair(emitter: Emitter, instruction: ptx.Instruction, how: str, t: str, result: str = "") -> None:
    """Compare half by half: one, or all bits for an integer, where the comparison holds."""
    values = _read(emitter, instruction, "u32")
    true = 0xFFFF if result else ONE[t]
    halves = [_compared(emitter, values, how, t, true, half) for half in ("low_half", "high_half")]
    emitter.write(instruction.operands[0], "u32", f"join_halves({', '.join(halves)})")
