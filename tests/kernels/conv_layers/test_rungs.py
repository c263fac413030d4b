"""Rungs of the chapter conv_layers: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner, with_fault
from tools.rung_checks import *  # noqa: F403
from tools.thorough import thorough

from climb import WrongResult, load_ladder, verify
from climb.emulator import EarlyAccess, EmulatorError, EndlessLoop, LateLoad, OutOfBounds, Race, Uninitialised

#: Sizes to draw from: small, among them ones, primes and tile edges.
SIZES = {
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
    "convlayer_batch": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 9), st.sampled_from((29, 33))),
            "c_in": st.sampled_from((3, 8, 16)),
            "c_out": st.one_of(st.integers(0, 9), st.just(33)),
            "k": st.just(3),
            "batch": st.integers(0, 3),
        }
    ),
    "convlayer_tensor": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(1, 17), st.sampled_from((6, 14, 20))),
            "c_in": st.one_of(st.integers(1, 20), st.sampled_from((4, 8, 12, 20))),
            "c_out": st.integers(1, 9),
            "k": st.just(3),
            "batch": st.integers(1, 2),
        }
    ),
    "convlayer_f16": st.fixed_dictionaries(
        {
            "n": st.sampled_from((2, 6, 7)),
            "c_in": st.sampled_from((4, 12)),
            "c_out": st.integers(1, 9),
            "k": st.just(3),
            "batch": st.integers(1, 2),
        }
    ),
    "convlayer_tf32": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(1, 9), st.sampled_from((14, 17))),
            "c_in": st.one_of(st.integers(1, 10), st.sampled_from((12, 20))),
            "c_out": st.integers(1, 9),
            "k": st.just(3),
            "batch": st.integers(1, 2),
        }
    ),
    "convlayer_int8": st.fixed_dictionaries(
        {
            "n": st.integers(1, 12),
            "c_in": st.one_of(st.integers(0, 9), st.sampled_from((32, 33))),
            "c_out": st.integers(1, 9),
            "k": st.just(3),
        }
    ),
    "report_layouts": st.fixed_dictionaries(
        {
            "n": st.sampled_from((7, 8, 14, 16, 28)),
            "c_in": st.integers(1, 4),
            "c_out": st.integers(1, 5),
            "k": st.just(3),
            "chunk": st.sampled_from((7, 8, 14)),
        }
    ),
}

#: Second passes that promise read-only memory where they must not (other-algorithms, "A load that overtakes its wait").
#: They wait for a GPU that measures them again; until then, the mended text is tested.
MENDED_LATE = {"convlayer_add_late(const float* __restrict__ parts": "convlayer_add_late(const float* parts"}
MENDED_PARTS = {"convlayer_add_parts(const float4* __restrict__ parts": "convlayer_add_parts(const float4* parts"}

#: Sizes and constants that reach branches which the sizes above leave out.
CORNERS = [
    Corner(
        "convlayer_int8",
        "numbers of more than 8 bits, some negative",
        {"n": 5, "c_in": 6, "c_out": 3, "k": 3},
        inputs=lambda size: {
            "input": np.random.default_rng(0).integers(-(2**15), 2**15, (6, 5, 5)).astype(np.int32),
            "weights": np.random.default_rng(1).integers(-(2**10), 2**10, (3, 6, 3, 3)).astype(np.int32),
        },
    ),
    Corner(
        "convlayer_tensor",
        "weights that do not fit, split over a cluster",
        {"n": 4, "c_in": 116, "c_out": 3, "k": 3, "batch": 1},
        {
            "kernels.conv_layers.convlayer_tensor.launches.RESIDENT": {1: 2, 2: 2, 4: 2},
            "kernels.conv_layers.convlayer_tensor.launches.BLOCKS": {1: 2, 2: 2},
            "kernels.conv_layers.convlayer_tensor.launches.TAP_SLOTS": 3,
        },
        {"kTapSlots = 4": "kTapSlots = 3"},
        only="kRanks > 1 ? cluster_rank() : 0",
    ),
    Corner(
        "convlayer_tensor",
        "blocks that go from tile to tile",
        {"n": 4, "c_in": 36, "c_out": 2, "k": 3, "batch": 3},
        {
            "kernels.conv_layers.convlayer_tensor.launches.RESIDENT": {1: 1, 2: 1, 4: 1},
            "kernels.conv_layers.convlayer_tensor.launches.BLOCKS": {1: 1},
        },
    ),
    Corner(
        "convlayer_tf32",
        "blocks that go from tile to tile, weights that do not stay",
        {"n": 4, "c_in": 36, "c_out": 2, "k": 3, "batch": 3},
        {"kernels.conv_layers.convlayer_tensor.launches.BLOCKS": {1: 1}},
    ),
    Corner(
        "convlayer_tensor",
        "a second pass",
        {"n": 3, "c_in": 36, "c_out": 2, "k": 3, "batch": 1},
        {"kernels.conv_layers.convlayer_tensor.launches.LAST_PASS": -1000},
        MENDED_LATE,
        only="convlayer_add_late",
    ),
    Corner(
        "convlayer_tensor",
        "weights that are copied again for a last tile",
        {"n": 4, "c_in": 52, "c_out": 2, "k": 3, "batch": 3},
        {
            "kernels.conv_layers.convlayer_tensor.launches.BLOCKS": {1: 1},
            "kernels.conv_layers.convlayer_tensor.launches.TAP_SLOTS": 3,
            "kernels.conv_layers.convlayer_tensor.fused.SHAPES": ((2, 8),),
        },
        {"kTapSlots = 4": "kTapSlots = 3"},
        only="convlayer_fused",
    ),
    Corner(
        "convlayer_tensor",
        "blocks that share input maps, the last with fewer",
        {"n": 16, "c_in": 40, "c_out": 9, "k": 3, "batch": 1},
        {
            "kernels.conv_layers.convlayer_tensor.launches.BLOCKS": {1: 2},
            "kernels.conv_layers.convlayer_tensor.in_block.LAST_PASS": -100,
        },
        MENDED_PARTS,
        only="convlayer_add_parts",
    ),
    Corner(
        "convlayer_tensor",
        "pixels that must not be copied so far ahead that weights come too late",
        {"n": 4, "c_in": 160, "c_out": 2, "k": 3, "batch": 1},
        only="convlayer_fused",
    ),
    Corner(
        "convlayer_tensor",
        "clusters that add to the output, of runs of two images",
        {"n": 7, "c_in": 68, "c_out": 2, "k": 3, "batch": 2},
        {
            "kernels.conv_layers.convlayer_tensor.runs.MEETING": -1000,
            "kernels.conv_layers.convlayer_tensor.runs.ADDING": -1000,
        },
        only="convlayer_runs",
    ),
    Corner(
        "convlayer_tensor",
        "a long run, of more steps than slots",
        {"n": 6, "c_in": 68, "c_out": 2, "k": 3, "batch": 1},
        {
            "kernels.conv_layers.convlayer_tensor.runs.MEETING": 1000,
            "kernels.conv_layers.convlayer_tensor.runs.ADDING": 1000,
            "kernels.conv_layers.convlayer_tensor.runs.WIDE": (104,),
            "kernels.conv_layers.convlayer_tensor.runs.MOST_SHARED": 130 * 1024,
        },
        only="convlayer_runs",
    ),
    Corner(
        "convlayer_tensor",
        "parts of three and of four steps, for two groups of output maps",
        {"n": 4, "c_in": 100, "c_out": 66, "k": 3, "batch": 1},
        {"kernels.conv_layers.convlayer_tensor.shares.RESIDENT": 4},
        only="convlayer_shares",
    ),
]

#: Where warps that have stored halves hand them on to the products.
HANDING_ON = """        __syncwarp();
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.full[slot]);"""

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("convlayer", "map_atomics", "atomicAdd(&output[out * plane + static_cast<size_t>(row) * n + col], sum)",
     "output[out * plane + static_cast<size_t>(row) * n + col] += sum", Race),
    ("convlayer", "pair_atomics", "first_row + i / kWide - kHalo", "first_row + i / kWide", WrongResult),
    ("convlayer", "output_stationary", "at >= plane", "at > plane", OutOfBounds),
    ("convlayer", "shared_inputs", "i < maps * kWide * kWide", "i < maps * kSide * kSide", Uninitialised),
    ("convlayer", "output_maps", "        __syncthreads();  // all reads are", "        // ", Race),
    ("convlayer", "implicit_gemm", "map < c_in && pixel < plane", "pixel < plane", OutOfBounds),
    ("convlayer", "vectorised", "[half * kHalf + quad]", "[half * 4 + quad]", WrongResult),
    ("convlayer", "pipelined", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", EmulatorError),
    ("convlayer", "direct", "window[down + tap / kSize]", "window[tap / kSize]", WrongResult),
    ("convlayer", "split_k", "part < number", "part < number - 1", WrongResult),
    ("convlayer", "winograd", "s[1] - s[2] - s[3]", "s[1] - s[2] + s[3]", WrongResult),
    ("convlayer_int", "direct", "window[down + tap / kSize]", "window[tap / kSize]", WrongResult),
    ("convlayer_batch", "map_atomics", "(image * c_in + map) * plane", "(image + map) * plane", WrongResult),
    ("convlayer_batch", "direct", "(out * images + blockIdx.y) * row", "(out * images) * row", EmulatorError),
    ("convlayer_batch", "winograd_2d", "+ rest] = weights[at]", "+ rest] = weights[rest]", WrongResult),
    ("convlayer_tensor", "mma", "mma_f16(crossed[y], a[0], b[1][0], b[1][1]);", "", WrongResult),
    ("convlayer_tensor", "mma", "inside && in + 4 < c_in", "inside", EmulatorError),
    ("convlayer_tensor", "wgmma", "tap / 3 * kHaloWide + tap % 3", "tap / 3 * kWide + tap % 3", WrongResult),
    ("convlayer_tensor", "wgmma", "fence_proxy_async();", "", EmulatorError),
    ("convlayer_tensor", "halves", "tap * (kParts * kOutsAtOnce)", "tap * kOutsAtOnce", WrongResult),
    ("convlayer_tensor", "halves", "wait_for_launch_before();  // which makes", "// which makes", Race),
    ("convlayer_tensor", "fused", "fence_proxy_async();", "", EmulatorError),
    ("convlayer_tensor", "whole_steps", "work.image(tile) * work.c_in", "work.image(tile)", WrongResult),
    ("convlayer_tensor", "early_release", "image * work.c_in + ahead.step", "image + ahead.step", WrongResult),
    ("convlayer_tensor", "early_release", f"        fence_proxy_async();\n{HANDING_ON}", HANDING_ON, EmulatorError),
    ("convlayer_tensor", "overlapped", f"        fence_proxy_async();\n{HANDING_ON}", HANDING_ON, EmulatorError),
    ("convlayer_tensor", "overlapped", "target.to += kHigh / 2 * n;", "", Race),
    ("convlayer_tensor", "early_release", "input, x - kRawLeft, y - 1,", "input, x - kRawLeft, y,", WrongResult),
    ("convlayer_tensor", "in_block", "fence_proxy_async();", "", EmulatorError),
    ("convlayer_tensor", "in_block", "&& y >= 0 &&", "&&", WrongResult),
    ("convlayer_tensor", "in_block", "8 + lane % 4) * kTaps", "8 + lane % 8) * kTaps", WrongResult),
    ("convlayer_tensor", "fused", "work.image(tile) * work.c_in", "work.image(tile)", WrongResult),
    ("convlayer_tensor", "runs", "wait_for_launch_before();  // it makes", "// it makes", Race),
    ("convlayer_tensor", "runs", "group != rank", "group == rank", WrongResult),
    ("convlayer_tensor", "runs", "place(piece + pitch() + 1)", "place(piece + pitch())", WrongResult),
    ("convlayer_tensor", "shares", "fence_proxy_async();", "", EmulatorError),
    ("convlayer_tensor", "shares", "red.release.gpu", "red.relaxed.gpu", Race),
    ("convlayer_tensor", "shares", "ld.acquire.gpu", "ld.relaxed.gpu", EmulatorError),
    ("convlayer_tensor", "shares", "0x80000000u - (blocks - 1)", "0x80000000u - blocks", EndlessLoop),
    ("convlayer_tensor", "shares", "left = place >= 0 && piece < Run::kOwn", "left = place >= 0", Race),
    ("convlayer_tensor", "shares", "high = out + 8 < outs", "high = low", EmulatorError),
    ("convlayer_tensor", "shares", "(image * c_in + first_step", "(image + first_step", WrongResult),
    ("convlayer_tensor", "shares", "(c + 2 * group) % kGroups", "(c + group) % kGroups", WrongResult),
    ("convlayer_tensor", "shares", "m / 4 * 4 < maps", "0 < maps", EmulatorError),
    ("convlayer_tf32", "fours", "(four * 4 + lane % 4) * kTaps", "(lane % 4) * kTaps", WrongResult),
    ("convlayer_tf32", "fours", "out < c_out ? c_in * kTaps", "true ? c_in * kTaps", EmulatorError),
    ("convlayer_tf32", "fours", "inside ? to_tf32(from", "true ? to_tf32(from", EmulatorError),
    ("convlayer_tf32", "fours", "__syncwarp();  // the warp's weights", "// the warp's weights", Race),
    ("convlayer_int8", "mma", "out < c_out && x < n", "x < n", EmulatorError),
    ("report_layouts", "single_thread_load", "i < c_out * kTaps; ++i", "i < c_out * kTaps - 1; ++i", Uninitialised),
    ("report_layouts", "block_load", "i < c_out * kTaps; i +=", "i < c_out * kTaps - 1; i +=", Uninitialised),
    ("report_layouts", "pairs", "map) * c_out + out", "out) * c_out + map", EmulatorError),
    ("convlayer", "winograd_2d", "overwrite it.\n        __syncthreads();", "overwrite it.", Race),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("convlayer_int8", "mma", "value == static_cast<signed char>(value)", "true", WrongResult),
    ("convlayer_int8", "mma", "e + d < kDigits", "e + d < kDigits - 1", WrongResult),
    ("convlayer_tensor", "halves", "    __syncthreads();\n    }\n    const int rank", "}\n    const int rank",
     EmulatorError),
    ("convlayer_tensor", "halves", "wgmma_wait<1>();  // the previous", "// the previous", EmulatorError),
    thorough(("convlayer_tensor", "in_block", "    wait_for_launch_before();\n    float4", "    float4", Race)),
    thorough(("convlayer_tensor", "in_block", "mbarrier_wait(&barriers.empty[slot], half / kEights / kSlots % 2 ^ 1);",
              "", EmulatorError)),
    thorough(("convlayer_tensor", "in_block", "                    wgmma_wait<1>();\n", "", EmulatorError)),
    thorough(("convlayer_tensor", "wgmma", "mbarrier_wait(&empty[slot], items / kPixelSlots % 2 ^ 1);", "", Race)),
    ("convlayer_tensor", "wgmma", "if (!resident && lane == 0)", "if (lane > 31)", EmulatorError),
    thorough(("convlayer_tensor", "fused", "tap / 3 * Shared::kRow + tap % 3", "tap / 3 * kHaloWide + tap % 3",
              WrongResult)),
    thorough(("convlayer_tensor", "early_release", "first += 2", "first += 1", WrongResult)),
    thorough(("convlayer_tensor", "early_release", "mbarrier_wait(&barriers.empty[slot], item / kPixelSlots % 2 ^ 1);",
              "", EmulatorError)),
    thorough(("convlayer_tensor", "early_release", "                    wgmma_wait<1>();\n", "", EmulatorError)),
    ("convlayer_tensor", "overlapped", "total[j] = total[j + 1] = 0.0f;", "total[j] = 0.0f;", WrongResult),
    thorough(("convlayer_tensor", "overlapped", "(!kFirst && !anew) || tap > 0", "true", WrongResult)),
    thorough(("convlayer_tensor", "overlapped", "crossed, a + kOutsAtOnce, b, !kFirst || tap > 0",
              "crossed, a + kOutsAtOnce, b, true", WrongResult)),
    ("convlayer_tensor", "runs", "atomicAdd(to + place[k], sum)", "to[place[k]] = sum", EmulatorError),
    ("convlayer_tensor", "runs", "wgmma_wait<1>();  // the products of the tap", "// the products of the tap",
     EmulatorError),
    thorough(("convlayer_tensor", "runs", "here[0], b, !anew || tap > 0", "here[0], b, true", WrongResult)),
    thorough(("convlayer_tensor", "runs", "if (step >= kSlots) copy_weights(step);", "", EmulatorError)),
    thorough(("convlayer_tensor", "fused", "if (!work.resident()) mbarrier", "if (false) mbarrier", EmulatorError)),
    ("convlayer_tensor", "shares", "mbarrier_wait(&full[step + 1], 0);", "break;", EmulatorError),
    thorough(("convlayer_tensor", "shares", "wgmma_wait<1>();  // the products", "// the products", EmulatorError)),
    ("convlayer_tensor", "shares", "run += kParts * kEights", "run += kEights", WrongResult),
]  # fmt: skip


@pytest.mark.emulated
@pytest.mark.thorough
def test_every_launch_of_shares_waits_for_all_parts(tmp_path):
    """The blocks of a launch find the counters as the last launch left them."""
    size = {"n": 5, "c_in": 36, "c_out": 3, "k": 3, "batch": 1}
    rung = load_ladder("convlayer_tensor")["shares"]
    assert rung.launches(size)[0].grid == (3, 1, 1)
    for seed in range(3):
        verify(rung, size, seed)
    forgetful = with_fault(rung, "threadIdx.x == 0 ? look_at(&meetings[tile]) : 0", "0", tmp_path)
    verify(forgetful, size, 0)
    with pytest.raises(EndlessLoop):
        verify(forgetful, size, 1)


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["early_release", thorough("overlapped")])
def test_floats_that_are_handed_back_before_their_loads_have_ended_are_found(name, tmp_path):
    """An H200 computed wrong sums with this fault in one of twelve launches."""
    size = {"n": 4, "c_in": 68, "c_out": 2, "k": 3, "batch": 1}  # more items than slots of floats
    rung = load_ladder("convlayer_tensor")[name]
    verify(rung, size)
    handing_back = """        __syncwarp();
        if (threadIdx.x % kWarp == 0) mbarrier_arrive(&barriers.raw_empty[raw_slot]);"""
    hasty = with_fault(rung, f"        fence_proxy_async();\n{handing_back}", handing_back, tmp_path)
    with pytest.raises(LateLoad) as caught:
        verify(hasty, size)
    assert "value[m / 8][m % 8] = from[m * Shared::kRaw]" in caught.value.other.text


@pytest.mark.emulated
@pytest.mark.parametrize("mended", [MENDED_LATE, MENDED_PARTS], ids=["halves", "in_block"])
def test_second_pass_that_waits_for_a_gpu_still_makes_its_promise(mended, tmp_path, monkeypatch):
    """When this fails, the rung is mended: its corner needs no other text any more."""
    corner = next(one for one in CORNERS if one.source is mended)
    rung = next(one for one in load_ladder("convlayer_tensor") if corner.applies(one))
    with pytest.raises(EarlyAccess, match=r"an ld\.global\.nc promises"):
        verify(replace(corner, source={}).bind(rung, monkeypatch, tmp_path), corner.size)
