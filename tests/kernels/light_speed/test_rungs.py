"""Rungs of the chapter light_speed: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EarlyAccess, EndlessLoop, OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "copy": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "read": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 25000))}),
    "fma": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 4200))}),
    "floor": st.fixed_dictionaries({"n": st.integers(1, 300)}),
    "chain": st.fixed_dictionaries({"steps": st.integers(1, 6)}),
    "launch": st.fixed_dictionaries({"blocks": st.integers(1, 6)}),
    "write": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "integer": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 2100))}),
    "shared": st.fixed_dictionaries({"blocks": st.integers(1, 3)}),
    "issue": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 600))}),
    "intensity": st.fixed_dictionaries({"n": st.integers(0, 3000), "steps": st.integers(1, 100)}),
}

#: The head of the loop in which copy's rung unrolled stores.
STORES_FROM = """u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            reinterpret"""

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    Corner("copy", "a second step", {"n": 4099}, {"kernels.light_speed.copy.GRID_STRIDE_BLOCKS": 1}),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("copy", "vectorised", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("copy", "unrolled", STORES_FROM, STORES_FROM.replace("< kUnroll", "< kUnroll - 1"), WrongResult),
    ("read", "vectorised", "start + kChunk <= n", "start + kChunk <= n + kChunk", OutOfBounds),
    ("fma", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("floor", "one_warp", "i += threads", "i += 2 * threads", WrongResult),
    ("floor", "every_sm", "i += threads", "i += 2 * threads", WrongResult),
    ("launch", "flag", "*flag = 1", "*flag = 2", WrongResult),
    ("chain", "stream", "+ 1) % gridDim.x] + 1", "+ 1) % gridDim.x]", WrongResult),
    ("chain", "barrier", "step % 2 == 1 ? other", "step % 2 == 0 ? other", Race),
    ("chain", "dependent", "start_next_launch();\n    wait_for_launch_before();", "start_next_launch();", Race),
    ("chain", "dependent", "const int* from", "const int* __restrict__ from", EarlyAccess),
    ("chain", "handed_over", "{\n    wait_for_launch_before();", "{", Race),
    ("chain", "handed_over", "% gridDim.x) < step)", "% gridDim.x) <= step)", EndlessLoop),
    ("write", "vectorised", "first + 2 * kOdd", "first + 3 * kOdd", WrongResult),
    ("write", "evict_first", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("integer", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("shared", "scalar", "step < kSteps", "step < kSteps - 1", WrongResult),
    ("shared", "vectorised", "threadIdx.x + step", "threadIdx.x + step + 1", WrongResult),
    ("issue", "mixed", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("intensity", "scalar", "step < steps", "step <= steps", WrongResult),
    ("intensity", "vectorised", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("copy", "grid_stride", "i += step", "i += 2 * step", WrongResult),
]  # fmt: skip
