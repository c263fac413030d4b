"""Sums, extremes and histograms: each rung is right on awkward sizes and values, and tidy."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "reduction": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
    "reduction_max": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "argmax": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 70000))}),
    "accurate_sum": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 70000))}),
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
    "coarse_histogram": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000), st.integers(16000, 300000)),
            "bins": st.sampled_from((1, 10, 256)),
            "outputs": st.sampled_from((1, 2, 4, 8, 16)),
        }
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("reduction", "interleaved", "t % (2 * stride) == 0", "t % stride == 0", EmulatorError),
    ("reduction", "non_divergent", "left < kThreads", "left <= kThreads", EmulatorError),
    ("reduction", "sequential", "stride = kThreads / 2", "stride = kThreads / 4", WrongResult),
    ("reduction", "first_add", "i + kThreads < n", "i < n", OutOfBounds),
    ("reduction", "shuffle", "offset = kWarp / 2", "offset = kWarp / 4", WrongResult),
    ("reduction", "float4", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction", "atomics", "atomicAdd(total, sum)", "*total += sum", Race),
    ("reduction", "last_block", "atomicInc(&tickets, gridDim.x - 1)", "atomicInc(&tickets, gridDim.x)", WrongResult),
    ("reduction_max", "two_pass", "start + kChunk <= n", "start < n", OutOfBounds),
    ("reduction_max", "atomics", "*largest = -__int_as_float", "*largest = __int_as_float", WrongResult),
    ("argmax", "two_pass", "bits == magnitude || magnitude == 0", "magnitude == 0", WrongResult),
    ("argmax", "last_block", "i < gridDim.x; i", "i < gridDim.x - 1; i", WrongResult),
    ("accurate_sum", "float64", "double sum = 0.0;", "float sum = 0.0f;", WrongResult),
    ("accurate_sum", "compensated", "sum.low + lost", "sum.low", WrongResult),
    ("histogram", "global", "i < n && ", "i <= n && ", OutOfBounds),
    ("histogram", "shared", "        copy[bin] = 0;", "        copy[bin] = bin == 255;", WrongResult),
    ("histogram", "coarsened", "i += stride", "i += stride + 1", WrongResult),
    ("histogram", "vectorised", "quads = n / sizeof(uint4);", "quads = n / sizeof(uint4) + 1;", EmulatorError),
    ("histogram", "per_warp", "threadIdx.x / kWarpSize * kBins", "threadIdx.x * kBins", OutOfBounds),
    ("histogram", "interleaved", "(bin + step) % kCopies", "(bin + step) % (kCopies / 2)", WrongResult),
    ("histogram", "unrolled", "    for (; i < quads; i += stride) {", "    for (; i + stride < quads; i += stride) {",
     WrongResult),
    ("histogram", "byte_perm", "% kCopies * kWordBytes", "% kCopies * 8", WrongResult),
    ("histogram_place", "place", "counts[before + values[i]]", "counts[values[i]]", WrongResult),
    ("histogram_bins", "copies_4", "constexpr int kCopies = 4;", "constexpr int kCopies = 8;", OutOfBounds),
    ("coarse_histogram", "chunks", "first + (kOut - 1) * kThreads < quads", "first < quads", OutOfBounds),
]  # fmt: skip
