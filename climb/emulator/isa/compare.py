"""Comparison and selection."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, simple, special
from .types import FLOATS, INTEGERS

SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNSIGNED_SIGNS = {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


def _comparisons() -> dict[str, tuple[str, str]]:
    """`operation.type` to (type, expression)."""
    out = {}
    for kind in INTEGERS:
        for name, sign in SIGNS.items():
            out[f"{name}.{kind}"] = (kind, f"{{0}} {sign} {{1}}")
        if kind[0] == "u":
            for name, sign in UNSIGNED_SIGNS.items():
                out[f"{name}.{kind}"] = (kind, f"{{0}} {sign} {{1}}")
    for bits in ("16", "32", "64"):
        for name in ("eq", "ne"):
            out[f"{name}.b{bits}"] = (f"u{bits}", f"{{0}} {SIGNS[name]} {{1}}")
    for kind in FLOATS:
        for name, sign in SIGNS.items():
            # Ordered: false where an operand is NaN. NumPy's != is the unordered one.
            ordered = "({0} < {1}) | ({0} > {1})" if name == "ne" else f"{{0}} {sign} {{1}}"
            out[f"{name}.{kind}"] = (kind, ordered)
        opposite = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}
        for name, other in opposite.items():
            code = "~(({0} < {1}) | ({0} > {1}))" if other == "ne" else f"~({{0}} {SIGNS[other]} {{1}})"
            out[f"{name}.{kind}"] = (kind, code)
        out[f"num.{kind}"] = (kind, "({0} == {0}) & ({1} == {1})")
        out[f"nan.{kind}"] = (kind, "({0} != {0}) | ({1} != {1})")
    return out


def _emit(code: str, kind: str, flush: bool):
    """The forms setp d, a, b; setp d|q, a, b; and with a boolean operation, setp.and d|q, a, b, [!]c."""

    def emit(emitter, instruction: ptx.Instruction) -> None:
        first, *rest = instruction.operands
        a, b = (emitter.read(operand, kind) for operand in rest[:2])
        if flush:
            a, b = emitter.flushed(a), emitter.flushed(b)
        value = code.format(a, b)
        parts = instruction.opcode.split(".")
        operation = next((part for part in parts if part in ("and", "or", "xor")), None)
        inverse = f"~({value})"
        if operation:
            sign = {"and": "&", "or": "|", "xor": "^"}[operation]
            other = emitter.read(rest[2], "pred")
            value, inverse = f"({value}) {sign} {other}", f"({inverse}) {sign} {other}"
        if isinstance(first, ptx.Pair):
            emitter.write(first.first, "pred", value)
            emitter.write(first.second, "pred", inverse)
        else:
            emitter.write(first, "pred", value)

    return emit


for _key, (_kind, _code) in _comparisons().items():
    _name, _type = _key.split(".")
    for _flush in ("", ".ftz") if _type == "f32" else ("",):
        for _boolean in ("", ".and", ".or", ".xor"):
            special(
                f"setp.{_name}{_boolean}{_flush}.{_type}",
                results=("pred",),
                operands=(_kind, _kind) + (("pred",) if _boolean else ()),
            )(_emit(_code, _kind, bool(_flush)))
    for _result in ("u32", "s32"):
        simple(
            f"set.{_name}.{_result}.{_type}",
            _result,
            (_kind, _kind),
            f"-({_code}).astype(int32)" + (".view(uint32)" if _result == "u32" else ""),
        )
    simple(f"set.{_name}.f32.{_type}", "f32", (_kind, _kind), f"({_code}).astype(float32)")

for _bits in ("16", "32", "64"):
    for _kind in "bsuf":
        if _kind + _bits != "f16":
            simple(f"selp.{_kind}{_bits}", f"b{_bits}", (f"b{_bits}", f"b{_bits}", "pred"), "np.where({2}, {0}, {1})")


@helper
def select_sign(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a where c >= 0 (also -0.0), else b (also for NaN)."""
    return np.where(c >= 0, a, b)


for _bits in ("16", "32", "64"):
    for _kind in ("b", "s", "u", "f"):
        if _kind + _bits == "f16":
            continue
        for _by in ("s32", "f32"):
            simple(
                f"slct.{_kind}{_bits}.{_by}",
                f"b{_bits}",
                (f"b{_bits}", f"b{_bits}", _by),
                "select_sign({0}, {1}, {2})",
            )
