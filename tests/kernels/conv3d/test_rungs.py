"""Rungs of conv3d: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds, Race

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    # The time that the emulator takes grows with the number of weights, so the larger volumes have few.
    "conv3d": st.one_of(
        st.fixed_dictionaries({"n": st.integers(0, 37), "k": st.just(3)}),
        st.fixed_dictionaries({"n": st.integers(0, 11), "k": st.sampled_from((5, 7))}),
        st.fixed_dictionaries({"n": st.integers(1, 6), "k": st.just(9)}),  # and 11 among those to check
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("conv3d", "naive", "col >= n", "col > n", OutOfBounds),
    ("conv3d", "coalesced", "x >= 0 && x < n", "x < n", OutOfBounds),
    ("conv3d", "float4", "if (dx + i < K)", "if (dx + i < K - 1)", WrongResult),
    ("conv3d", "tiled", "first_row - kRadius", "first_row", WrongResult),
    ("conv3d", "register_row", "window[o + dx]", "window[o]", WrongResult),
    ("conv3d", "streamed", "__syncthreads();  // all threads are done with the plane before this one", "//", Race),
    ("conv3d", "pipelined", "(z + 1) % 2", "z % 2", Race),
    ("conv3d", "trimmed", "ours = begin - z + T::kRadius", "ours = begin - z + T::kRadius + 1", WrongResult),
    ("conv3d", "grouped", "half = 1 - half", "half = half", WrongResult),
    ("conv3d", "split", "other < kGroups - 1", "other < kGroups - 2", WrongResult),
    ("conv3d", "direct", "left = col - kRadius + x", "left = col - x", WrongResult),
    ("conv3d", "karatsuba", "sums.both[1][o] -= sums.earlier[1][o]", "sums.both[1][o] -= 0.0f", WrongResult),
]  # fmt: skip
