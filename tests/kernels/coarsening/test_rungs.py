"""Rungs of coarsening: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import OutOfBounds, Uninitialised

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "coarse_matmul": st.fixed_dictionaries(
        {
            "m": st.one_of(EDGE, st.integers(200, 300)),
            "n": EDGE,
            "k": EDGE,
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
    "coarse_histogram": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(16000, 300000)),
            "bins": st.sampled_from((1, 10, 256)),
            "outputs": st.sampled_from((1, 2, 4, 8, 16)),
        }
    ),
    "coarse_stencil": st.fixed_dictionaries(
        {
            "rows": st.one_of(st.just(0), EDGE, st.integers(200, 300)),
            "cols": EDGE,
            "radius": st.integers(1, 4),
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("coarse_matmul", "column", "a[warp * kOut + o][k]", "a[warp + o][k]", WrongResult),
    ("coarse_histogram", "chunks", "first + (kOut - 1) * kThreads < quads", "first < quads", OutOfBounds),
    ("coarse_stencil", "apart", "line = o * kRows + threadIdx.y", "line = o * kRows", WrongResult),
    ("coarse_stencil", "column", "i < kHigh * kWide", "i < (kHigh - kRadius) * kWide", Uninitialised),
]  # fmt: skip
