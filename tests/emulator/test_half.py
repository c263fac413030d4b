"""float16 and bfloat16: compare with exact fractions rounded once."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import numpy as np
import pytest
import reference
from harness import Device, run_ptx
from tools.thorough import choose


def decode(bits: int, kind: str) -> float:
    """The value of 16 bits."""
    if kind == "f16":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def patterns(seed: int, number: int) -> list[int]:
    """Bit patterns: edges of both formats and random ones."""
    rng = random.Random(seed)
    edges = [
        0,
        0x8000,
        1,
        0x8001,
        0x3FF,
        0x400,
        0x7BFF,
        0x7C00,
        0xFC00,
        0x3C00,
        0x3C01,
        0x7F,
        0x80,
        0x7F7F,
        0x7F80,
        0x3F80,
        0x3F81,
    ]
    return [rng.choice(edges) if rng.random() < 0.3 else rng.getrandbits(16) for _ in range(number)]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("pair", [False, True])
def test_arithmetic_matches_exact_results(kind, pair):
    columns = [patterns(s, choose(1500, thorough=6000)) for s in range(3)]
    functions = {
        "add": lambda a, b, c: reference.add(a, b, kind), "mul": lambda a, b, c: reference.mul(a, b, kind),
        "sub": lambda a, b, c: reference.add(a, -b, kind), "fma": lambda a, b, c: reference.fma(a, b, c, kind),
    }  # fmt: skip
    for name, function in functions.items():
        operands = "%i0, %i1, %i2" if name == "fma" else "%i0, %i1"
        opcode = f"{name}{'.rn' if name == 'fma' else ''}.{kind}{'x2' if pair else ''}"
        if pair:
            # The upper halves take the same values in reverse order.
            inputs = [("u32", [low | high << 16 for low, high in zip(c, reversed(c), strict=True)]) for c in columns]
            (got,) = run_ptx(f"{opcode} %o0, {operands};", inputs, ["u32"])
            assert [int(g) >> 16 for g in got] == [int(g) & 0xFFFF for g in reversed(got)]
        else:
            (got,) = run_ptx(f"{opcode} %o0, {operands};", [("u16", c) for c in columns], ["u16"])
        for *bits, found in zip(*columns, got, strict=True):
            want = function(*(decode(b, kind) for b in bits))
            have = decode(int(found) & 0xFFFF, kind)
            assert (math.isnan(want) and math.isnan(have)) or (
                want == have and math.copysign(1, want) == math.copysign(1, have)
            ), (name, [decode(b, kind) for b in bits], have, want)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_conversions_match_exact_results(kind):
    rng = random.Random(1)
    values = [decode(p, "bf16") for p in patterns(2, 2000)]
    values += [float(np.float32(rng.uniform(-1, 1) * 2.0 ** rng.randint(-30, 20))) for _ in range(2000)]
    values += [
        1 + 2.0**-11,
        1 + 3 * 2.0**-11,
        1 + 2.0**-8,
        1 + 3 * 2.0**-8,
        65519.0,
        65520.0,
        3.4e38,
        2.0**-25,
        2.0**-24,
    ]
    values = [float(np.float32(v)) for v in values]
    (got,) = run_ptx(f"cvt.rn.{kind}.f32 %o0, %i0;", [("f32", values)], ["u16"])
    for value, bits in zip(values, got.tolist(), strict=True):
        have = decode(bits, kind)
        if math.isnan(value):
            assert math.isnan(have)
        else:
            want = value if math.isinf(value) else reference.round_to(Fraction(value), kind, "rn", value)
            assert have == want, (value, have, want)
    every = list(range(0, 65536, 7))
    (back,) = run_ptx(f"cvt.f32.{kind} %o0, %i0;", [("u16", every)], ["f32"])
    for bits, value in zip(every, back.tolist(), strict=True):
        want = decode(bits, kind)
        assert value == want or (math.isnan(value) and math.isnan(want))


def test_cuda_half_functions_match_numpy():
    device = Device(
        r"""#include <cuda_fp16.h>
        #include <cuda_bf16.h>
        extern "C" __global__ void k(const __half* a, __half* o, __half2* p, __nv_bfloat16* b) { int t = threadIdx.x;
        o[t] = __hadd(a[t], a[t]) * a[t]; p[t] = __hfma2(p[t], p[t], p[t]); b[t] = b[t] * b[t] + b[t];
        if (a[t] > __float2half(1.0f)) o[t] = __int2half_rn(t); }"""
    )
    a = np.linspace(0, 2, 32).astype(np.float16)
    o, p = np.zeros(32, np.float16), np.linspace(-1, 1, 64).astype(np.float16)
    pairs, b = p.copy(), (np.linspace(0, 3, 32).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    before = (b.astype(np.uint32) << 16).view(np.float32)
    device.launch("k", 1, 32, a, o, p, b)
    doubled = (a + a) * a
    assert o.tolist() == [float(t) if a[t] > 1 else float(doubled[t]) for t in range(32)]
    wide = pairs.astype(np.float64)
    assert p.tolist() == (wide * wide + wide).astype(np.float16).tolist()
    after = (b.astype(np.uint32) << 16).view(np.float32)
    assert np.allclose(after, before * before + before, rtol=2.0**-7)


def test_doubles_become_halves_also_where_they_are_not_finite():
    values = [math.inf, -math.inf, math.nan, 1e300, 65519.0, 65520.0, -0.0, 2.0**-25, 1.0 + 2.0**-11 + 2.0**-50]
    (got,) = run_ptx("cvt.rn.f16.f64 %o0, %i0;", [("f64", values)], ["b16"])
    with np.errstate(over="ignore"):
        assert np.array_equal(got.view(np.float16), np.array(values).astype(np.float16), equal_nan=True)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize(("kind", "of"), [("f16", "f32"), ("bf16", "f32"), ("f16", "s32"), ("f16", "u64")])
def test_conversion_rounds_in_every_mode(kind, of, mode):
    rng = random.Random(9)
    if of == "f32":
        rows = [struct.unpack("<f", struct.pack("<I", rng.getrandbits(32)))[0] for _ in range(2000)]
        rows += [rng.uniform(-1, 1) * 2.0 ** rng.randint(-30, 17) for _ in range(2000)]
        rows = [struct.unpack("<f", struct.pack("<f", v))[0] for v in rows if not math.isnan(v)]
        rows += [
            0.0,
            -0.0,
            math.inf,
            -math.inf,
            65504.0,
            65505.0,
            -65519.0,
            2.0**-25,
            -(2.0**-24),
            1e-9,
            -1e-9,
            3.39e38,
        ]
    else:
        rows = [
            rng.getrandbits(rng.randrange(1, 32)) * (rng.choice((1, -1)) if of[0] == "s" else 1) for _ in range(2000)
        ]
        rows += [0, 65504, 65505, 65519, 65520]
    (got,) = run_ptx(f"cvt.{mode}.{kind}.{of} %o0, %i0;", [(of, rows)], ["b16"])
    for value, bits in zip(rows, got.tolist(), strict=True):
        zero = math.copysign(0.0, value)
        want = value if math.isinf(value) else reference.round_to(Fraction(value), kind, mode, zero)
        found = decode(bits, kind)
        assert found == want and math.copysign(1, found) == math.copysign(1, want), (value, found, want)


@pytest.mark.parametrize(("kind", "one"), [("f16", 0x3C00), ("bf16", 0x3F80)])
@pytest.mark.parametrize("result", ["pair", "u32", "s32"])
def test_pairs_are_compared_half_by_half(kind: str, one: int, result: str) -> None:
    """`one` is 1.0; where the comparison holds, a half of the result is 1.0, or all bits for an integer."""
    target = f"{kind}x2" if result == "pair" else result
    true = one if result == "pair" else 0xFFFF
    a, b = [one << 16, one, one << 16 | one, 0], [one, one << 16, one << 16 | one, one << 16 | one]
    (got,) = run_ptx(f"set.lt.{target}.{kind}x2 %o0, %i0, %i1;", [("u32", a), ("u32", b)], ["u32"])
    assert got.tolist() == [true, true << 16, 0, true << 16 | true]
