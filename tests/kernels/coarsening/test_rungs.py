"""Rungs of the chapter coarsening: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import OutOfBounds, Uninitialised

#: Radius and outputs per thread of the stencils. Compiling a kernel whose unrolled loops have a thousand
#: terms takes seconds, so a large factor comes with a small radius. The problem's check sizes have larger pairs.
RADIUS_OUTPUTS = ((1, 1), (3, 1), (2, 2), (4, 2), (1, 4), (3, 4), (2, 8), (1, 16), (1, 32))


def _stencil_size(rows: int, cols: int, radius_outputs: tuple[int, int]) -> dict[str, int]:
    radius, outputs = radius_outputs
    return {"rows": rows, "cols": cols, "radius": radius, "outputs": outputs}


#: Sizes to draw from: small, among them ones, primes and tile edges.
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
    "coarse_stencil": st.builds(
        _stencil_size,
        st.one_of(st.just(0), EDGE, st.integers(200, 300)),
        EDGE,
        st.sampled_from(RADIUS_OUTPUTS),
    ),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("coarse_matmul", "register_column", "a[warp * kOut + o][k]", "a[warp + o][k]", WrongResult),
    ("coarse_histogram", "chunks", "first + (kOut - 1) * kThreads < quads", "first < quads", OutOfBounds),
    ("coarse_stencil", "strided", "line = o * kRows + threadIdx.y", "line = o * kRows", WrongResult),
    ("coarse_stencil", "register_column", "i < kHigh * kWide", "i < (kHigh - kRadius) * kWide", Uninitialised),
]  # fmt: skip
