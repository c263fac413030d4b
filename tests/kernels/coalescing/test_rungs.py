"""Rungs of coalescing: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb.emulator import OutOfBounds

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "strided": st.fixed_dictionaries({"n": st.integers(1, 600), "stride": st.integers(1, 70)}),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("strided", "strided", "[i * stride]", "[(i + 1) * stride]", OutOfBounds),
]  # fmt: skip
