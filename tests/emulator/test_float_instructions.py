"""Floating-point instructions: compare bit for bit with exact fractions rounded once, one thread at a time."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import reference
from float_checks import MODES, check, same, subnormal_cases
from harness import run_ptx
from values import cases, random_value


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_sums_differences_and_products_are_exactly_rounded(kind, mode):
    check(f"add.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.add(a, b, kind, mode))
    check(f"sub.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.add(a, -b, kind, mode))
    check(f"mul.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.mul(a, b, kind, mode))


@pytest.mark.parametrize("mode", MODES)
def test_doubles_that_are_nearly_infinite_are_exactly_rounded(mode):
    """The parts of an error-free sum or product can overflow where the result does not."""
    draw, largest = random.Random(0), 2.0**1023 * (2 - 2.0**-52)
    products, sums = [], []
    for _ in range(200):
        factor = math.ldexp(1 + draw.random(), draw.randrange(1, 600))
        products.append((largest / factor * (1 - draw.random() * 2.0 ** -draw.randrange(1, 53)), factor))
        less = math.ldexp(1 + draw.random(), draw.randrange(960, 1023))
        sums += [(-less, largest), (less, -largest), (largest, -less), (-largest, less)]
    check(f"mul.{mode}.f64", ("f64", "f64"), "f64", lambda a, b: reference.mul(a, b, "f64", mode), products)
    check(f"add.{mode}.f64", ("f64", "f64"), "f64", lambda a, b: reference.add(a, b, "f64", mode), sums)


@pytest.mark.parametrize("mode", MODES)
def test_quotients_and_roots_are_exactly_rounded(mode):
    check(f"div.{mode}.f32", ("f32", "f32"), "f32", lambda a, b: reference.div(a, b, "f32", mode))
    check(f"rcp.{mode}.f32", ("f32",), "f32", lambda a: reference.div(1.0, a, "f32", mode))
    check(f"sqrt.{mode}.f32", ("f32",), "f32", lambda a: reference.sqrt(a, "f32", mode))


@pytest.mark.parametrize("mode", MODES)
def test_quotients_and_roots_of_doubles_are_exactly_rounded(mode):
    check(f"div.{mode}.f64", ("f64", "f64"), "f64", lambda a, b: reference.div(a, b, "f64", mode))
    check(f"rcp.{mode}.f64", ("f64",), "f64", lambda a: reference.div(1.0, a, "f64", mode))
    check(f"sqrt.{mode}.f64", ("f64",), "f64", lambda a: reference.sqrt(a, "f64", mode))


@pytest.mark.parametrize("mode", MODES[1:])
def test_fused_doubles_are_rounded_once_in_every_mode(mode):
    """Exact zeros, cancellation, and products below and above what float64 holds."""
    rows = cases(("f64",) * 3, seed=5, extra=600)
    tiny, near = 2.0**-1074, 1 + 2.0**-52
    rows += [(a, b, c) for a in (0.0, -0.0, 1.0, -1.0) for b in (0.0, 1.0, -3.0) for c in (0.0, -0.0, 1.0, 3.0, -1.0)]
    rows += [(tiny, 0.5, 0.0), (tiny, -0.5, 0.0), (-tiny, -0.25, -0.0), (2.0**1023, 4.0, -1.0), (near, near, -near)]
    # Sums that are not zero and yet below the least number: c cancels a product but for its last bits, or takes the
    # least number away from five quarters of it.
    left, right = 2.0**-505 * (2 - 2.0**-52), 2.0**-474 * (2 - 2.0**-52)
    rows += [(x * left, right, -x * left * right) for x in (1.0, -1.0)]
    rows += [(x * 1.25, tiny, -x * tiny) for x in (1.0, -1.0)]
    check(f"fma.{mode}.f64", ("f64",) * 3, "f64", lambda a, b, c: reference.fma(a, b, c, "f64", mode), rows)


def halfway_cases() -> list[tuple[float, float, float]]:
    """Sums of c, half a unit in its last place and a term too small for float64: float64 then float32 rounds twice.

    (1 + 2^-15)(1 - 2^-15) = 1 - 2^-30 and (1 + 2^-12)(1 - 2^-12 + 2^-24) = 1 + 2^-36, with factors that float32 holds.
    """
    rng, rows = random.Random(3), []
    below, above = (1 + 2.0**-15, 1 - 2.0**-15), (1 + 2.0**-12, 1 - 2.0**-12 + 2.0**-24)
    for _ in range(400):
        exponent = rng.randint(-100, 100)
        big = (2**23 + rng.getrandbits(23)) * 2.0**exponent
        half = 2.0 ** (exponent - 1)
        for first, second in (below, above, (1.0, 1.0)):
            for sign in (1, -1):
                rows.append((sign * half * first, second, rng.choice((1, -1)) * big))
    assert all(float(np.float32(v)) == v for row in rows for v in row)
    return rows


@pytest.mark.parametrize("mode", MODES)
def test_single_fma_is_rounded_once(mode):
    rows = cases(("f32",) * 3, extra=2000) + halfway_cases() + subnormal_cases()
    check(f"fma.{mode}.f32", ("f32",) * 3, "f32", lambda a, b, c: reference.fma(a, b, c, "f32", mode), rows)


def test_the_halfway_cases_expose_double_rounding():
    """The cases above can find double rounding only if rounding twice fails on some of them."""
    rows = halfway_cases() + subnormal_cases()
    twice = [float(np.float32(a * b + c)) for a, b, c in rows]
    once = [reference.fma(a, b, c, "f32") for a, b, c in rows]
    assert sum(not same(x, y, "f32") for x, y in zip(twice, once, strict=True)) > 20


def test_double_fma_is_rounded_once():
    rng = random.Random(5)
    rows = cases(("f64",) * 3, extra=2000)
    for _ in range(3000):
        a, b = random_value("f64", rng), rng.uniform(-4, 4)
        near = -a * b
        rows.append((a, b, near if not math.isnan(near) else 0.0))
        x, y = rng.uniform(1, 2), rng.uniform(1, 2)
        rows.append((x, y, -x * y * (1 + rng.choice((0, 2.0**-52, 2.0**-30)))))
        scale = 2.0 ** rng.randint(-1070, -950)
        rows.append((x * scale, y, rng.choice((1, -1)) * scale * rng.uniform(0, 3)))
    check("fma.rn.f64", ("f64",) * 3, "f64", lambda a, b, c: reference.fma(a, b, c, "f64"), rows)


def test_underflowing_products_of_doubles_keep_their_sign():
    rows = [(s * 2.0**-600, 2.0**-600, c) for s in (1, -1) for c in (0.0, -0.0)]
    check("fma.rn.f64", ("f64",) * 3, "f64", lambda a, b, c: math.copysign(0.0, a), rows)


def test_minimum_treats_signalling_nans_as_nan():
    """0x7f800001 is a signalling NaN. Of it and a number, NumPy returns NaN, but PTX returns the number."""
    (low,) = run_ptx(
        "min.f32 %o0, %i0, 0f3F800000;", [("f32", np.array([0x7F800001], np.uint32).view(np.float32))], ["f32"]
    )
    (high,) = run_ptx("max.f16 %o0, %i0, %i1;", [("b16", [0xFD7B, 0x3C00]), ("b16", [0x3C00, 0x7D00])], ["b16"])
    assert low.tolist() == [1.0] and high.tolist() == [0x3C00, 0x3C00]


def test_sat_clamps_to_zero_and_one():
    def saturate(x: float) -> float:
        return 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)

    check("add.sat.f32", ("f32", "f32"), "f32", lambda a, b: saturate(reference.add(a, b, "f32")))
    check("fma.rn.sat.f32", ("f32",) * 3, "f32", lambda a, b, c: saturate(reference.fma(a, b, c, "f32")))
    check("cvt.sat.f32.f32", ("f32",), "f32", saturate)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_minimum_and_maximum_prefer_numbers_to_nan(kind):
    def pick(a: float, b: float, least: bool) -> float:
        if math.isnan(a) or math.isnan(b):
            return b if math.isnan(a) else a
        return (min if least else max)(a, b, key=lambda x: (x, math.copysign(1, x)))

    check(f"min.{kind}", (kind, kind), kind, lambda a, b: pick(a, b, True))
    check(f"max.{kind}", (kind, kind), kind, lambda a, b: pick(a, b, False))


def test_minimum_with_the_nan_modifier_returns_nan():
    def least(a: float, b: float) -> float:
        return math.nan if math.isnan(a) or math.isnan(b) else min(a, b, key=lambda x: (x, math.copysign(1, x)))

    check("min.NaN.f32", ("f32", "f32"), "f32", least)


def test_minimum_of_two_nans_is_the_canonical_nan():
    (got,) = run_ptx("min.f32 %o0, %i0, %i1;", [("u32", [0xFFC00001]), ("u32", [0x7F800123])], ["u32"], "")
    assert hex(int(got[0])) == "0x7fffffff"


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_comparisons_match_python(kind):
    rows = cases((kind, kind))
    columns = [(kind, c) for c in zip(*rows, strict=True)]
    tests = {
        "eq": lambda a, b: a == b, "ne": lambda a, b: a < b or a > b, "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    }  # fmt: skip
    for name, test in tests.items():
        ordered, unordered = run_ptx(
            f"setp.{name}.{kind} %q2, %i0, %i1; setp.{name}u.{kind} %q3, %i0, %i1;", columns, ["pred", "pred"]
        )
        for (a, b), one, two in zip(rows, ordered, unordered, strict=True):
            nan = math.isnan(a) or math.isnan(b)
            assert bool(one) == (not nan and test(a, b)), (name, a, b)
            assert bool(two) == (nan or test(a, b)), (name, a, b)
    number, nan = run_ptx(f"setp.num.{kind} %q2, %i0, %i1; setp.nan.{kind} %q3, %i0, %i1;", columns, ["pred", "pred"])
    for (a, b), one, two in zip(rows, number, nan, strict=True):
        assert bool(two) == (math.isnan(a) or math.isnan(b)) and bool(one) != bool(two)


def test_copysign_and_testp_follow_the_bits():
    check("copysign.f32", ("f32", "f32"), "f32", lambda a, b: math.copysign(b, a))
    rows = cases(("f32",))
    column = [("f32", [row[0] for row in rows])]
    tests = {
        "finite": math.isfinite, "infinite": math.isinf, "notanumber": math.isnan,
        "number": lambda a: not math.isnan(a),
        "normal": lambda a: math.isfinite(a) and abs(a) >= 2.0**-126, "subnormal": lambda a: 0 < abs(a) < 2.0**-126,
    }  # fmt: skip
    for name, test in tests.items():
        (got,) = run_ptx(f"testp.{name}.f32 %q1, %i0;", column, ["pred"])
        assert [bool(g) for g in got] == [test(row[0]) for row in rows], name


def test_approximations_are_within_the_bounds_of_ptx():
    """PTX ISA, section 9.7.3: ex2 within 2 ulp, lg2 2^-22.6, sin and cos 2^-20.9 in [-pi, pi], others 1 to 2 ulp."""
    rng = random.Random(6)
    values = [float(np.float32(rng.uniform(0.01, 3))) for _ in range(1000)]
    functions = {
        "ex2": (lambda x: 2.0**x, 2.0**-22), "lg2": (math.log2, 2.0**-22), "sin": (math.sin, 2.0**-20.9),
        "cos": (math.cos, 2.0**-20.9), "rcp": (lambda x: 1 / x, 2.0**-23), "sqrt": (math.sqrt, 2.0**-22),
        "rsqrt": (lambda x: x**-0.5, 2.0**-22), "tanh": (math.tanh, 2.0**-10.9),
    }  # fmt: skip
    for name, (function, bound) in functions.items():
        (got,) = run_ptx(f"{name}.approx.f32 %o0, %i0;", [("f32", values)], ["f32"])
        for x, y in zip(values, got.tolist(), strict=True):
            assert abs(y - function(x)) <= bound * max(1.0, abs(function(x))), (name, x)


@pytest.mark.parametrize("scale", [1, 0, -1, -2, -30])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_fused_product_at_half_a_digit_is_rounded_by_the_last_bit_of_the_sum(scale: int, sign: int) -> None:
    """(1 + 2^-12)^2 lies halfway between two floats; a sum far too small for a float64 to hold decides."""
    factor, half = np.float32(1 + 2.0**-12), 1 + 2.0**-11
    unit = 2.0**scale
    tiny = [np.float32(unit * small) for small in (2.0**-60, -(2.0**-60), 0.0)]
    left = [np.float32(sign * unit * factor)] * 3
    (out,) = run_ptx("fma.rn.f32 %o0, %i0, %i1, %i2;", [("f32", left), ("f32", [factor] * 3), ("f32", tiny)], ["f32"])
    away, toward = sign * unit * (half + 2.0**-23), sign * unit * half
    assert out.tolist() == ([away, toward, toward] if sign > 0 else [toward, away, toward])
