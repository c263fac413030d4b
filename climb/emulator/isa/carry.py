"""Extended-precision arithmetic: the carry flag is one more register, `%carry`."""

from __future__ import annotations

import numpy as np

from .. import ptx
from . import helper, special

FLAG = ptx.Register("%carry")


@helper
def add_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """(sum, carry out) of unsigned a + b + carry."""
    first = a + b
    total = first + np.asarray(carry, a.dtype)
    return total, (first < a) | (total < first)


@helper
def sub_borrow(a: np.ndarray, b: np.ndarray, borrow: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """(difference, borrow out) of unsigned a - b - borrow."""
    first = a - b
    total = first - np.asarray(borrow, a.dtype)
    return total, (a < b) | (first < total)


def _chain(name: str, bits: str, function: str, reads: bool, writes: bool) -> None:
    """add, addc, sub, subc, with and without .cc, of both signs: the bits are the same."""
    kind = f"u{bits}"
    for sign in "su":

        @special(f"{name}.{sign}{bits}", results=(kind,), operands=(kind, kind), carry=(reads, writes))
        def emit(emitter, instruction: ptx.Instruction) -> None:
            a, b = emitter.sources(instruction)
            carry = emitter.read(FLAG, "pred") if reads else "0"
            both = emitter.fresh(f"{function}({a}, {b}, {carry})")
            emitter.write(instruction.operands[0], kind, f"{both}[0]")
            if writes:
                emitter.write(FLAG, "pred", f"{both}[1]")


def _multiply(name: str, bits: str, half: str, reads: bool, writes: bool) -> None:
    """mad.lo.cc, madc.lo, madc.lo.cc, and .hi."""
    for sign in "su":
        kind = f"{sign}{bits}"
        wide = {"32": "int64" if sign == "s" else "uint64"}.get(bits)

        @special(f"{name}.{kind}", results=(kind,), operands=(kind, kind, kind), carry=(reads, writes))
        def emit(emitter, instruction: ptx.Instruction, kind: str = kind, wide: str | None = wide) -> None:
            a, b, c = emitter.sources(instruction)
            if half == "lo":
                product = f"({a} * {b})"
            elif wide:
                product = f"(({a}.astype({wide}) * {b}.astype({wide})) >> 32).astype(uint32)"
            else:
                product = f"mulhi_{kind}({a}, {b})"
            carry = emitter.read(FLAG, "pred") if reads else "0"
            unsigned = f"uint{bits}"
            both = emitter.fresh(f"add_carry({product}.view({unsigned}), {c}.view({unsigned}), {carry})")
            emitter.write(instruction.operands[0], f"u{bits}", f"{both}[0]")
            if writes:
                emitter.write(FLAG, "pred", f"{both}[1]")


for _bits in ("32", "64"):
    for _operation, _function in (("add", "add_carry"), ("sub", "sub_borrow")):
        _chain(f"{_operation}.cc", _bits, _function, False, True)
        _chain(f"{_operation}c", _bits, _function, True, False)
        _chain(f"{_operation}c.cc", _bits, _function, True, True)
    for _half in ("lo", "hi"):
        _multiply(f"mad.{_half}.cc", _bits, _half, False, True)
        _multiply(f"madc.{_half}", _bits, _half, True, False)
        _multiply(f"madc.{_half}.cc", _bits, _half, True, True)
