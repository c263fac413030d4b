"""Compare a floating-point instruction bit for bit with a function of Python, one thread at a time."""

from __future__ import annotations

import math
import random

import reference
from harness import run_ptx
from values import cases, single

MODES = ("rn", "rz", "rm", "rp")


def same(got: float, want: float, kind: str) -> bool:
    """Bit equality; any NaN equals any other."""
    if math.isnan(want):
        return math.isnan(got)
    return reference.bits_of(got, kind) == reference.bits_of(want, kind)


def check(opcode: str, kinds: tuple[str, ...], result: str, expected, rows: list[tuple] | None = None) -> None:
    """Compare `opcode` with `expected`, a function of the operands."""
    rows = rows or cases(kinds, seed=len(opcode), extra=600)
    columns = list(zip(*rows, strict=True))
    operands = ", ".join(f"%i{n}" for n in range(len(kinds)))
    (got,) = run_ptx(f"{opcode} %o0, {operands};", list(zip(kinds, columns, strict=True)), [result])
    wrong = [(row, g, w) for row, g in zip(rows, got.tolist(), strict=True) if not same(g, w := expected(*row), result)]
    assert not wrong, f"{opcode}: {len(wrong)} wrong, first {wrong[0]} (operands, got, expected)"


def subnormal_cases() -> list[tuple[float, float, float]]:
    """Products and sums at the bottom of the range."""
    rng, rows = random.Random(4), []
    for _ in range(1500):
        a = single((rng.randint(1, 200) << 23) | rng.getrandbits(23))
        b = single(((rng.randint(40, 110)) << 23) | rng.getrandbits(23))
        c = single(rng.getrandbits(24)) * rng.choice((1, -1, 0))
        rows.append((a * rng.choice((1, -1)), b, c))
    return rows
