"""Extended-precision integer arithmetic. The carry flag is one more register, `%carry`.

A difference is a + ~b + 1 on hardware, so its carry is set if there is *no* borrow, and subc subtracts one if it is
clear. The PTX ISA only says that sub.cc writes a borrow and that subc reads one, which is the same as long as sums and
differences are not mixed. NVVM's division of 128-bit integers does mix them: addc after subc.cc, to see a borrow.
"""

from __future__ import annotations

import numpy as np

from .. import ptx
from .emitter import Emitter
from .registry import Emit, helper, special
from .types import DTYPES

FLAG = ptx.Register("%carry")


@helper
def add_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unsigned sum a + b + carry and the carry out."""
    first = a + b
    total = first + np.asarray(carry, a.dtype)
    return total, (first < a) | (total < first)


@helper
def sub_carry(a: np.ndarray, b: np.ndarray, carry: np.ndarray | int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unsigned difference a - b - 1 + carry, and the carry out: whether there is no borrow."""
    return add_carry(a, ~b, carry)


def _chained(function: str, first: int, reads: bool, writes: bool) -> Emit:
    """add, addc, sub and subc, with and without .cc; both signs give the same bits. `first`: the carry that add and
    sub start with."""

    def emit(emitter: Emitter, instruction: ptx.Instruction, sign: str, n: str) -> None:
        a, b = emitter.sources(instruction)
        carry = emitter.read(FLAG, "pred") if reads else str(first)
        both = emitter.fresh(f"{function}({a}, {b}, {carry})")
        emitter.write(instruction.operands[0], f"u{n}", f"{both}[0]")
        if writes:
            emitter.write(FLAG, "pred", f"{both}[1]")

    return emit


def _multiplied(reads: bool, writes: bool) -> Emit:
    """mad.cc, madc and madc.cc, with .lo and .hi."""

    def emit(emitter: Emitter, instruction: ptx.Instruction, half: str, sign: str, n: str) -> None:
        a, b, c = emitter.sources(instruction)
        if half == "lo":
            product = f"({a} * {b})"
        elif n == "32":
            wide = DTYPES[f"{sign}64"]
            product = f"(({a}.astype({wide}) * {b}.astype({wide})) >> 32).astype(uint32)"
        else:
            product = f"mulhi_{sign}64({a}, {b})"
        carry = emitter.read(FLAG, "pred") if reads else "0"
        unsigned = DTYPES[f"u{n}"]
        both = emitter.fresh(f"add_carry({product}.view({unsigned}), {c}.view({unsigned}), {carry})")
        emitter.write(instruction.operands[0], f"u{n}", f"{both}[0]")
        if writes:
            emitter.write(FLAG, "pred", f"{both}[1]")

    return emit


_TYPES = {"sign": ("s", "u"), "n": ("32", "64")}
for _c, _cc, _carry in (("", ".cc", (False, True)), ("c", "", (True, False)), ("c", ".cc", (True, True))):
    for _name, _function, _first in (("add", "add_carry", 0), ("sub", "sub_carry", 1)):
        special(
            f"{_name}{_c}{_cc}.{{sign}}{{n}}", results=("u{n}",), operands=("u{n}", "u{n}"), carry=_carry, **_TYPES
        )(_chained(_function, _first, *_carry))  # fmt: skip
    special(
        f"mad{_c}.{{half}}{_cc}.{{sign}}{{n}}", results=("{sign}{n}",), operands=("{sign}{n}",) * 3, carry=_carry,
        half=("lo", "hi"), **_TYPES,
    )(_multiplied(*_carry))  # fmt: skip
