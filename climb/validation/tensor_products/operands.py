"""Random and adversarial matrices: what rounding, alignment, cancellation, overflow and special values depend on."""

from __future__ import annotations

import numpy as np

from climb.validation.tensor_products.forms import BITS, Form

#: Bits of the exponent and of the fraction.
FIELDS = {
    "f16": (5, 10),
    "bf16": (8, 7),
    "tf32": (8, 23),
    "f32": (8, 23),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
    "f64": (11, 52),
}
STYLES = ("random",) * 4 + ("special", "cancelling", "sparse", "tiny", "huge", "random")


def values_of(codes: np.ndarray, kind: str) -> np.ndarray:
    """Codes of a floating-point format as float64."""
    if kind == "f64":
        return codes.astype(np.uint64).view(np.float64)
    exponent_bits, fraction_bits = FIELDS[kind]
    codes = codes.astype(np.int64) & (~0x1FFF if kind == "tf32" else ~0)
    field, fraction = codes >> fraction_bits & (1 << exponent_bits) - 1, codes & (1 << fraction_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    significand = np.where(field > 0, fraction + (1 << fraction_bits), fraction).astype(float)
    value = np.ldexp(significand, np.maximum(field, 1) - bias - fraction_bits)
    if kind == "e4m3":
        value = np.where((field == 15) & (fraction == 7), np.nan, value)
    else:
        value = np.where(field == (1 << exponent_bits) - 1, np.where(fraction > 0, np.nan, np.inf), value)
    return np.where(codes >> exponent_bits + fraction_bits & 1, -value, value)


def matrices(
    rng: np.random.Generator, form: Form, count: int, chosen: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (uint64) of A (count, m, k), B (count, k, n) and C (count, m, n).

    A has zeros in all other places than `chosen`, int64 (count, m, k / 2), where that is given.
    """
    return (_floats if form.floating else _integers)(rng, form, count, chosen)


def _only(a: np.ndarray, chosen: np.ndarray | None) -> np.ndarray:
    """`a` with zeros in all other places than `chosen`."""
    if chosen is None:
        return a
    out = np.zeros_like(a)
    np.put_along_axis(out, chosen, np.take_along_axis(a, chosen, 2), 2)
    return out


def _integers(
    rng: np.random.Generator, form: Form, count: int, chosen: np.ndarray | None
) -> tuple[np.ndarray, ...]:  # fmt: skip
    bits = BITS[form.a]
    out = []
    extreme = rng.random(count) < 0.5
    ends = np.array([0, (1 << bits) >> 1, max((1 << bits >> 1) - 1, 0), (1 << bits) - 1], np.uint64)
    for shape in ((count, form.m, form.k), (count, form.k, form.n)):
        codes = rng.integers(0, 1 << bits, shape, dtype=np.uint64)
        codes[extreme] = rng.choice(ends, codes[extreme].shape)
        out.append(codes)
    shape = (count, form.m, form.n)
    c = rng.integers(0, 1 << 32, shape, dtype=np.uint64)
    near = rng.integers((1 << 31) - 5000, (1 << 31) + 5000, shape, dtype=np.uint64)  # where sums overflow
    return _only(out[0], chosen), out[1], np.where(rng.random(shape) < 0.5, near, c)


def _compose(kind: str, sign: np.ndarray, exponent: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """Finite codes from signs, exponents, which are clipped to what the format has, and fractions."""
    exponent_bits, fraction_bits = FIELDS[kind]
    top = (1 << exponent_bits) - (1 if kind == "e4m3" else 2)
    field = np.clip(exponent + (1 << exponent_bits - 1) - 1, 0, top).astype(np.uint64)
    fraction = fraction.astype(np.uint64) & np.uint64((1 << fraction_bits) - 1)
    if kind == "e4m3":
        fraction = np.where((field == 15) & (fraction == 7), np.uint64(6), fraction)
    return (
        sign.astype(np.uint64) << np.uint64(exponent_bits + fraction_bits)
        | field << np.uint64(fraction_bits)
        | fraction
    )


def _fractions(rng: np.random.Generator, kind: str, shape: tuple[int, ...], sparse: np.ndarray) -> np.ndarray:
    """Random fractions; where `sparse`, mostly none, one or all of the bits."""
    bits = FIELDS[kind][1]
    full = rng.integers(0, 1 << bits, shape, dtype=np.uint64)
    one = np.uint64(1) << rng.integers(0, bits, shape, dtype=np.uint64)
    edges = np.choose(rng.integers(0, 4, shape), [np.zeros_like(full), one, np.full_like(full, (1 << bits) - 1), full])
    return np.where(sparse, edges, full)


def _specials(kind: str) -> np.ndarray:
    """Infinities, NaN with several payloads, zeros, the least and the largest numbers."""
    exponent_bits, fraction_bits = FIELDS[kind]
    sign = 1 << exponent_bits + fraction_bits
    if kind == "e4m3":
        return np.array([0x7F, 0xFF, 0x80, 0, 1, 0x7E], np.uint64)
    top = (1 << exponent_bits) - 1 << fraction_bits
    nan = (top | 1, top | 1 << fraction_bits - 1, top | sign | (1 << fraction_bits) - 1)
    return np.array([top, top | sign, *nan, sign, 0, 1, top - 1], np.uint64)


def _floats(
    rng: np.random.Generator, form: Form, count: int, chosen: np.ndarray | None
) -> tuple[np.ndarray, ...]:  # fmt: skip
    style = np.array(STYLES)[rng.integers(0, len(STYLES), count)][:, None, None]
    spread = rng.choice([0, 1, 3, 6, 12, 40], count)[:, None, None]
    density = rng.choice([1.0, 1.0, 0.5, 0.15], count)[:, None, None]
    out = []
    for kind, shape in ((form.a, (count, form.m, form.k)), (form.b, (count, form.k, form.n))):
        limit = 1 << FIELDS[kind][0] - 1
        middle = rng.integers(-(limit // 2), limit // 2 + 1, count)[:, None, None]
        low = -limit if not out else -limit + rng.integers(0, limit, count)[:, None, None]
        middle = np.where(style == "tiny", low, np.where(style == "huge", limit, middle))
        exponent = middle + np.rint((rng.random(shape) * 2 - 1) * spread).astype(np.int64)
        fraction = _fractions(rng, kind, shape, style == "sparse")
        codes = _compose(kind, rng.integers(0, 2, shape), exponent, fraction)
        codes = np.where(rng.random(shape) < density, codes, np.uint64(0))
        special = (style == "special") & (rng.random(shape) < 0.02)
        out.append(np.where(special, rng.choice(_specials(kind), shape), codes))
    _cancel(rng, form, style[:, 0, 0] == "cancelling", *out)
    out[0] = _only(out[0], chosen)
    return *out, _accumulators(rng, form, style == "special", *out)


def _cancel(rng: np.random.Generator, form: Form, where: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    """Make neighbouring products cancel, some except for the last bit of a factor."""
    sign = np.uint64(1) << np.uint64(sum(FIELDS[form.a]))
    unit = np.uint64(13 if form.a == "tf32" else 0)
    for k in range(0, form.k - 1, 2):
        last = (rng.random((int(where.sum()), form.m)) < 0.3).astype(np.uint64) << unit
        a[where, :, k + 1] = a[where, :, k] ^ sign ^ last
        b[where, k + 1] = b[where, k]


def _accumulators(
    rng: np.random.Generator, form: Form, special: np.ndarray, a: np.ndarray, b: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Accumulators around the size of the sums, and others up to 2^30 away; the negative of the sum; zeros."""
    with np.errstate(all="ignore"):
        sums = np.matmul(values_of(a, form.a), values_of(b, form.b))
    shape, fraction_bits = sums.shape, FIELDS[form.c][1]
    fraction, power = np.frexp(np.where(np.isfinite(sums) & (sums != 0), sums, 1.0))
    away = np.where(rng.random(shape) < 0.5, rng.integers(-3, 4, shape), rng.integers(-30, 31, shape))
    sparse = rng.random(shape) < 0.3
    c = _compose(form.c, rng.integers(0, 2, shape), power - 1 + away, _fractions(rng, form.c, shape, sparse))
    minus = _compose(form.c, sums > 0, power - 1, (np.abs(fraction) * 2.0 ** (fraction_bits + 1)).astype(np.uint64))
    c = np.where(rng.random(shape) < 0.15, minus, c)
    c = np.where(rng.random(shape) < 0.15, np.uint64(0), c)
    return np.where(special & (rng.random(shape) < 0.03), rng.choice(_specials(form.c), shape), c)
