"""Rungs of the chapter conv1d: their sizes, and the faults that their checks must find."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403

from climb import WrongResult
from climb.bench.problem import Size
from climb.emulator import EmulatorError, OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
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


def _without_products_beyond_the_row(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The convolution without the products of weights with the zeros beyond the row."""
    given, weight = inputs["input"].astype(np.float64), inputs["weight"].astype(np.float64)
    out = np.repeat(inputs["bias"].astype(np.float64)[:, None], size["l"], axis=1)
    for position in range(size["l"]):
        first = position - size["k"] // 2
        taps = [tap for tap in range(size["k"]) if 0 <= first + tap < size["l"]]
        out[:, position] += np.einsum("oct,ct->o", weight[:, :, taps], given[:, [first + tap for tap in taps]])
    return {"output": out}


#: The reference of a rung for which a NaN in a weight that only meets zeros reaches nothing.
NAN_REFERENCES = {("conv1d", "skip_halo_taps"): _without_products_beyond_the_row}

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("conv1d", "naive", "stride = blockDim.x / 2", "stride = blockDim.x / 4", WrongResult),
    ("conv1d", "coalesced", "__syncthreads();  // all rows are read before the filters", "//", Race),
    ("conv1d", "vectorised", "to[3] = four.w", "to[3] = four.z", WrongResult),
    ("conv1d", "padded", "staged[i + i / kPadEvery] : 0.0f", "staged[i] : 0.0f", EmulatorError),
    ("conv1d", "shuffle", "__shfl_down_sync(kAllLanes, sum[p], offset)", "sum[p]", WrongResult),
    ("conv1d", "channels", "row = threadIdx.x * kChannels + c;\n#pragma unroll\n            for (int k",
     "row = threadIdx.x * kChannels;\n#pragma unroll\n            for (int k", WrongResult),
    ("conv1d", "wide_weights", "i < here * kTaps / kFilterWidth", "i <= here * kTaps / kFilterWidth", OutOfBounds),
    ("conv1d", "separate_buffers", "blockDim.x * kChannels * kTaps;", "blockDim.x * kChannels;", EmulatorError),
    ("conv1d", "registers", "base + c < channels", "true", OutOfBounds),
    ("conv1d", "smem_transposed", "__syncwarp();  // the warp's filters are stored before", "//", Race),
    ("conv1d", "evict_first", "pack * kFilterWidth < floats", "pack * kFilterWidth <= floats", EmulatorError),
    ("conv1d", "hoisted_bias", "offset_of_all = bias[out]", "offset_of_all = bias[out + 1]", EmulatorError),
    ("conv1d", "tuned", "value[i] : value[i + kFold / 2]", "value[i] : value[i]", WrongResult),
    ("conv1d", "cp_async", "            wait_for_groups<kGroups - 1 - g>();\n", "", EmulatorError),
    ("conv1d", "consume_as_arrive", "if constexpr (g == kGroups - 1)", "if constexpr (g == 0)", WrongResult),
    ("conv1d", "skip_halo_taps", "at < kPadding + kLength", "at < kLength", WrongResult),
    ("conv1d_channels", "channels", "bias[i / length]", "bias[i % length]", EmulatorError),
    ("conv1d_channels", "unpadded", "row < here && at >= 0", "at >= 0", EmulatorError),
    ("conv1d_channels", "tree", "stride /= 2) {\n            if", "stride /= 4) {\n            if", WrongResult),
]  # fmt: skip
