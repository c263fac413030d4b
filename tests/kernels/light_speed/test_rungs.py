"""Rungs of light_speed: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import OutOfBounds

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "copy": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "read": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 25000))}),
    "fma": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 4200))}),
    "intensity": st.fixed_dictionaries({"n": st.integers(0, 3000), "steps": st.integers(1, 100)}),
}

#: The head of the loop in which copy's in_flight rung stores.
STORES_FROM = """u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            reinterpret"""

#: Sizes, constants and inputs that reach what the sizes above leave out.
CORNERS = [
    Corner("copy", "a second step", {"n": 4099}, {"kernels.light_speed.copy.GRID_STRIDE_BLOCKS": 1}),
]

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("copy", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("copy", "in_flight", STORES_FROM, STORES_FROM.replace("< kUnroll", "< kUnroll - 1"), WrongResult),
    ("read", "float4", "start + kChunk <= n", "start + kChunk <= n + kChunk", OutOfBounds),
    ("fma", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("intensity", "scalar", "step < steps", "step <= steps", WrongResult),
    ("intensity", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
]  # fmt: skip

#: The same, of faults that only the corners reach.
HIDDEN = [
    ("copy", "grid_stride", "i += step", "i += 2 * step", WrongResult),
]  # fmt: skip
