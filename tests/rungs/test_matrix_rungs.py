"""Matrix products: each rung is right on awkward sizes and values, and tidy."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "matmul": st.fixed_dictionaries({"m": EDGE, "n": EDGE, "k": EDGE}),
    "coarse_matmul": st.fixed_dictionaries(
        {
            "m": st.one_of(EDGE, st.integers(200, 300)),
            "n": EDGE,
            "k": EDGE,
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
    "sgemm": st.fixed_dictionaries({"m": EDGE, "n": st.one_of(st.just(256), EDGE), "k": EDGE}),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("matmul", "coalesced", "k < K", "k < K - 1", WrongResult),
    ("matmul", "naive", "row < M && col < N", "row < M", OutOfBounds),
    ("matmul", "tiled", "b_row < K && col < N", "col < N", OutOfBounds),
    ("matmul", "register_column", "sum[i] += a[line + i][k]", "sum[i] += a[line][k]", WrongResult),
    ("matmul", "register_tile", "first_row + line + i < M && ", "", OutOfBounds),
    ("matmul", "vectorised", "row + kHalf + quad * 4", "row + quad * 4", WrongResult),
    ("matmul", "prefetched", "a_line < M ? K - a_k : 0", "K - a_k", OutOfBounds),
    ("coarse_matmul", "column", "a[warp * kOut + o][k]", "a[warp + o][k]", WrongResult),
    ("sgemm", "square", "first_row + a_line < M ? K - k0 - a_k : 0", "K - k0 - a_k", OutOfBounds),
    ("sgemm", "linearised", "b[k][j][col / kOut]", "b[k][j][col % kAcross]", WrongResult),
    ("sgemm", "offset", "b[k][col + j]", "b[k][col + j + 5]", EmulatorError),
    ("sgemm", "padded", "&a[k][line + q / 4 * kHalf]", "&a[k][line + q]", WrongResult),
    ("sgemm", "warp_tile", "col + q * kLanesAcross;", "col + q * kLanesDown;", EmulatorError),
    ("sgemm", "neighbours", "across = lane / 2 % kLanesAcross", "across = lane % kLanesAcross", WrongResult),
    ("sgemm", "double_buffered", "if (more) put(turn ^ 1);", "if (more) put(turn);", Race),
    ("sgemm", "pipelined", "slices_of<T>(K)", "slices_of<T>(K - 1)", WrongResult),
    ("sgemm", "read_ahead", "place, 0, K,", "place, 0, K + 1,", EmulatorError),
    ("sgemm", "tuned", "tile.store(C, ldc", "tile.store(C, ldc + 1", EmulatorError),
    ("sgemm", "stream_k", "worker <= last", "worker < last", WrongResult),
]  # fmt: skip
