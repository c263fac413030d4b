"""Rungs of conv1d: correct on awkward sizes and values, tidy, and their planted faults are found."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
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
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("conv1d", "unoptimised", "stride = blockDim.x / 2", "stride = blockDim.x / 4", WrongResult),
    ("conv1d", "coalesced", "__syncthreads();  // every thread has its row before the filters", "//", Race),
    ("conv1d", "float4", "to[3] = four.w", "to[3] = four.z", WrongResult),
    ("conv1d", "padded", "staged[i + i / kPadEvery] : 0.0f", "staged[i] : 0.0f", EmulatorError),
    ("conv1d", "shuffles", "offset = warpSize / 2", "offset = warpSize / 4", WrongResult),
    ("conv1d", "channels", "row = threadIdx.x * kChannels + c;\n#pragma unroll\n            for (int k",
     "row = threadIdx.x * kChannels;\n#pragma unroll\n            for (int k", WrongResult),
    ("conv1d", "wide_weights", "i < here * kTaps / kFilterWidth", "i <= here * kTaps / kFilterWidth", OutOfBounds),
    ("conv1d", "two_stores", "blockDim.x * kChannels * kTaps;", "blockDim.x * kChannels;", EmulatorError),
    ("conv1d", "registers", "base + c < channels", "true", OutOfBounds),
    ("conv1d", "turned", "__syncwarp();  // the warp's filters are there before", "//", Race),
    ("conv1d", "evict_first", "pack * kFilterWidth < floats", "pack * kFilterWidth <= floats", EmulatorError),
    ("conv1d", "bias_first", "offset_of_all = bias[out]", "offset_of_all = bias[out + 1]", EmulatorError),
    ("conv1d", "fitted", "value[i] : value[i + kFold / 2]", "value[i] : value[i]", WrongResult),
    ("conv1d", "in_flight", "            wait_for_groups<kGroups - 1 - g>();\n", "", EmulatorError),
    ("conv1d", "in_order", "if constexpr (g == kGroups - 1)", "if constexpr (g == 0)", WrongResult),
    ("conv1d", "inside", "p + k < kPadding + kLength", "p + k < kLength", WrongResult),
    ("conv1d_channels", "channels", "bias[i / length]", "bias[i % length]", EmulatorError),
    ("conv1d_channels", "unpadded", "row < here && at >= 0", "at >= 0", EmulatorError),
    ("conv1d_channels", "tree", "stride /= 2) {\n            if", "stride /= 4) {\n            if", WrongResult),
]  # fmt: skip
