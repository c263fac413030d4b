"""Rungs of the chapter classifier: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE
from tools.thorough import thorough

from climb import WrongResult
from climb.emulator import EarlyAccess, EmulatorError, EndlessLoop, OutOfBounds, Race

#: Sizes to draw from: small, among them ones, primes and tile edges.
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
    "classifier_work": st.fixed_dictionaries(
        {
            "inputs": st.one_of(st.just(0), EDGE, st.integers(1, 2000)),
            "outputs": st.integers(0, 40),
            "threads": st.sampled_from((128, 1024)),
            "each": st.sampled_from((1, 4)),
        }
    ),
    "classifier_tensor": st.fixed_dictionaries(
        {
            "inputs": st.one_of(st.integers(1, 40), st.integers(1, 100).map(lambda packs: 4 * packs)),
            "outputs": st.integers(1, 140),
            "batch": st.one_of(st.integers(1, 9), st.integers(31, 34)),
        }
    ),
    "classifier_tf32": st.fixed_dictionaries(
        {"inputs": st.integers(1, 90), "outputs": st.integers(1, 70), "batch": st.integers(1, 9)}
    ),
    "classifier_f16": st.fixed_dictionaries(
        {
            "inputs": st.one_of(st.integers(1, 30).map(lambda packs: 8 * packs), st.integers(1, 40)),
            "outputs": st.integers(1, 140),
            "batch": st.one_of(st.integers(1, 9), st.integers(31, 34)),
        }
    ),
    "cold_read": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 25000))}),
}

#: Sizes, constants and inputs that reach branches which the sizes above leave out.
CORNERS = [
    Corner("classifier", "two groups of samples", {"inputs": 132, "outputs": 70, "batch": 40}, only="kTileSamples"),
    Corner("classifier_tensor", "two groups of samples", {"inputs": 4, "outputs": 4, "batch": 40}, only="kTileSamples"),
    Corner(
        "classifier_tensor",
        "a ring that goes round, sums of several chains",
        {"inputs": 11 * 32, "outputs": 4, "batch": 2},
        {"kernels.classifier.classifier.tuning.SMS": 1},
        only="mbarrier_wait",
    ),
    Corner(
        "classifier_f16",
        "a ring that goes round",
        {"inputs": 11 * 128, "outputs": 4, "batch": 2},
        {"kernels.classifier.classifier.tuning.SMS": 1},
    ),
    Corner(
        "classifier_tensor",
        "a ring that goes round in one block",
        {"inputs": 11 * 32, "outputs": 4, "batch": 2},
        {"kernels.classifier.classifier_tensor.launches.CLUSTER_PIECES": {}},
        only="kPieces",
    ),
    Corner(
        "classifier_tensor",
        "several tiles of 64 samples, stages that are drawn",
        {"inputs": 10 * 32, "outputs": 100, "batch": 66},
        {"kernels.classifier.classifier.tuning.SMS": 4},
        only="pieces_done",
    ),
    Corner(
        "classifier_tensor",
        "several tiles of 64 samples, stages that are drawn, pieces that divide nothing",
        {"inputs": 17 * 32, "outputs": 260, "batch": 63},
        {"kernels.classifier.classifier.tuning.SMS": 6},
        only="meetings",
    ),
    Corner("classifier_tensor", "several pieces", {"inputs": 9 * 64, "outputs": 4, "batch": 2}, only="kSlabs"),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("classifier", "tiles", "row < outputs && i < inputs", "row < outputs", OutOfBounds),
    ("classifier", "tile_sums", "if (across == 0) atomicAdd", "if (across == 1) atomicAdd", WrongResult),
    ("classifier", "single_thread_load", "__syncthreads();  ", "", Race),
    ("classifier", "columns", "atomicAdd(output + sample * outputs + row, weight * input[sample * inputs + i])",
     "output[sample * outputs + row] += weight * input[sample * inputs + i]", Race),
    ("classifier", "row_thread", "i < inputs; ++i", "i < inputs - 1; ++i", WrongResult),
    ("classifier", "row_warp", "i += kWarp", "i += kWarp + 1", WrongResult),
    ("classifier", "vectorised", "if (lane == 0) output", "if (lane == 1) output", WrongResult),
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
    ("classifier_work", "tile_sums", "i < inputs ? mine[i]", "i <= inputs ? mine[i]", EmulatorError),
    ("classifier_tensor", "mma", "mma_tf32(part[r][s], high, b[0].low, b[1].low);", "", WrongResult),
    ("classifier_tensor", "mma", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("classifier_tensor", "wgmma", "(2 * s + quad) ^ row % 8", "2 * s + quad", WrongResult),
    ("classifier_tensor", "wgmma", "fence_proxy_async();", "", EmulatorError),
    ("classifier_tensor", "slabs", "wgmma_tf32(part, high[s], small + 2 * s, true);", "", WrongResult),
    ("classifier_tensor", "slabs", "j < kSlabs; ++j", "j < 1; ++j", WrongResult),
    ("classifier_tensor", "slabs", "{\n    wait_for_launch_before();", "{", EmulatorError),
    ("classifier_tensor", "bf16_corrections",
     "wgmma_bf16(sums.corrections, split.high[p], parts + 4 + 2 * p, true);", "", WrongResult),
    ("classifier_tensor", "bf16_corrections", "(4 + eight) ^ sample % 8", "4 + eight", EmulatorError),
    ("classifier_tensor", "bf16_corrections", "fence_proxy_async();", "", EmulatorError),
    ("classifier_tensor", "clusters", "at_rank(from, p)", "at_rank(from, 0)", WrongResult),
    ("classifier_tensor", "clusters", "lower + 2 * s, more || s > 0", "whole + 2 * s, more || s > 0", WrongResult),
    ("classifier_tensor", "clusters", "fence_proxy_async();", "", EmulatorError),
    ("classifier_tensor", "clusters", "cluster_sync();  // before shared", "{}  // before shared", EmulatorError),
    ("classifier_tensor", "tickets", "wgmma_bf16(part, split.low[p], parts + 2 * p, p > 0);",
     "wgmma_bf16(part, split.high[p], parts + 2 * p, p > 0);", WrongResult),
    ("classifier_tensor", "tickets", "(4 + eight) ^ sample % 8", "4 + eight", EmulatorError),
    ("classifier_tensor", "tickets", "fence_proxy_async();", "", EmulatorError),
    ("classifier_tensor", "tickets", "wgmma_wait<0>();\n    wgmma_fence();", "", EmulatorError),
    ("classifier_tensor", "tickets", "sync_some(7, kConsumers);  // all reads", "// all reads", EmulatorError),
    ("classifier_tensor", "tickets", "__threadfence();  // the sums are", "// the sums are", Race),
    ("classifier_tensor", "tickets", "pieces - 1) == pieces - 1", "pieces - 1) == 0", Race),
    ("classifier_tensor", "slabs", "const float* sums", "const float* __restrict__ sums", EarlyAccess),
    ("classifier_tensor", "shares", "red.release.gpu", "red.relaxed.gpu", Race),
    ("classifier_tensor", "shares", "ld.acquire.gpu", "ld.relaxed.gpu", Race),
    thorough(("classifier_tensor", "shares", "0x80000000u - (blocks - 1)", "0x80000000u - blocks", EndlessLoop)),
    ("classifier_tensor", "shares", "sync_some(1 + group, 128);\n    const", "const", EmulatorError),
    ("classifier_tensor", "shares", "whose % 4 * 2;", "whose % 4;", Race),
    ("classifier_f16", "slabs", "row_group * 64 * kDepth", "row_group * 32 * kDepth", WrongResult),
    ("classifier_f16", "slabs", "j < kSlabs; ++j) sum", "j < 1; ++j) sum", WrongResult),
    ("classifier_f16", "slabs", "mbarrier_wait(&full[at.slot], at.parity);", "", EmulatorError),
    ("classifier_f16", "slabs", "first_row + r < outputs && first_sample", "first_sample", EmulatorError),
    ("classifier_f16", "slabs", "{\n    wait_for_launch_before();", "{", EmulatorError),
    ("cold_read", "warps", "start + kChunk <= n", "start < n", OutOfBounds),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("classifier", "batched", "warp % kSampleWarps * kWarpSamples;",
     "warp % kSampleWarps * (kWarpSamples / 2);", WrongResult),
    ("classifier", "split_k_per_warp", "min(first_sample + line - kTileRows, batch - 1)",
     "min(line - kTileRows, batch - 1)", WrongResult),
    ("classifier_tensor", "mma", "min(first_sample + line - kTileRows, batch - 1)",
     "min(line - kTileRows, batch - 1)", WrongResult),
    ("classifier_tensor", "wgmma", "if (lane == 0) mbarrier_arrive(&empty[at.slot]);", "", EmulatorError),
    ("classifier_tensor", "wgmma", "== kChain - 1", "== kChain", WrongResult),
    ("classifier_tensor", "slabs", "if (lane == 0) mbarrier_arrive(&empty[at.slot]);", "", EmulatorError),
    ("classifier_tensor", "bf16_corrections", "if (lane == 0) mbarrier_arrive(&empty[at.slot]);", "", EmulatorError),
    ("classifier_tensor", "bf16_corrections", "part.high[j];", "part.high[j] + part.corrections[j];", WrongResult),
    ("classifier_tensor", "clusters", "if (lane == 0) mbarrier_arrive(&empty[slot]);", "", EmulatorError),
    ("classifier_tensor", "clusters", "sync_consumers();  // all reads", "// all reads", EmulatorError),
    ("classifier_tensor", "tickets", "if (lane == 0) mbarrier_arrive(&slots.empty[i % kRing]);", "", EmulatorError),
    ("classifier_tensor", "tickets", "n < kDeep * kSamples", "n < kDeep * kWarp", EmulatorError),
    ("classifier_tensor", "tickets", "at.pieces * kRing + atomicAdd", "2 * kRing - 1 + atomicAdd", WrongResult),
    ("classifier_tensor", "shares", "(kQuads + pieces - 1) / pieces", "kQuads / pieces", WrongResult),
    ("classifier_tensor", "shares", "at.pieces * kRing + atomicAdd", "2 * kRing - 1 + atomicAdd", WrongResult),
    ("classifier_f16", "slabs", "if (held >= 0 && lane == 0) mbarrier_arrive(&empty[held]);", "", EmulatorError),
    ("classifier_f16", "slabs", "wgmma_wait<1>();  // the products", "// the products", EmulatorError),
]  # fmt: skip
