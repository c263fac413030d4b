"""Instructions with .ftz: which operands and results they flush, and that others flush nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from float_checks import MODES, check, subnormal_cases
from harness import run_ptx
from values import cases, single

LEAST = Fraction(2) ** -126


def flushed(exact: Fraction, out: float, mode: str) -> float:
    """`out`, or zero if the exact result, rounded to 24 bits with any exponent, is below the least normal number."""
    if exact == 0 or math.isinf(out):
        return out
    scale = Fraction(2) ** 60  # away from subnormal numbers, where rounding is to 24 bits
    return out if abs(reference.round_to(exact * scale, "f32", mode)) >= LEAST * scale else math.copysign(0.0, out)


def product_flushed(a: float, b: float, c: float | None = None, mode: str = "rn") -> float:
    """a * b or a * b + c, flushed as on an H200."""
    out = reference.mul(a, b, "f32", mode) if c is None else reference.fma(a, b, c, "f32", mode)
    if not all(map(math.isfinite, (a, b, c or 0.0))):
        return out
    return flushed(Fraction(a) * Fraction(b) + Fraction(c or 0.0), out, mode)


@pytest.mark.parametrize("mode", MODES)
def test_results_that_round_to_the_least_normal_number_flush_as_on_an_h200(mode):
    """An H200 flushes 2^-126 (1 - 2^-24) in every mode; larger values are not flushed when rounding up."""
    least, below, above = 2.0**-126, 1 - 2.0**-24, 1 + 2.0**-23
    rows = [(s * x, y) for s in (1, -1) for x in (least, 2 * least, 2.0**-100) for y in (below, 0.5, above, 2.0**-26)]
    rows += [(s * least * (2 - 2.0**-22), 0.5 * (1 + 2.0**-23)) for s in (1, -1)]
    check(f"mul.{mode}.ftz.f32", ("f32", "f32"), "f32", lambda a, b: product_flushed(a, b, None, mode), rows)
    triples = [(a, b, c) for a, b in rows for c in (0.0, 2.0**-125, -least, least * above)]
    triples += [(2.0**-100, -(2.0**-k), least) for k in (48, 49, 50, 51, 52, 53, 60)]
    check(f"fma.{mode}.ftz.f32", ("f32",) * 3, "f32", lambda a, b, c: product_flushed(a, b, c, mode), triples)
    pairs = [(s * least * 2 * below, 2.0) for s in (1, -1)] + [
        (least, above),
        (least * above, 1 + 2.0**-22),
        (least, 1.0),
    ]
    check(f"div.{mode}.ftz.f32", ("f32", "f32"), "f32",
          lambda a, b: flushed(Fraction(a) / Fraction(b), reference.div(a, b, "f32", mode), mode), pairs)  # fmt: skip
    tiny = [least * (1 - 2.0**-k) * s for k in (23, 24, 25, 26, 30, 53) for s in (1, -1)] + [least, -least]
    tiny += [least * (1 - 2.0**-24 + e * 2.0**-50) for e in (-1, 1)] + [least * (1 - 1.9 * 2.0**-25)]
    tiny += [1.1754942131213606e-38, 1.1754943008284875e-38, 1.1754942356518712e-38]

    def narrowed(a: float) -> float:
        return flushed(Fraction(a), reference.round_to(Fraction(a), "f32", mode), mode)

    check(f"cvt.{mode}.ftz.f32.f64", ("f64",), "f32", narrowed, [(a,) for a in tiny])


def test_ftz_flushes_operands_and_results():
    flush = reference.flush

    def two(function):
        return lambda a, b: flush(function(flush(a), flush(b), "f32"))

    check("add.ftz.f32", ("f32", "f32"), "f32", two(reference.add))
    check("mul.ftz.f32", ("f32", "f32"), "f32", lambda a, b: product_flushed(flush(a), flush(b)))
    check("div.rn.ftz.f32", ("f32", "f32"), "f32", two(reference.div))  # no quotient here is close to the edge
    rows = cases(("f32",) * 3, extra=2000) + subnormal_cases()
    check(
        "fma.rn.ftz.f32",
        ("f32",) * 3,
        "f32",
        lambda a, b, c: product_flushed(flush(a), flush(b), flush(c)),
        rows,
    )
    check("abs.ftz.f32", ("f32",), "f32", lambda a: abs(flush(a)))
    check("neg.ftz.f32", ("f32",), "f32", lambda a: -flush(a))


def test_only_ftz_instructions_flush_a_loaded_subnormal():
    """The translator drops needless flushes. Here a flushing and a plain instruction use a loaded subnormal."""
    tiny = single(5)
    got = run_ptx("add.ftz.f32 %o0, %i0, 0f00000000; add.f32 %o1, %i0, 0f00000000;", [("f32", [tiny])], ["f32", "f32"])
    assert got[0].tolist() == [0.0] and got[1].tolist() == [tiny]
    # A flushed value may become subnormal again through an instruction that does not flush.
    got = run_ptx(
        "add.ftz.f32 %o0, %i0, %i0; mul.f32 %o0, %o0, 0f3F000000; add.ftz.f32 %o1, %o0, 0f00000000;",
        [("f32", [single(0x00800000)])],
        ["f32", "f32"],
    )
    assert got[0].tolist() == [2.0**-126] and got[1].tolist() == [2.0**-126]
    got = run_ptx(
        "add.ftz.f32 %o0, %i0, 0f00000000; mul.f32 %o0, %o0, 0f3F000000; add.ftz.f32 %o1, %o0, 0f00000000;",
        [("f32", [single(0x00800000)])],
        ["f32", "f32"],
    )
    assert got[0].tolist() == [2.0**-127] and got[1].tolist() == [0.0]


@pytest.mark.parametrize("opcode", ["min.ftz.NaN.f32", "min.NaN.ftz.f32"])
def test_minimum_that_keeps_nan_flushes_with_its_modifiers_in_either_order(opcode):
    """ptxas takes both."""
    tiny, nan = [("u32", [0x00000001]), ("u32", [0x3F800000])], [("u32", [0x7FC00000]), ("u32", [0x3F800000])]
    assert int(run_ptx(f"{opcode} %o0, %i0, %i1;", tiny, ["u32"], "")[0][0]) == 0
    assert hex(int(run_ptx(f"{opcode} %o0, %i0, %i1;", nan, ["u32"], "")[0][0])) == "0x7fffffff"


def test_ftz_comparisons_flush_their_operands():
    tiny = single(1)
    (got,) = run_ptx("setp.gt.ftz.f32 %q2, %i0, %i1;", [("f32", [tiny, 1.0]), ("f32", [0.0, 0.0])], ["pred"])
    assert got.tolist() == [0, 1]


def test_a_subnormal_of_an_instruction_without_ftz_is_flushed_by_the_next_one_with_ftz() -> None:
    small = np.float32(2.0**-130)
    body = "add.f32 %t, %i0, %i0; mul.ftz.f32 %o0, %t, %i1; mul.f32 %o1, %t, %i1;"
    flushed, kept = run_ptx(body, [("f32", [small]), ("f32", [np.float32(2.0**20)])], ["f32", "f32"], ".reg .f32 %t;")
    assert (flushed.tolist(), kept.tolist()) == ([0.0], [2.0**-109])
