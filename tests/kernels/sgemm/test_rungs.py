"""Rungs of sgemm: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "sgemm": st.fixed_dictionaries({"m": EDGE, "n": st.one_of(st.just(256), EDGE), "k": EDGE}),
}

#: Sizes, constants and inputs that reach what the sizes above leave out.
CORNERS = [
    Corner(
        "sgemm",
        "several pieces of a portion",
        {"m": 129, "n": 64, "k": 272},
        {"kernels.sgemm.sgemm.rungs.SMS": 3, "kernels.sgemm.sgemm.rungs.GATHER_COST": 0},
    ),
]

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("sgemm", "square", "first_row + a_line < M ? K - k0 - a_k : 0", "K - k0 - a_k", OutOfBounds),
    ("sgemm", "linearised", "b[k][j][col / kOut]", "b[k][j][col % kAcross]", WrongResult),
    ("sgemm", "offset", "b[k][col + j]", "b[k][col + j + 5]", EmulatorError),
    ("sgemm", "padded", "&a[k][line + q / 4 * kHalf]", "&a[k][line + q]", WrongResult),
    ("sgemm", "warp_tile", "col + q * kLanesAcross;", "col + q * kLanesDown;", EmulatorError),
    ("sgemm", "neighbours", "across = lane / 2 % kLanesAcross", "across = lane % kLanesAcross", WrongResult),
    ("sgemm", "buffered", "if (more) put(turn ^ 1);", "if (more) put(turn);", Race),
    ("sgemm", "pipelined", "slices_of<T>(K)", "slices_of<T>(K - 1)", WrongResult),
    ("sgemm", "read_ahead", "place, 0, K, shared", "place, 0, K + 1, shared", EmulatorError),
    ("sgemm", "tuned", "tile.store(C, ldc", "tile.store(C, ldc + 1", EmulatorError),
    ("sgemm", "stream", "worker <= last", "worker < last", WrongResult),
]  # fmt: skip

#: The same, of faults that only the corners reach.
HIDDEN = [
    ("sgemm", "stream", "if (piece > 0) __syncthreads();", "", Race),
]  # fmt: skip
