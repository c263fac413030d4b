"""Rungs of the chapter sgemm: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "sgemm": st.fixed_dictionaries({"m": EDGE, "n": st.one_of(st.just(256), EDGE), "k": EDGE}),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    Corner(
        "sgemm",
        "several pieces of a portion",
        {"m": 129, "n": 64, "k": 272},
        {"kernels.sgemm.sgemm.rungs.SMS": 3, "kernels.sgemm.sgemm.rungs.GATHER_COST": 0},
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("sgemm", "square", "first_row + a_line < M ? K - k0 - a_k : 0", "K - k0 - a_k", OutOfBounds),
    ("sgemm", "linearised", "b[k][j][col / kOut]", "b[k][j][col % kAcross]", WrongResult),
    ("sgemm", "offset", "b[k][col + j]", "b[k][col + j + 5]", EmulatorError),
    ("sgemm", "padded", "&a[k][line + q / 4 * kHalf]", "&a[k][line + q]", WrongResult),
    ("sgemm", "warp_tile", "col + q * kLanesAcross;", "col + q * kLanesDown;", EmulatorError),
    ("sgemm", "neighbours", "across = lane / 2 % kLanesAcross", "across = lane % kLanesAcross", WrongResult),
    ("sgemm", "double_buffered", "if (more) put(turn ^ 1);", "if (more) put(turn);", Race),
    ("sgemm", "pipelined", "slices_of<T>(K)", "slices_of<T>(K - 1)", WrongResult),
    ("sgemm", "prefetched", "place, 0, K,", "place, 0, K + 1,", EmulatorError),
    ("sgemm", "tuned", "tile.store(C, ldc", "tile.store(C, ldc + 1", EmulatorError),
    ("sgemm", "stream_k", "worker <= last", "worker < last", WrongResult),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("sgemm", "stream_k", "if (piece > 0) __syncthreads();", "", Race),
]  # fmt: skip
