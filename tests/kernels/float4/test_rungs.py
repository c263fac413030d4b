"""Rungs of float4: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "saxpy": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 9000))}),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("saxpy", "float2", "pairs * kWidth + i", "pairs * kWidth + i + 1", WrongResult),
    ("saxpy", "float4", "a * p.w + q.w", "a * p.w + q.z", WrongResult),
    ("saxpy", "in_flight", "quads = n / kWidth", "quads = (n + kWidth - 1) / kWidth", EmulatorError),
    ("saxpy", "four_scalars", "blockIdx.x) * kThreads * kUnroll", "blockIdx.x) * kThreads", WrongResult),
]  # fmt: skip
