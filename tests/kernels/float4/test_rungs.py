"""Rungs of the chapter float4: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "saxpy": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 9000))}),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("saxpy", "float2", "pairs * kWidth + i", "pairs * kWidth + i + 1", WrongResult),
    ("saxpy", "float4", "a * p.w + q.w", "a * p.w + q.z", WrongResult),
    ("saxpy", "unrolled", "quads = n / kWidth", "quads = (n + kWidth - 1) / kWidth", EmulatorError),
    ("saxpy", "four_scalars", "blockIdx.x) * kThreads * kUnroll", "blockIdx.x) * kThreads", WrongResult),
]  # fmt: skip
