"""Rungs of the chapter privatization: their sizes, and the faults that their checks must find."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
    "histogram": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(65000, 140000)),
            "bins": st.sampled_from((1, 10, 256)),
            "data": st.sampled_from(("uniform", "constant", "zipf")),
        }
    ),
    "histogram_place": st.fixed_dictionaries(
        {"n": st.one_of(st.integers(0, 40), st.integers(0, 5000)), "before": st.integers(0, 600)}
    ),
    "histogram_bins": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(65000, 140000)),
            "bins": st.sampled_from((1, 300, 1024)),
        }
    ),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    *(
        Corner(
            "histogram",
            f"several turns of a block, {bins} bins",
            {"n": 16 * 1024 * 11 + 7, "bins": bins, "data": "zipf"},
            {"kernels.privatization.histogram.RESIDENT_BLOCKS": 1},
        )
        for bins in (10, 256)
    ),
    Corner(
        "histogram",
        "values beyond the bins",
        {"n": 3001, "bins": 10, "data": "uniform"},
        # 10, the first value beyond them, is among those after the last whole quad too.
        inputs=lambda size: {"values": ((np.arange(size["n"]) * 7 + 37) % 256).astype(np.uint8)},
    ),
    Corner(
        "histogram",
        "the first value beyond the bins, in every thread",
        {"n": 3001, "bins": 10, "data": "uniform"},
        inputs=lambda size: {"values": np.full(size["n"], 10, np.uint8)},
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("histogram", "global", "i < n && ", "i <= n && ", OutOfBounds),
    ("histogram", "shared", "        copy[bin] = 0;", "        copy[bin] = bin == 255;", WrongResult),
    ("histogram", "coarsened", "i += stride", "i += stride + 1", WrongResult),
    ("histogram", "vectorised", "quads = n / sizeof(uint4);", "quads = n / sizeof(uint4) + 1;", EmulatorError),
    ("histogram", "per_warp", "threadIdx.x / kWarpSize * kBins", "threadIdx.x * kBins", OutOfBounds),
    ("histogram", "per_lane", "(bin + step) % kCopies", "(bin + step) % (kCopies / 2)", WrongResult),
    ("histogram", "unrolled", "    for (; i < quads; i += stride) {", "    for (; i + stride < quads; i += stride) {",
     WrongResult),
    ("histogram", "byte_perm", "% kCopies * kWordBytes", "% kCopies * 8", WrongResult),
    ("histogram_place", "place", "counts[before + values[i]]", "counts[values[i]]", WrongResult),
    ("histogram_bins", "copies_4", "constexpr int kCopies = 4;", "constexpr int kCopies = 8;", OutOfBounds),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("histogram", "byte_perm", "i += kUnroll * stride", "i += (kUnroll + 1) * stride", WrongResult),
    ("histogram", "vectorised", "if (value < kBins) {", "if (value <= kBins) {", OutOfBounds),
    ("histogram", "per_warp", "if (value < kBins) {", "if (value <= kBins) {", WrongResult),
]  # fmt: skip
