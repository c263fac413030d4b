"""Rungs of the chapter occupancy: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "occupancy": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 9000)),
            "threads": st.one_of(st.integers(1, 1024), st.sampled_from((32, 128, 1024))),
            "shared": st.one_of(st.just(0), st.integers(0, 227 << 10)),
        }
    ),
    "occupancy_fma": st.fixed_dictionaries(
        # A run takes seconds, of whatever size: half of those drawn are empty.
        {"n": st.one_of(st.just(0), st.integers(1, 3000)), "threads": st.integers(1, 300), "shared": st.just(0)}
    ),
}

#: A thread has 48 chains of 4096 multiply-adds one after the other, at any size.
SLOW = {("occupancy_fma", rung) for rung in ("chains_48", "capped_48")}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("occupancy", "one_float", "target, n);", "target, n + 1);", OutOfBounds),
    ("occupancy", "four_floats", "<float, 4>", "<float, 3>", WrongResult),
    ("occupancy", "one_quad", "<float4, 1>", "<float2, 1>", WrongResult),
    ("occupancy", "four_quads", "(source, target", "(target, target", WrongResult),
    ("occupancy", "eight_quads", "<float4, 8>", "<float4, 2>", WrongResult),
    ("occupancy", "released", "target, n);", "target, n - 1);", WrongResult),
    ("occupancy_fma", "chains_1", "n, b);", "n, -b);", WrongResult),
    ("occupancy_fma", "chains_2", "<2>", "<1>", WrongResult),
    ("occupancy_fma", "chains_4", "n, b);", "n + 1, b);", OutOfBounds),
    ("occupancy_fma", "chains_8", "<8>", "<4>", WrongResult),
    ("occupancy_fma", "chains_48", "source, target", "target, target", WrongResult),
    ("occupancy_fma", "capped_48", "n, b);", "n - 1, b);", WrongResult),
]  # fmt: skip
