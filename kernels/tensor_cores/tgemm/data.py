"""Kinds of data that a float32 product must be right for, and what each asks of the factors."""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Size

#: The names of the kinds. ``scaled``: rows of A and columns of B times powers of two, 2^-60 to 2^60. ``cancelling``:
#: each product but for 2^-12 of it is taken back by another. ``subnormal``: A has subnormal numbers only.
KINDS = ("normal", "uniform", "scaled", "cancelling", "subnormal")
#: What is left of the terms' magnitude in results of the kind ``cancelling``.
LEFT = 2.0**-12


def factors(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A (m x k) and B (k x n) in float32, of the kind ``size["data"]``, normally distributed if there is none."""
    m, n, k, kind = size["m"], size["n"], size["k"], size.get("data", "normal")
    if kind == "uniform":
        return {"A": rng.random((m, k), dtype=np.float32), "B": rng.random((k, n), dtype=np.float32)}
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    if kind == "scaled":
        a = np.ldexp(a, rng.integers(-60, 61, (m, 1), dtype=np.int32))
        b = np.ldexp(b, rng.integers(-60, 61, (1, n), dtype=np.int32))
    elif kind == "cancelling":
        half = k // 2
        a[:, half : 2 * half] = a[:, :half]
        b[half : 2 * half] = -b[:half] * (1 + np.float32(LEFT) * b[half : 2 * half])
        b[2 * half :] *= np.float32(LEFT)
    elif kind == "subnormal":
        a, b = np.ldexp(a, -131), np.ldexp(b, 110)
    return {"A": a.astype(np.float32), "B": b.astype(np.float32)}
