"""Stencils and convolutions of rows and images: each rung is right on awkward sizes and values, and tidy."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race, Uninitialised

#: Filters of conv2d with a border: few, for each is another kernel to compile. test_conv2d.py has the others.
CONV2D_FILTERS = (
    {"k": 3, "k_cols": 3, "border": "zero"},
    {"k": 5, "k_cols": 5, "border": "reflect"},
    {"k": 3, "k_cols": 9, "border": "clamp"},
)

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "stencil1d": st.fixed_dictionaries(
        {"n": st.one_of(st.integers(0, 40), st.integers(0, 3000)), "radius": st.integers(1, 9)}
    ),
    "stencil2d": st.fixed_dictionaries(
        {"rows": st.one_of(st.just(0), EDGE), "cols": st.one_of(st.just(0), EDGE), "radius": st.integers(1, 5)}
    ),
    "coarse_stencil": st.fixed_dictionaries(
        {
            "rows": st.one_of(st.just(0), EDGE, st.integers(200, 300)),
            "cols": EDGE,
            "radius": st.integers(1, 4),
            "outputs": st.sampled_from((1, 2, 4, 8, 16, 32)),
        }
    ),
    "conv1d": st.fixed_dictionaries(
        {
            "i": st.one_of(st.integers(0, 70), st.sampled_from((128, 129, 260, 1030))),
            "o": st.integers(0, 5),
            "l": st.sampled_from((4, 19)),  # lengths and taps are compiled in
            "k": st.sampled_from((1, 5)),
        }
    ),
    "conv1d_channels": st.fixed_dictionaries(
        {
            "i": st.one_of(st.integers(0, 20), st.sampled_from((32, 33, 65, 258))).map(lambda n: 4 * n),
            "o": st.integers(0, 5),
            "l": st.just(4),
            "k": st.just(5),
            "channels": st.sampled_from((1, 4)),
        }
    ),
    "conv2d": st.builds(
        lambda rows, cols, shape: {"rows": rows, "cols": cols, **CONV2D_FILTERS[shape]},
        st.one_of(st.just(0), EDGE),
        st.one_of(st.just(0), EDGE),
        st.integers(0, 2),
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("stencil1d", "naive", "at >= 0 && at < n", "at < n", OutOfBounds),
    ("stencil1d", "tiled", "first - kRadius + i", "first + i", WrongResult),
    ("stencil1d", "windowed", "kHalo * kOut + o + offset", "kHalo * kOut + offset", WrongResult),
    ("stencil1d", "direct", "at + 3 < n", "at < n", OutOfBounds),
    ("stencil2d", "naive", "r >= 0 && r < rows && c >= 0", "r < rows && c >= 0", OutOfBounds),
    ("stencil2d", "tiled", "tile[threadIdx.y + down]", "tile[threadIdx.y + kRadius]", WrongResult),
    ("stencil2d", "register_column", "row < rows && col < cols", "row < rows", OutOfBounds),
    ("stencil2d", "direct", "y - o <= kRadius", "y - o < kRadius", WrongResult),
    ("stencil2d", "marching", "row + 1 < last + kRadius", "row + 1 < last", WrongResult),
    ("coarse_stencil", "apart", "line = o * kRows + threadIdx.y", "line = o * kRows", WrongResult),
    ("coarse_stencil", "column", "i < kHigh * kWide", "i < (kHigh - kRadius) * kWide", Uninitialised),
    ("conv1d", "naive", "stride = blockDim.x / 2", "stride = blockDim.x / 4", WrongResult),
    ("conv1d", "coalesced", "__syncthreads();  // all rows are read before the filters", "//", Race),
    ("conv1d", "float4", "to[3] = four.w", "to[3] = four.z", WrongResult),
    ("conv1d", "padded", "staged[i + i / kPadEvery] : 0.0f", "staged[i] : 0.0f", EmulatorError),
    ("conv1d", "shuffles", "__shfl_down_sync(kAllLanes, sum[p], offset)", "sum[p]", WrongResult),
    ("conv1d", "channels", "row = threadIdx.x * kChannels + c;\n#pragma unroll\n            for (int k",
     "row = threadIdx.x * kChannels;\n#pragma unroll\n            for (int k", WrongResult),
    ("conv1d", "wide_weights", "i < here * kTaps / kFilterWidth", "i <= here * kTaps / kFilterWidth", OutOfBounds),
    ("conv1d", "separate_buffers", "blockDim.x * kChannels * kTaps;", "blockDim.x * kChannels;", EmulatorError),
    ("conv1d", "registers", "base + c < channels", "true", OutOfBounds),
    ("conv1d", "smem_transposed", "__syncwarp();  // the warp's filters are stored before", "//", Race),
    ("conv1d", "evict_first", "pack * kFilterWidth < floats", "pack * kFilterWidth <= floats", EmulatorError),
    ("conv1d", "hoisted_bias", "offset_of_all = bias[out]", "offset_of_all = bias[out + 1]", EmulatorError),
    ("conv1d", "tuned", "value[i] : value[i + kFold / 2]", "value[i] : value[i]", WrongResult),
    ("conv1d", "async_copies", "            wait_for_groups<kGroups - 1 - g>();\n", "", EmulatorError),
    ("conv1d", "consume_as_arrive", "if constexpr (g == kGroups - 1)", "if constexpr (g == 0)", WrongResult),
    ("conv1d", "skip_halo_taps", "at < kPadding + kLength", "at < kLength", WrongResult),
    ("conv1d_channels", "channels", "bias[i / length]", "bias[i % length]", EmulatorError),
    ("conv1d_channels", "unpadded", "row < here && at >= 0", "at >= 0", EmulatorError),
    ("conv1d_channels", "tree", "stride /= 2) {\n            if", "stride /= 4) {\n            if", WrongResult),
    ("conv2d", "naive", "i * kAcross + j", "j * kAcross + i", WrongResult),
    ("conv2d", "constant", "row + i - kDown / 2", "row + i", WrongResult),
    ("conv2d", "shared", "left < kWide; left += kTile", "left < kTile; left += kTile", Uninitialised),
    ("conv2d", "two_step", "if (rank < kBelow + kRight)", "if (rank < kBelow)", Uninitialised),
    ("conv2d", "shuffle", "lane < j ? beyond : own", "own", WrongResult),
    ("conv2d", "texture", "c + 0.5f", "c + 1.0f", WrongResult),
    ("conv2d", "float4", "window[o + j]", "window[o]", WrongResult),
    ("conv2d", "register_tile", "y - h < kDown", "y - h < kDown - 1", WrongResult),
    ("conv2d", "streamed", "min(row + 1, last)", "row", WrongResult),
    ("conv2d", "ahead", "row + kAhead", "row + kAhead - 1", WrongResult),
]  # fmt: skip
