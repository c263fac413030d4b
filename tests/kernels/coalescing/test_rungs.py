"""Rungs of the chapter coalescing: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb.emulator import OutOfBounds

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "strided": st.fixed_dictionaries({"n": st.integers(1, 600), "stride": st.integers(1, 70)}),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("strided", "strided", "[i * stride]", "[(i + 1) * stride]", OutOfBounds),
]  # fmt: skip
