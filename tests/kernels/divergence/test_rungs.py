"""Rungs of divergence: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "divergence": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000)),
            "data": st.sampled_from(("shuffled", "image", "sorted", "periodic")),
        }
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("divergence", "fixed", "k < kMaxSteps", "k < kMaxSteps - 1", WrongResult),
    ("divergence", "early_exit", "count < kMaxSteps", "count <= kMaxSteps", WrongResult),
    ("divergence", "strided", "if (i >= n)", "if (i > n)", OutOfBounds),
    ("divergence", "flattened", "        z = {0.0f, 0.0f};", "        z = c;", WrongResult),
    ("divergence", "rejoined", "count == kMaxSteps", "count == kBatch", WrongResult),
    ("divergence", "refilled", "finished & ((1u << lane) - 1)", "finished", WrongResult),
]  # fmt: skip
