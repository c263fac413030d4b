"""Rungs of the chapter sparsity: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, PendingProduct, Race


def _filled(sizes: st.SearchStrategy) -> st.SearchStrategy:
    """Sizes with a number of nonzeros, from 1 to all."""
    return st.tuples(sizes, st.floats(0, 1)).map(
        lambda drawn: {**drawn[0], "nonzeros": max(1, round(drawn[1] * drawn[0]["m"] * drawn[0]["k"]))}
    )


#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "sparse_gemm": st.fixed_dictionaries(
        {
            "m": st.integers(1, 9).map(lambda i: 16 * i),
            "n": st.integers(1, 33).map(lambda i: 8 * i),
            "k": st.integers(1, 4).map(lambda i: 64 * i),
        }
    ),
    "prune": st.fixed_dictionaries(
        {"m": st.integers(1, 40).map(lambda i: 16 * i), "k": st.integers(1, 9).map(lambda i: 64 * i)}
    ),
    "sparse_pipe": st.fixed_dictionaries({"tiles": st.integers(1, 2), "steps": st.integers(1, 4)}),
    "csr_vector": _filled(st.fixed_dictionaries({"m": EDGE, "k": EDGE})),
    "csr_matrix": _filled(st.fixed_dictionaries({"m": EDGE, "n": EDGE, "k": EDGE})),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    Corner(
        "sparse_gemm",
        "several tiles and groups of tiles for a cluster",
        {"m": 272, "n": 264, "k": 64},
        {"kernels.sparsity.sparse_gemm.SMS": 2},
        {"constexpr int kGroup = 8;": "constexpr int kGroup = 1;"},
    ),
    Corner(
        "sparse_pipe",
        "a second chain",
        {"tiles": 1, "steps": 5},
        {"kernels.sparsity.sparse_pipe.CHAIN": 2},
        {"constexpr int kChain = 64;": "constexpr int kChain = 2;"},
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("sparse_gemm", "persistent", "rows_of_n<1>(d, a + 2", "rows_of_n<0>(d, a + 2", WrongResult),
    ("sparse_gemm", "fragments", "mma_sparse_f16<1>(d[j], a, b, e)", "mma_sparse_f16<0>(d[j], a, b, e)", WrongResult),
    ("sparse_gemm", "pipelined", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("sparse_gemm", "pipelined", "m / kHigh - 1);", "m / kHigh);", OutOfBounds),
    ("sparse_gemm", "wgmma", "wgmma_wait<0>();", "wgmma_wait<1>();", PendingProduct),
    ("sparse_gemm", "wgmma", "__syncwarp();  // all lanes", "// all lanes", Race),
    ("sparse_gemm", "thin", "place(32 * half + lane, j)", "place(32 * half + lane, j ^ 1)", WrongResult),
    ("sparse_pipe", "shared", "b + 256, e, true", "b + 128, e, true", WrongResult),
    ("sparse_pipe", "registers", "^ row / 2 % 4", "^ row % 4", WrongResult),
    ("prune", "halves", ">= (h[j] & 0x7fff)", "> (h[j] & 0x7fff)", WrongResult),
    ("prune", "words", "prune(second, kept[1]) << 16", "prune(first, kept[1]) << 16", WrongResult),
    ("csr_vector", "row_thread", "if (row >= m) return;", "", OutOfBounds),
    ("csr_vector", "row_warp", "i += kWarp", "i += kWarp + 1", WrongResult),
    ("csr_vector", "vectorised", "min((begin + 3) & ~3, end)", "(begin + 3) & ~3", EmulatorError),
    ("csr_vector", "groups", "offset = kLanes / 2", "offset = kLanes / 4", WrongResult),
    ("csr_matrix", "row_warp", "col >= n", "col > n", EmulatorError),
    ("csr_matrix", "vectorised", "lane < count ? columns[start + lane] : 0", "columns[start + lane]", OutOfBounds),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("sparse_gemm", "persistent", "{group * kGroup + within % high", "{within % high", WrongResult),
    ("sparse_pipe", "shared", "step % kChain > 0", "step > 0", WrongResult),
]  # fmt: skip
