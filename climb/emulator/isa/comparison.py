"""Comparison and selection."""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import helper, simple, special
from .types import INTEGERS, UNSIGNED, WIDTHS

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNSIGNED = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_NEGATED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
_UNEQUAL = "({0} < {1}) | ({0} > {1})"
#: Integer comparisons.
INTEGER = {name: f"{{0}} {sign} {{1}}" for name, sign in (SIGNS | _UNSIGNED).items()}
#: Floating-point comparisons. The ordered ones are false where an operand is NaN; NumPy's != is true there.
FLOATING = {
    **{name: f"{{0}} {sign} {{1}}" for name, sign in SIGNS.items()},
    "ne": _UNEQUAL,
    **{name: f"~({{0}} {SIGNS[other]} {{1}})" for name, other in _NEGATED.items()},
    "equ": f"~({_UNEQUAL})",
    "num": "({0} == {0}) & ({1} == {1})",
    "nan": "({0} != {0}) | ({1} != {1})",
}
_BOOLEAN = {".and": "&", ".or": "|", ".xor": "^"}


def _code(how: str, t: str = "") -> str:
    return (FLOATING if t[:1] == "f" else INTEGER)[how]


def _setp(
    emitter: Emitter, instruction: ptx.Instruction, how: str, t: str = "", n: str = "", boolean: str = "", ftz: str = ""
) -> None:
    """The forms setp d, a, b; setp d|q, a, b; and with a boolean operation, setp.and d|q, a, b, [!]c."""
    first, *rest = instruction.operands
    a, b = (emitter.read(operand, t or f"u{n}") for operand in rest[:2])
    if ftz:
        a, b = emitter.flushed(a), emitter.flushed(b)
    value = _code(how, t).format(a, b)
    inverse = f"~({value})"
    if boolean:
        other = emitter.read(rest[2], "pred")
        value, inverse = (f"({code}) {_BOOLEAN[boolean]} {other}" for code in (value, inverse))
    if isinstance(first, ptx.Pair):
        emitter.write(first.first, "pred", value)
        emitter.write(first.second, "pred", inverse)
    else:
        emitter.write(first, "pred", value)


def _all_bits(how: str, result: str, t: str = "", n: str = "") -> str:
    """Return all bits set where the comparison holds, else zero."""
    return f"-({_code(how, t)}).astype(int32)" + (".view(uint32)" if result == "u32" else "")


def _one(how: str, t: str = "", n: str = "") -> str:
    """Return 1.0 where the comparison holds, else 0.0."""
    return f"({_code(how, t)}).astype(float32)"


def _comparisons(types: str, operand: str, flush: tuple[str, ...] = (), **choices: tuple[str, ...]) -> None:
    """Register setp and set for `types`, the last part of the opcode; `operand` is the type of both operands."""
    two, ftz, flushed = (operand, operand), "{ftz}" if flush else "", {"ftz": flush} if flush else {}
    special(f"setp.{{how}}{ftz}.{types}", results=("pred",), operands=two, **flushed, **choices)(_setp)
    special(
        f"setp.{{how}}{{boolean}}{ftz}.{types}", results=("pred",), operands=(*two, "pred"),
        boolean=tuple(_BOOLEAN), **flushed, **choices,
    )(_setp)  # fmt: skip
    simple(f"set.{{how}}.{{result}}.{types}", "{result}", two, _all_bits, result=("u32", "s32"), **choices)
    simple(f"set.{{how}}.f32.{types}", "f32", two, _one, **choices)


_comparisons("{t}", "{t}", how=tuple(SIGNS), t=INTEGERS)
_comparisons("{t}", "{t}", how=tuple(_UNSIGNED), t=UNSIGNED)
_comparisons("b{n}", "u{n}", how=("eq", "ne"), n=WIDTHS)
_comparisons("{t}", "{t}", ("", ".ftz"), how=tuple(FLOATING), t=("f32",))
_comparisons("{t}", "{t}", how=tuple(FLOATING), t=("f64",))


@helper
def select_sign(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return a where c >= 0, -0.0 included; elsewhere b, also where c is NaN."""
    return np.where(c >= 0, a, b)


for _t, _widths in (("{sign}{n}", {"sign": ("b", "s", "u"), "n": WIDTHS}), ("f{n}", {"n": ("32", "64")})):
    _two = ("b{n}", "b{n}")
    simple(f"selp.{_t}", "b{n}", (*_two, "pred"), "np.where({2}, {0}, {1})", **_widths)
    simple(
        f"slct.{_t}.{{by}}", "b{n}", (*_two, "{by}"), "select_sign({0}, {1}, {2})", by=("s32", "f32"), **_widths
    )  # fmt: skip
