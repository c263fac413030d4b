"""Video instructions: two 16-bit or four 8-bit integers in a word, compared with Python part by part."""

from __future__ import annotations

import random

import numpy as np
import pytest
from harness import Device, run_ptx
from reference import wrap
from tools.thorough import sparse


def words(seed: int, number: int = 400) -> list[int]:
    rng = random.Random(seed)
    edges = [0, 0x7FFF8000, 0x80007FFF, 0x80808080, 0x7F7F7F7F, 0xFFFFFFFF, 0x00FF00FF, 0x0001FFFF]
    return [rng.choice(edges) if rng.random() < 0.3 else rng.getrandbits(32) for _ in range(number)]


def parts(word: int, bits: int, signed: bool) -> list[int]:
    return [wrap(word >> start, f"{'s' if signed else 'u'}{bits}") for start in range(0, 32, bits)]


def together(values: list[int], bits: int) -> int:
    return sum((value & (1 << bits) - 1) << bits * n for n, value in enumerate(values))


PLAIN = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "min": min, "max": max,
    "absdiff": lambda a, b: abs(a - b), "avrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["u16x2", "s16x2"])
@pytest.mark.parametrize("name", ["add", "min", "max"])
def test_packed_pairs_match_python(name, kind):
    a, b = words(1), words(2)
    signed = kind[0] == "s"
    for relu in ("", ".relu") if signed and name != "add" else ("",):
        (got,) = run_ptx(f"{name}.{kind}{relu} %o0, %i0, %i1;", [("b32", a), ("b32", b)], ["b32"])
        for x, y, found in zip(a, b, got.tolist(), strict=True):
            each = [PLAIN[name](*both) for both in zip(parts(x, 16, signed), parts(y, 16, signed), strict=True)]
            assert found == together([max(v, 0) if relu else v for v in each], 16)


@pytest.mark.parametrize("name", sorted(PLAIN))
@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("kinds", sparse(("uuu", "sss", "suu", "uss", "ssu")))
def test_video_instructions_match_python(name, number, kinds):
    """A sum of results takes them whole, not cut to the size of a part: ptxas compiles it so."""
    a, b, c = words(3), words(4), words(5)
    d_signed, a_signed, b_signed = (kind == "s" for kind in kinds)
    bits = 32 // number
    types = ".".join(f"{kind}32" for kind in kinds)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if d_signed else (0, (1 << bits) - 1)
    for sat in ("", ".sat"):
        for add in ("", ".add"):
            (got,) = run_ptx(
                f"v{name}{number}.{types}{sat}{add} %o0, %i0, %i1, %i2;", [("b32", v) for v in (a, b, c)], ["b32"]
            )
            for x, y, z, found in zip(a, b, c, got.tolist(), strict=True):
                both = zip(parts(x, bits, a_signed), parts(y, bits, b_signed), strict=True)
                each = [PLAIN[name](*pair) for pair in both]
                each = [min(max(v, low), high) for v in each] if sat else each
                want = (sum(each) + z) & 0xFFFFFFFF if add else together(each, bits)
                assert found == want, (x, y, z)


def test_cuda_simd_intrinsics_match_python():
    """NVRTC compiles some to new instructions and others to sequences of old ones."""
    source = """extern "C" __global__ void k(const unsigned* a, const unsigned* b, unsigned* o) {
    int t = threadIdx.x; unsigned x = a[t], y = b[t];
    o[t] = __vadd2(x, y); o[64 + t] = __vabsdiffu4(x, y); o[128 + t] = __vmaxs2(x, y); o[192 + t] = __vsadu4(x, y);
    o[256 + t] = __vaddus4(x, y); o[320 + t] = __vcmpgtu4(x, y); o[384 + t] = __vavgs2(x, y);
    o[448 + t] = __vsubss2(x, y); o[512 + t] = __viaddmax_s16x2(x, y, 0x00050005u); }"""
    a, b = np.array(words(6, 64), np.uint32), np.array(words(7, 64), np.uint32)
    out = np.zeros(576, np.uint32)
    Device(source).launch("k", 1, 64, a, b, out)
    clip = lambda v, low, high: min(max(v, low), high)  # noqa: E731
    rules = [
        (16, True, lambda x, y: x + y), (8, False, lambda x, y: abs(x - y)), (16, True, max), (8, False, None),
        (8, False, lambda x, y: clip(x + y, 0, 255)), (8, False, lambda x, y: 255 * (x > y)),
        (16, True, PLAIN["avrg"]), (16, True, lambda x, y: clip(x - y, -(2**15), 2**15 - 1)),
        (16, True, lambda x, y: max(wrap(x + y, "s16"), 5)),
    ]  # fmt: skip
    for n, (bits, signed, rule) in enumerate(rules):
        for x, y, found in zip(a.tolist(), b.tolist(), out[64 * n : 64 * n + 64].tolist(), strict=True):
            both = list(zip(parts(x, bits, signed), parts(y, bits, signed), strict=True))
            want = sum(abs(p - q) for p, q in both) if rule is None else together([rule(*pair) for pair in both], bits)
            assert found == want, (n, hex(x), hex(y))


def test_video_results_clamp_at_the_extremes():
    (got,) = run_ptx("max.s32.relu %o0, %i0, %i1;", [("s32", [-5, 3, -1]), ("s32", [-7, -2, 9])], ["s32"])
    assert got.tolist() == [0, 3, 9]
