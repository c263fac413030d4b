"""Floating-point instructions: compare bit for bit with exact fractions rounded once, one thread at a time."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import reference
from harness import run_ptx
from values import cases, random_value, single

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


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("mode", MODES)
def test_sums_differences_and_products_are_exactly_rounded(kind, mode):
    check(f"add.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.add(a, b, kind, mode))
    check(f"sub.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.add(a, -b, kind, mode))
    check(f"mul.{mode}.{kind}", (kind, kind), kind, lambda a, b: reference.mul(a, b, kind, mode))


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


def subnormal_cases() -> list[tuple[float, float, float]]:
    """Products and sums at the bottom of the range."""
    rng, rows = random.Random(4), []
    for _ in range(1500):
        a = single((rng.randint(1, 200) << 23) | rng.getrandbits(23))
        b = single(((rng.randint(40, 110)) << 23) | rng.getrandbits(23))
        c = single(rng.getrandbits(24)) * rng.choice((1, -1, 0))
        rows.append((a * rng.choice((1, -1)), b, c))
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


@pytest.mark.parametrize("opcode", ["min.ftz.NaN.f32", "min.NaN.ftz.f32"])
def test_minimum_that_keeps_nan_flushes_with_its_modifiers_in_either_order(opcode):
    """ptxas takes both."""
    tiny, nan = [("u32", [0x00000001]), ("u32", [0x3F800000])], [("u32", [0x7FC00000]), ("u32", [0x3F800000])]
    assert int(run_ptx(f"{opcode} %o0, %i0, %i1;", tiny, ["u32"], "")[0][0]) == 0
    assert hex(int(run_ptx(f"{opcode} %o0, %i0, %i1;", nan, ["u32"], "")[0][0])) == "0x7fffffff"


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


def test_ftz_comparisons_flush_their_operands():
    tiny = single(1)
    (got,) = run_ptx("setp.gt.ftz.f32 %q2, %i0, %i1;", [("f32", [tiny, 1.0]), ("f32", [0.0, 0.0])], ["pred"])
    assert got.tolist() == [0, 1]


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
    from fractions import Fraction

    rows = cases((of,), extra=500)
    if of in ("s64", "u64", "s32", "u32"):
        rows += [(2**k + d,) for k in range(24, int(of[1:]) - 1) for d in (-1, 1, 2 ** max(k - 24, 0), 3)]
    for to in ("f32", "f64"):
        check(f"cvt.{mode}.{to}.{of}", (of,), to, lambda a, to=to: reference.round_to(Fraction(a), to, mode), rows)


@pytest.mark.parametrize("mode", MODES)
def test_conversion_from_double_to_single_is_exactly_rounded(mode):
    from fractions import Fraction

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


def test_a_subnormal_of_an_instruction_without_ftz_is_flushed_by_the_next_one_with_ftz() -> None:
    small = np.float32(2.0**-130)
    body = "add.f32 %t, %i0, %i0; mul.ftz.f32 %o0, %t, %i1; mul.f32 %o1, %t, %i1;"
    flushed, kept = run_ptx(body, [("f32", [small]), ("f32", [np.float32(2.0**20)])], ["f32", "f32"], ".reg .f32 %t;")
    assert (flushed.tolist(), kept.tolist()) == ([0.0], [2.0**-109])
