"""Conversions of floating-point numbers: to and from integers, to other widths, to integral values and to TF32."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import reference
from float_checks import MODES, check
from harness import run_ptx
from values import cases, single


@pytest.mark.parametrize("of", ["f32", "f64"])
@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
def test_conversion_to_integer_rounds_and_clamps(of, mode):
    rows = cases((of,), extra=1000)
    halves = [(x + 0.5,) for x in range(-5, 6)] + [(float(2**31) - 0.5,)] * (of == "f64")
    rows += halves
    columns = [(of, [row[0] for row in rows])]
    for to in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        (got,) = run_ptx(f"cvt.{mode}.{to}.{of} %o0, %i0;", columns, [to])
        for (value,), found in zip(rows, got, strict=True):
            assert int(found) == reference.to_integer(value, to, mode, of), (to, value)


@pytest.mark.parametrize("of", ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"])
@pytest.mark.parametrize("mode", MODES)
def test_conversion_from_integer_is_exactly_rounded(of, mode):
    rows = cases((of,), extra=500)
    if of in ("s64", "u64", "s32", "u32"):
        rows += [(2**k + d,) for k in range(24, int(of[1:]) - 1) for d in (-1, 1, 2 ** max(k - 24, 0), 3)]
    for to in ("f32", "f64"):
        check(f"cvt.{mode}.{to}.{of}", (of,), to, lambda a, to=to: reference.round_to(Fraction(a), to, mode), rows)


@pytest.mark.parametrize("mode", MODES)
def test_conversion_from_double_to_single_is_exactly_rounded(mode):
    def narrow(a: float) -> float:
        if math.isnan(a) or math.isinf(a):
            return a
        return reference.round_to(Fraction(a), "f32", mode, math.copysign(0.0, a))

    rng = random.Random(9)
    rows = cases(("f64",), extra=1000) + [(rng.uniform(-1, 1) * 2.0 ** rng.randint(-155, 130),) for _ in range(1000)]
    check(f"cvt.{mode}.f32.f64", ("f64",), "f32", narrow, rows)


def test_widening_and_rounding_to_integral_values_are_exact():
    check("cvt.f64.f32", ("f32",), "f64", lambda a: a)
    whole = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    for mode, function in whole.items():
        for kind in ("f32", "f64"):

            def integral(a: float, function=function) -> float:
                return a if math.isnan(a) or math.isinf(a) else math.copysign(float(function(a)), a)

            check(f"cvt.{mode}.{kind}.{kind}", (kind,), kind, integral)


@pytest.mark.parametrize("mode", ["rna", "rn"])
def test_tf32_conversion_rounds_to_ten_bits(mode):
    """Ten bits of fraction; ties away from zero, or to even."""
    rows = [1 + 2.0**-11, 1 + 3 * 2.0**-11, -(1 + 2.0**-11), 1 + 2.0**-11 + 2.0**-23, 1 + 2.0**-12, 0.0, -0.0, 3.0]
    rows += [math.inf, -math.inf, 3.4e38, single(5), *(random.Random(7).uniform(-9, 9) for _ in range(200))]
    rows = [float(np.float32(v)) for v in rows]
    (got,) = run_ptx(f"cvt.{mode}.tf32.f32 %o0, %i0;", [("f32", rows)], ["b32"])
    for value, bits in zip(rows, got.tolist(), strict=True):
        if math.isinf(value):
            want = value
        else:
            unit = Fraction(2) ** (max(math.frexp(value)[1] - 1, -126) - 10)
            scaled = abs(Fraction(value)) / unit
            whole = math.floor(scaled + Fraction(1, 2)) if mode == "rna" else round(scaled)
            want = math.copysign(float(min(whole * unit, Fraction(2) ** 128)) if whole * unit < Fraction(2) ** 128
                                 else math.inf, value)  # fmt: skip
        assert single(bits) == want and math.copysign(1, single(bits)) == math.copysign(1, want), (value, bits)
