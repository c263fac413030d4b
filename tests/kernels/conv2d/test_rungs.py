"""Rungs of the chapter conv2d: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import OutOfBounds, Uninitialised

#: Filters of conv2d with a border: few, for each is another kernel to compile. test_conv2d.py has the others.
CONV2D_FILTERS = (
    {"k": 3, "k_cols": 3, "border": "zero"},
    {"k": 5, "k_cols": 5, "border": "reflect"},
    {"k": 3, "k_cols": 9, "border": "clamp"},
)

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "conv2d": st.builds(
        lambda rows, cols, shape: {"rows": rows, "cols": cols, **CONV2D_FILTERS[shape]},
        st.one_of(st.just(0), EDGE),
        st.one_of(st.just(0), EDGE),
        st.integers(0, 2),
    ),
    "conv2d_sizes": st.builds(
        lambda rows, cols: {"rows": rows, "cols": cols, **CONV2D_FILTERS[0]}, st.integers(0, 70), st.integers(0, 130)
    ),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    *(
        Corner(
            "conv2d",
            f"blocks inside the image, {cols} columns, {border}",
            {"rows": 49, "cols": cols, "k": 5, "k_cols": 5, "border": border},
            only="load_window",
        )
        for cols, border in ((384, "clamp"), (400, "clamp"), (400, "reflect"))
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("conv2d", "naive", "i * kAcross + j", "j * kAcross + i", WrongResult),
    ("conv2d", "constant", "row + i - kDown / 2", "row + i", WrongResult),
    ("conv2d", "tiled", "left < kWide; left += kTile", "left < kTile; left += kTile", Uninitialised),
    ("conv2d", "halo_second_pass", "if (rank < kBelow + kRight)", "if (rank < kBelow)", Uninitialised),
    ("conv2d", "shuffle", "lane < j ? beyond : own", "own", WrongResult),
    ("conv2d", "texture", "c + 0.5f", "c + 1.0f", WrongResult),
    ("conv2d", "vectorised", "window[o + j]", "window[o]", WrongResult),
    ("conv2d", "register_tile", "y - h < kDown", "y - h < kDown - 1", WrongResult),
    ("conv2d", "streamed", "min(row + 1, last)", "row", WrongResult),
    ("conv2d_sizes", "im2col", "tap % kAcross", "tap / kAcross", WrongResult),
    ("conv2d", "prefetched", "row + kAhead", "row + kAhead - 1", WrongResult),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("conv2d", "register_tile", "kOut <= cols;", "kOut <= cols + kOut;", WrongResult),
    ("conv2d", "register_tile", "kPixelRows <= rows &&", "kPixelRows <= rows + 1 &&", OutOfBounds),
]  # fmt: skip
