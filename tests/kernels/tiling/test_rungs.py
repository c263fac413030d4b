"""Rungs of the chapter tiling: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import OutOfBounds

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "matmul": st.fixed_dictionaries({"m": EDGE, "n": EDGE, "k": EDGE}),
    "stencil1d": st.fixed_dictionaries(
        {"n": st.one_of(st.integers(0, 40), st.integers(0, 3000)), "radius": st.integers(1, 9)}
    ),
    "stencil2d": st.fixed_dictionaries(
        {"rows": st.one_of(st.just(0), EDGE), "cols": st.one_of(st.just(0), EDGE), "radius": st.integers(1, 5)}
    ),
}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("matmul", "coalesced", "k < K", "k < K - 1", WrongResult),
    ("matmul", "naive", "row < M && col < N", "row < M", OutOfBounds),
    ("matmul", "tiled", "b_row < K && col < N", "col < N", OutOfBounds),
    ("matmul", "register_column", "sum[i] += a[line + i][k]", "sum[i] += a[line][k]", WrongResult),
    ("matmul", "register_tile", "first_row + line + i < M && ", "", OutOfBounds),
    ("matmul", "vectorised", "row + kHalf + quad * 4", "row + quad * 4", WrongResult),
    ("matmul", "double_buffered", "a_line < M ? K - a_k : 0", "K - a_k", OutOfBounds),
    ("stencil1d", "naive", "at >= 0 && at < n", "at < n", OutOfBounds),
    ("stencil1d", "tiled", "first - kRadius + i", "first + i", WrongResult),
    ("stencil1d", "windowed", "kHalo * kOut + o + offset", "kHalo * kOut + offset", WrongResult),
    ("stencil1d", "untiled", "at + 3 < n", "at < n", OutOfBounds),
    ("stencil2d", "naive", "r >= 0 && r < rows && c >= 0", "r < rows && c >= 0", OutOfBounds),
    ("stencil2d", "tiled", "tile[threadIdx.y + down]", "tile[threadIdx.y + kRadius]", WrongResult),
    ("stencil2d", "register_column", "row < rows && col < cols", "row < rows", OutOfBounds),
    ("stencil2d", "register_tile", "y - o <= kRadius", "y - o < kRadius", WrongResult),
    ("stencil2d", "streamed", "row + 1 < last + kRadius", "row + 1 < last", WrongResult),
]  # fmt: skip
