"""Rungs of the chapter on other algorithms: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import AsyncRace, Deadlock, EarlyAccess, OutOfBounds, Race

#: Sizes to draw from: multiples of four among them, which the copy engine asks for, of one tile or of eight.
SIZES = {
    "fft_conv3d": st.fixed_dictionaries({"n": st.sampled_from((1, 4, 20, 32, 33)), "k": st.just(3)}),
    "fft_crossover": st.fixed_dictionaries({"n": st.sampled_from((4, 20, 32)), "k": st.just(3)}),
    "fft_conv2d": st.builds(
        lambda rows, cols: {"rows": rows, "cols": cols, "k": 5, "k_cols": 5, "border": "zero"},
        st.integers(0, 70),
        st.integers(0, 70),
    ),
}

#: Rungs of other ladders, whose checks run there.
SLOW = {("fft_crossover", rung) for rung in ("grouped", "karatsuba", "dependent")}

FOLDER = "kernels.other_algorithms"
#: One SM and large weights, so that a block goes through a column in several steps. An image with a tile that touches
#: no border.
CORNERS = [
    Corner("fft_conv3d", "several steps", {"n": 20, "k": 11}, {f"{FOLDER}.fft_conv3d.SMS": 1}),
    Corner("fft_conv3d", "a step past the outputs", {"n": 8, "k": 11}, {f"{FOLDER}.fft_conv3d.STEP": 18}),
    Corner(
        "fft_conv2d",
        "a pair inside",
        {"rows": 150, "cols": 60, "k": 5, "k_cols": 5, "border": "zero"},
        only="store_columns",
    ),
]  # fmt: skip

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("fft_conv3d", "grouped", "half = 1 - half", "half = half", WrongResult),
    ("fft_conv3d", "karatsuba", "sums.both[1][o] -= sums.earlier[1][o]", "sums.both[1][o] -= 0.0f", WrongResult),
    ("fft_conv3d", "planes", "__syncthreads();  // all outputs", "// all outputs", Race),
    ("fft_conv3d", "cubes", "__syncthreads();  // the spectra of all planes", "// the spectra of all planes", Race),
    ("fft_conv3d", "dependent", "if (kDependent) wait_for_launch_before();", "", Race),
    ("fft_conv3d", "dependent", "const float2* from)", "const float2* __restrict__ from)", EarlyAccess),
    ("fft_conv3d", "tma", "expect(arrived, B::kBytes)", "expect(arrived, B::kBytes / 2)",
     Deadlock),
    ("fft_conv2d", "warp_tiles", "-v[x].y, factor.y", "v[x].y, factor.y", WrongResult),
    ("fft_conv2d", "one_transform", "        __syncwarp();  // the whole tile", "// the whole tile", Race),
]  # fmt: skip

#: The same, for faults that only corners reach.
HIDDEN = [
    ("fft_conv3d", "dependent", "parity ^= 1", "parity ^= 0", AsyncRace),
    ("fft_conv2d", "warp_tiles", "row >= 0 && row + kHigh <= rows", "row >= 0 && row + kEdge <= rows", OutOfBounds),
]
