"""Layers of networks: each rung is right on awkward sizes and values, and tidy."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult
from climb.emulator import EmulatorError, OutOfBounds, Race, Uninitialised

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    **dict.fromkeys(
        ("classifier", "classifier_int"),
        st.fixed_dictionaries(
            {
                "inputs": st.one_of(st.just(0), EDGE, st.integers(1, 5000)),
                "outputs": st.one_of(st.integers(0, 40), st.integers(1, 140)),
                "batch": st.integers(0, 3),
            }
        ),
    ),
    "convlayer": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31, 33, 40))),
            "c_in": st.integers(0, 13),
            "c_out": st.one_of(st.integers(0, 9), st.sampled_from((16, 33, 65))),
            "k": st.sampled_from((1, 2, 3, 3, 4, 5)),
        }
    ),
    "convlayer_int": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 17), st.sampled_from((28, 31))),
            "c_in": st.integers(0, 5),
            "c_out": st.integers(0, 7),
            "k": st.sampled_from((1, 2, 3, 5)),
        }
    ),
}

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("classifier", "tiles", "row < outputs && i < inputs", "row < outputs", OutOfBounds),
    ("classifier", "tile_sums", "if (across == 0) atomicAdd", "if (across == 1) atomicAdd", WrongResult),
    ("classifier", "single_thread_load", "__syncthreads();  ", "", Race),
    ("classifier", "columns", "atomicAdd(output + sample * outputs + row, weight * input[sample * inputs + i])",
     "output[sample * outputs + row] += weight * input[sample * inputs + i]", Race),
    ("classifier", "row_thread", "i < inputs; ++i", "i < inputs - 1; ++i", WrongResult),
    ("classifier", "row_warp", "i += kWarp", "i += kWarp + 1", WrongResult),
    ("classifier", "float4", "if (lane == 0) output", "if (lane == 1) output", WrongResult),
    ("classifier", "shared_input", "__syncthreads();  // all reads", "// all reads", Race),
    ("classifier", "several_rows", "lane == 0 && first + r < outputs", "lane == 0", OutOfBounds),
    ("classifier", "row_block", "sum = block_sum<kBlock>(sum)", "sum = warp_sum(sum)", WrongResult),
    ("classifier", "launch_bounds", "i < packs ? mine[i]", "i <= packs ? mine[i]", OutOfBounds),
    ("classifier", "evict_first", "i < packs ? __ldcs", "i <= packs ? __ldcs", OutOfBounds),
    ("classifier", "split_k", "begin = blockIdx.y * packs_per_piece", "begin = 0", WrongResult),
    ("classifier", "batched", "row < outputs && sample < batch", "row < outputs", EmulatorError),
    ("classifier", "batched", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("classifier", "no_bounds", "offset = kWarps / 2", "offset = kWarps / 4", WrongResult),
    ("classifier", "split_k_per_warp", "first_row + r < outputs && first_sample", "first_sample", EmulatorError),
    ("classifier", "split_k_per_warp", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("classifier_int", "tiles", "row < outputs && i < inputs", "row < outputs", OutOfBounds),
    ("classifier_int", "single_thread_load", "__syncthreads();  ", "", Race),
    ("classifier_int", "row_block", "weight.y * value.y", "weight.y * value.x", WrongResult),
    ("convlayer", "map_atomics", "atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col], sum)",
     "output[out * plane + static_cast<size_t>(row) * n + col] += sum", Race),
    ("convlayer", "pair_atomics", "first_row + i / kWide - kHalo", "first_row + i / kWide", WrongResult),
    ("convlayer", "output_stationary", "at >= plane", "at > plane", OutOfBounds),
    ("convlayer", "shared_inputs", "i < maps * kWide * kWide", "i < maps * kSide * kSide", Uninitialised),
    ("convlayer", "output_maps", "        __syncthreads();  // all reads of these", "        // ", Race),
    ("convlayer", "implicit_gemm", "map < c_in && pixel < plane", "pixel < plane", OutOfBounds),
    ("convlayer", "vectorised", "[half * kHalf + quad]", "[half * 4 + quad]", WrongResult),
    ("convlayer", "pipelined", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("convlayer", "direct", "window[down + tap / kSize]", "window[tap / kSize]", WrongResult),
    ("convlayer", "split_k", "part < number", "part < number - 1", WrongResult),
    ("convlayer", "winograd", "s[1] - s[2] - s[3]", "s[1] - s[2] + s[3]", WrongResult),
    ("convlayer", "winograd_2d", "overwrite it.\n        __syncthreads();", "overwrite it.", Race),
]  # fmt: skip
