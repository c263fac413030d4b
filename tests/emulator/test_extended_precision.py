"""Carry chains and 128-bit integers, against Python's integers."""

from __future__ import annotations

import random

import numpy as np
import pytest
from harness import Device, run_ptx

RANDOM = random.Random(128)


def wide_values(bits: int, count: int) -> list[int]:
    """Edge values of a width, then random values of every length."""
    top = 1 << bits
    edges = [0, 1, 2, 3, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1, (1 << bits // 2) - 1, 1 << bits // 2]
    return edges + [RANDOM.getrandbits(RANDOM.randint(1, bits)) for _ in range(count)]


FIRST = ("add.cc", "sub.cc", "mad.lo.cc", "mad.hi.cc")
SECOND = ("addc.cc", "subc.cc", "madc.lo.cc", "madc.hi.cc")


def chain_step(name: str, a: int, b: int, c: int, carry: int | None, bits: int, signed: bool) -> tuple[int, int]:
    """Result and carry out. A difference is a sum with the complement, so its carry is the absence of a borrow."""
    mask = (1 << bits) - 1
    if name.startswith("mad"):
        x, y = ((v - (v >> bits - 1 << bits) if signed else v) for v in (a, b))
        product = (x * y >> (bits if "hi" in name else 0)) & mask
        total = product + c + (carry or 0)
    elif name.startswith("sub"):
        total = a + (~b & mask) + (1 if carry is None else carry)
    else:
        total = a + b + (carry or 0)
    return total & mask, total >> bits


def chain_body(kind: str) -> tuple[str, int]:
    """Every first instruction before every second one, then the carry that is left: PTX, and how many results."""
    lines = []
    for first in FIRST:
        for second in SECOND:
            c = [", %i2" if name.startswith("mad") else "" for name in (first, second)]
            o = len(lines)
            lines.append(f"{first}.{kind} %o{3 * o}, %i0, %i1{c[0]}; {second}.{kind} %o{3 * o + 1}, %i1, %i2{c[1]};"
                         f"addc.{kind} %o{3 * o + 2}, 0, 0;")  # fmt: skip
    return "\n".join(lines), 3 * len(lines)


@pytest.mark.parametrize("kind", ["u32", "s32", "u64", "s64"])
def test_every_pair_of_carry_instructions_matches_python(kind):
    bits = int(kind[1:])
    edges = wide_values(bits, 0)
    triples = [(a, b, c) for a in edges for b in edges for c in edges[:9:2]]
    triples += list(zip(*(wide_values(bits, 200) for _ in range(3)), strict=True))
    body, count = chain_body(kind)
    columns = [(f"u{bits}", [each[n] for each in triples]) for n in range(3)]
    found = run_ptx(body, columns, [f"u{bits}"] * count)
    pairs = [(first, second) for first in FIRST for second in SECOND]
    for n, (first, second) in enumerate(pairs):
        for at, (a, b, c) in enumerate(triples):
            one, carry = chain_step(first, a, b, c, None, bits, kind[0] == "s")
            two, carry = chain_step(second, b, c, c, carry, bits, kind[0] == "s")
            got = tuple(int(found[3 * n + k][at]) for k in range(3))
            assert got == (one, two, carry), f"{first} {second} of {a:#x}, {b:#x}, {c:#x}"


DIVIDE = r"""
template <typename T> __device__ void divide(const ulonglong2* a, const ulonglong2* b, ulonglong2* q, ulonglong2* r)
{
    typedef unsigned __int128 wide;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    T x = (wide)a[t].y << 64 | a[t].x, y = (wide)b[t].y << 64 | b[t].x;
    wide d = x / y, m = x % y;
    q[t] = {(unsigned long long)d, (unsigned long long)(d >> 64)};
    r[t] = {(unsigned long long)m, (unsigned long long)(m >> 64)};
}
extern "C" __global__ void unsigned_(const ulonglong2* a, const ulonglong2* b, ulonglong2* q, ulonglong2* r)
{ divide<unsigned __int128>(a, b, q, r); }
extern "C" __global__ void signed_(const ulonglong2* a, const ulonglong2* b, ulonglong2* q, ulonglong2* r)
{ divide<__int128>(a, b, q, r); }
"""


def words(values: list[int]) -> np.ndarray:
    """128-bit integers as two words each, the low one first: uint64 (values, 2)."""
    return np.array([[v & 2**64 - 1, v >> 64 & 2**64 - 1] for v in values], np.uint64)


def integers(found: np.ndarray) -> list[int]:
    return [int(low) | int(high) << 64 for low, high in found]


@pytest.fixture(scope="module")
def division():
    return Device(DIVIDE, options=("--device-int128",))


def quotients(device: Device, name: str, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    a, b = (words([pair[n] for pair in pairs]) for n in (0, 1))
    q, r = np.zeros_like(a), np.zeros_like(a)
    device.launch(name, 1, len(pairs), a, b, q, r)
    return list(zip(integers(q), integers(r), strict=True))


def test_quotients_and_remainders_of_128_bits_match_python(division):
    pairs = [(RANDOM.getrandbits(128), RANDOM.getrandbits(RANDOM.randint(64, 84)) | 1 << 63) for _ in range(40)]
    pairs += [(RANDOM.getrandbits(128), max(1, RANDOM.getrandbits(RANDOM.randint(1, 128)))) for _ in range(40)]
    edges = wide_values(128, 0)
    pairs += [(a, b) for a in edges for b in edges if b]
    assert quotients(division, "unsigned_", pairs) == [divmod(a, b) for a, b in pairs]


def test_signed_quotients_of_128_bits_truncate(division):
    pairs = [(RANDOM.getrandbits(128), max(1, RANDOM.getrandbits(RANDOM.choice((70, 128))))) for _ in range(80)]
    want = []
    for pair in pairs:
        a, b = (v - (v >> 127 << 128) for v in pair)
        q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        want.append((q % 2**128, (a - q * b) % 2**128))
    assert quotients(division, "signed_", pairs) == want
