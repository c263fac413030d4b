"""Rungs of the chapter divergence: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "divergence": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000)),
            "data": st.sampled_from(("shuffled", "image", "sorted", "periodic")),
        }
    ),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("divergence", "fixed", "k < kMaxSteps", "k < kMaxSteps - 1", WrongResult),
    ("divergence", "early_exit", "count < kMaxSteps", "count <= kMaxSteps", WrongResult),
    ("divergence", "strided", "if (i >= n)", "if (i > n)", OutOfBounds),
    ("divergence", "flattened", "        z = {0.0f, 0.0f};", "        z = c;", WrongResult),
    ("divergence", "reconverged", "count == kMaxSteps", "count == kBatch", WrongResult),
    ("divergence", "refilled", "finished & ((1u << lane) - 1)", "finished", WrongResult),
    ("divergence", "replayed", "z = before;", "z = c;", WrongResult),
    ("divergence", "compacted", "item.z = z;", "", WrongResult),
    ("divergence", "cycle_check", "fate == Fate::kLeaves || last", "fate == Fate::kLeaves", WrongResult),
]  # fmt: skip
