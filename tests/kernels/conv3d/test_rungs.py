"""Rungs of the chapter conv3d: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    # The time that the emulator takes grows with the number of weights, so the larger volumes have few.
    "conv3d": st.one_of(
        st.fixed_dictionaries({"n": st.integers(0, 37), "k": st.just(3)}),
        st.fixed_dictionaries({"n": st.integers(0, 11), "k": st.sampled_from((5, 7))}),
        st.fixed_dictionaries({"n": st.integers(1, 6), "k": st.just(9)}),  # and 11 among those to check
    ),
    "conv3d_tiles": st.fixed_dictionaries(
        {"n": st.integers(0, 12), "k": st.just(3), "tile": st.sampled_from((4, 8, 10))}
    ),
}

#: A rung whose programs take long to compile.
SLOW = {("conv3d", "karatsuba")}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("conv3d", "naive", "col >= n", "col > n", OutOfBounds),
    ("conv3d", "coalesced", "x >= 0 && x < n", "x < n", OutOfBounds),
    ("conv3d", "vectorised", "if (dx + i < K)", "if (dx + i < K - 1)", WrongResult),
    ("conv3d", "tiled", "first_row - kRadius", "first_row", WrongResult),
    ("conv3d", "register_row", "window[o + dx]", "window[o]", WrongResult),
    ("conv3d", "streamed", "__syncthreads();  // all reads of the previous plane are done", "//", Race),
    ("conv3d", "pipelined", "(z + 1) % 2", "z % 2", Race),
    ("conv3d", "trimmed", "ours = begin - z + T::kRadius", "ours = begin - z + T::kRadius + 1", WrongResult),
    ("conv3d", "grouped", "half = 1 - half", "half = half", WrongResult),
    ("conv3d", "split_taps", "other < kGroups - 1", "other < kGroups - 2", WrongResult),
    ("conv3d", "untiled", "left = col - kRadius + x", "left = col - x", WrongResult),
    ("conv3d_tiles", "grid_1d", "blockIdx.x / across % across", "blockIdx.x / across", WrongResult),
    ("conv3d_tiles", "grid_3d", "first_row - kRadius", "first_row", WrongResult),
    ("conv3d", "karatsuba", "sums.both[1][o] -= sums.earlier[1][o]", "sums.both[1][o] -= 0.0f", WrongResult),
]  # fmt: skip
