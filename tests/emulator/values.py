"""Values on which instructions tend to fail: edge cases and random values."""

from __future__ import annotations

import itertools
import math
import random
import struct

from reference import limits


def integers(kind: str) -> list[int]:
    """The edge cases of an integer type."""
    low, high = limits(kind)
    bits = int(kind[1:])
    out = {0, 1, 2, 3, 7, 31, 32, 33, 63, 64, 100, low, low + 1, high, high - 1, high // 2, 1 << (bits // 2)}
    if kind[0] == "s":
        out |= {-1, -2, -3, -7, -100}
    return sorted(v for v in out if low <= v <= high)


def single(bits: int) -> float:
    """The float32 with this bit pattern."""
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def floats(kind: str) -> list[float]:
    """Edge cases of a float format: zeros, subnormals, ends of the range, halves, neighbours of 1, infinities, NaN."""
    plain = [
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        10.0,
        1e10,
        -1e10,
        2.0**24,
        2.0**31,
        2.0**32,
        2.0**63,
        2.0**64,
        -(2.0**31),
    ]
    out = [0.0, -0.0, math.inf, -math.inf, math.nan, *plain]
    if kind == "f32":
        out += [single(b) for b in (1, 2, 0x7FFFFF, 0x800000, 0x800001, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F7FFFFF, 0x3F800001)]
        out += [single(b) for b in (0x80000001, 0x80800000, 0x00400000, 0x4B000001, 0x4EFFFFFF, 0x4F7FFFFF)]
        return out
    tiny = 2.0**-1074
    top = (2 - 2.0**-52) * 2.0**1023
    return [*out, tiny, -tiny, 2.0**-1022, top, -top, 1 + 2.0**-52, 1 - 2.0**-53, 2.0**52 + 0.5, 2.0**-1000, 2.0**1000]


def random_value(kind: str, rng: random.Random) -> int | float:
    """A random bit pattern of the type, except NaN patterns."""
    if kind[0] != "f":
        low, high = limits(kind)
        return rng.randint(low, high) >> (rng.randrange(int(kind[1:])) if kind[0] == "u" else 0)
    while True:
        if rng.random() < 0.5:
            value = rng.uniform(-2, 2)
            value = struct.unpack("<f", struct.pack("<f", value))[0] if kind == "f32" else value
        elif kind == "f32":
            value = single(rng.getrandbits(32))
        else:
            value = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(64)))[0]
        if not math.isnan(value):
            return value


def cases(kinds: tuple[str, ...], seed: int = 0, extra: int = 300) -> list[tuple]:
    """Tuples of operands: all pairs of edge cases (or a sample of the triples), and random ones."""
    rng = random.Random(seed)
    edges = [floats(k) if k[0] == "f" else [0, 1] if k == "pred" else integers(k) for k in kinds]
    every = list(itertools.product(*edges)) if len(kinds) < 3 else []
    if len(kinds) >= 3:
        every = [tuple(rng.choice(each) for each in edges) for _ in range(3000)]
    mixed = [
        tuple(
            rng.randint(0, 1) if k == "pred" else random_value(k, rng) if rng.random() < 0.8 else rng.choice(e)
            for k, e in zip(kinds, edges, strict=True)
        )
        for _ in range(extra)
    ]
    return every + mixed
