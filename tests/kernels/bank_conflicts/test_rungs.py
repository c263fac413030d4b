"""Rungs of bank_conflicts: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb.emulator import EmulatorError, OutOfBounds, Uninitialised

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "transpose": st.fixed_dictionaries({"rows": EDGE, "cols": EDGE}),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("transpose", "naive", "row + j < rows", "row + j <= rows", OutOfBounds),
    ("transpose", "tiled", "row + j < cols", "row + j <= cols", Uninitialised),
    ("transpose", "padded", "tile[threadIdx.x][threadIdx.y + j]", "tile[threadIdx.y + j][threadIdx.x]", Uninitialised),
    ("transpose", "swizzled", "(threadIdx.y + j) ^ threadIdx.x]", "threadIdx.y + j]", Uninitialised),
    ("transpose", "vectorised", "(q ^ (c / 4 % 8))", "(q ^ (c / 4 % 2 + 16))", EmulatorError),
]  # fmt: skip
