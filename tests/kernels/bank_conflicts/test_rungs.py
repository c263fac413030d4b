"""Rungs of the chapter bank_conflicts: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb.emulator import EmulatorError, OutOfBounds, Uninitialised

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "transpose": st.fixed_dictionaries({"rows": EDGE, "cols": EDGE}),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("transpose", "naive", "row + j < rows", "row + j <= rows", OutOfBounds),
    ("transpose", "tiled", "row + j < cols", "row + j <= cols", Uninitialised),
    ("transpose", "padded", "tile[threadIdx.x][threadIdx.y + j]", "tile[threadIdx.y + j][threadIdx.x]", Uninitialised),
    ("transpose", "swizzled", "(threadIdx.y + j) ^ threadIdx.x]", "threadIdx.y + j]", Uninitialised),
    ("transpose", "vectorised", "(q ^ (c / 4 % 8))", "(q ^ (c / 4 % 2 + 16))", EmulatorError),
    ("transpose", "aligned_stores", "row >= 0 && row < rows", "row >= 0 && row <= rows", OutOfBounds),
    ("transpose", "aligned_stores", "kSector - 1;", "kSector - 2;", EmulatorError),
]  # fmt: skip
