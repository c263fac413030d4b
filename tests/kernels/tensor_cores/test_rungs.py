"""Rungs of the chapter tensor-cores: their sizes, and the faults that their checks must find."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.thorough import thorough

from climb import WrongResult
from climb.emulator import AsyncRace, EmulatorError, Race
from kernels.tensor_cores.tgemm.data import KINDS, factors


def growing(size: dict) -> dict[str, np.ndarray]:
    """Factors whose later products are larger, by a factor of 2 every 8 of k."""
    inputs = factors(size, np.random.default_rng(0))
    steps = np.arange(size["k"], dtype=np.int32) // 8
    return {"A": inputs["A"], "B": np.ldexp(inputs["B"], steps[:, None])}


def tiny_parts(size: dict) -> dict[str, np.ndarray]:
    """Factors with numbers so small that parts of them would be lost: of A for 40 of k, of B for 32 others."""
    inputs, k = factors(size, np.random.default_rng(0)), np.arange(size["k"])
    up = np.select([k < 40, (k >= 64) & (k < 96)], [-110, 110], 0).astype(np.int32)
    return {"A": np.ldexp(inputs["A"], up), "B": np.ldexp(inputs["B"], -up[:, None])}


#: Small extents, among them some that no tile divides; n and k are mostly such that tensor maps take them.
ROWS = st.one_of(st.integers(1, 70), st.sampled_from((127, 129)))
PIECES = st.one_of(st.integers(1, 12).map(lambda pieces: 8 * pieces), st.integers(1, 40))
PRODUCTS = st.fixed_dictionaries({"m": ROWS, "n": PIECES, "k": PIECES})
SHORT = st.one_of(st.integers(1, 40), st.just(70))
PIPES = ("tensor_f16", "tensor_bf16", "tensor_tf32", "tensor_fp8", "tensor_int8")
#: Sizes to draw from.
SIZES = {
    "hgemm": PRODUCTS,
    "tf32gemm": PRODUCTS,
    "tgemm": st.fixed_dictionaries({"m": SHORT, "n": SHORT, "k": SHORT, "data": st.sampled_from(KINDS)}),
    **dict.fromkeys(PIPES, st.fixed_dictionaries({"tiles": st.just(1), "steps": st.integers(1, 3)})),
}

#: Sizes and constants that reach branches which the sizes above leave out.
CORNERS = [
    *(
        Corner(
            "tgemm",
            "blocks that wait for each other, columns that grow",
            {"m": 3, "n": 136, "k": 260, "data": "normal"},
            only=only,
            inputs=growing,
        )
        for only in ("row_of(lane)", "raise_tiny(")  # held and few_rows
    ),
    Corner(
        "tgemm",
        "a ring that goes round, tiny numbers",
        {"m": 3, "n": 8, "k": 136, "data": "normal"},
        {"kernels.tensor_cores.tgemm.few.FEW_PARTS": {}, "kernels.tensor_cores.tgemm.few.FEW_THREADS": 128},
        {"kGroups = 4": "kGroups = 1"},
        only="raise_tiny(",
        inputs=tiny_parts,
    ),
    Corner(
        "tgemm",
        "a ring of wide tiles that goes round, tiny numbers",
        {"m": 32, "n": 328, "k": 200, "data": "normal"},
        {"kernels.tensor_cores.tgemm.few.WIDE_PARTS": {}},
        only="multiply_wide",
        inputs=tiny_parts,
    ),
    Corner(
        "tgemm",
        "rings of two parts that go round, tiny numbers",
        {"m": 32, "n": 264, "k": 392, "data": "normal"},
        {"kernels.tensor_cores.tgemm.few.SHARES_PARTS": {2: 132}},
        only="multiply_shares",
        inputs=tiny_parts,
    ),
    Corner(
        "tgemm",
        "a ring of small tiles that goes round, rows and columns longer than registers",
        {"m": 3, "n": 8, "k": 260, "data": "normal"},
        {},
        {
            "kStages = 8": "kStages = 4",
            "split_strip<kWidth, 8>": "split_strip<kWidth, 1>",
            "kRowThreads, 4>": "kRowThreads, 1>",
        },
        only="multiply_small",
        inputs=growing,
    ),
    Corner(
        "tgemm",
        "a ring that goes on from tile to tile",
        {"m": 3, "n": 264, "k": 72, "data": "normal"},
        {"kernels.tensor_cores.tgemm.launches.SMS": 2},
        only="row_of(lane)",
    ),
    Corner(
        "hgemm",
        "a ring that goes on from tile to tile",
        {"m": 8, "n": 264, "k": 72},
        {"kernels.tensor_cores.hgemm.launches.SMS": 2},
        {"kStages = 4": "kStages = 2"},
        only="gridDim.x / kCluster) {\n            const int2 first",
    ),
    Corner(
        "hgemm",
        "groups of rows that begin with their last column",
        {"m": 264, "n": 264, "k": 200},
        {"kernels.tensor_cores.hgemm.launches.SMS": 2},
        {"kGroup = 8": "kGroup = 1"},
        only="at.x / (kGroup * kCluster * kRows)",
    ),
    Corner(
        "hgemm",
        "consumers that take turns, rings that go on from tile to tile",
        {"m": 520, "n": 184, "k": 456},
        {"kernels.tensor_cores.hgemm.launches.SMS": 2},
        only="wait_for_turn",
    ),
    Corner(
        "hgemm",
        "narrow tiles whose ring goes on",
        {"m": 136, "n": 264, "k": 136},
        {"kernels.tensor_cores.hgemm.launches.SMS": 2},
        {"kStages = 5": "kStages = 2"},
    ),
    Corner(
        "hgemm",
        "a ring of small tiles that goes round, whole rows of tiles beside each other",
        {"m": 64, "n": 72, "k": 264},
        {"kernels.tensor_cores.hgemm.launches.SMALL": (64, 64, 2)},
        only="hgemm_small",
    ),
    Corner(
        "hgemm",
        "rings of pairs that go round",
        {"m": 136, "n": 8, "k": 584},
        {"kernels.tensor_cores.hgemm.launches.SPLIT_STAGES": 2},
        {"kStages = 6": "kStages = 2"},
        only="hgemm_split",
    ),
    Corner(
        "hgemm",
        "tiles of a curve that lie outside",
        {"m": 264, "n": 520, "k": 8},
        {"kernels.tensor_cores.hgemm.launches.SMS": 2},
        only="hilbert(",
    ),
    Corner(
        "tf32gemm",
        "a ring that goes on from tile to tile",
        {"m": 8, "n": 264, "k": 36},
        {"kernels.tensor_cores.tf32gemm.launches.SMS": 2},
        {"kStages = 4": "kStages = 2"},
        only="gridDim.x / kCluster) {\n            const int2 first",
    ),
    Corner(
        "tensor_f16",
        "sums that start anew",
        {"tiles": 1, "steps": 3},
        {"kernels.tensor_cores.pipes.CHAIN": 2},
        {"kChain = 64": "kChain = 2"},
    ),
]

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("hgemm", "fragments", "(down ? cols : 1)", "(down ? 1 : 1)", WrongResult),
    ("hgemm", "ldmatrix", "b_tile);\n        __syncthreads();", "b_tile);", Race),
    ("hgemm", "pipelined", "wait_for_groups<kStages - 2>()", "wait_for_groups<kStages - 1>()", EmulatorError),
    ("hgemm", "wgmma", "b + 128 * s", "b + 2 * s", WrongResult),
    ("hgemm", "specialised", "mbarrier_wait(&empty[slot], phase ^ 1);", "", EmulatorError),
    ("hgemm", "two_consumers", "mbarrier_init(&empty[s], kConsumers);", "mbarrier_init(&empty[s], 1);", EmulatorError),
    ("hgemm", "multicast", "&empty[s], kCluster * kConsumers);", "&empty[s], kCluster);", EmulatorError),
    # The other block's copies overwrite what this block's products still read.
    ("hgemm", "multicast", "mbarrier_arrive_at(&empty[last], thread)", "mbarrier_arrive(&empty[last])", Race),
    ("hgemm", "persistent", "+ rank * kRows, &full[slot]", ", &full[slot]", WrongResult),
    ("hgemm", "overlapped", "output.x = first.y;", "output.x = first.y + 32;", WrongResult),
    ("hgemm", "small_tiles", "mbarrier_wait(&full[slot], i / kStages % 2);", "", EmulatorError),
    ("hgemm", "balanced", "first.y + p, first.x, piece", "first.y, first.x, piece", AsyncRace),
    ("hgemm", "split_k", "mbarrier_wait_cluster(&received, 0);", "", EmulatorError),
    ("hgemm", "split_k", "cluster_wait();\n        send_sums", "send_sums", EmulatorError),
    ("hgemm", "split_k", "sync_warpgroup(1);  // all threads have read", "// all threads have read", Race),
    ("hgemm", "fast_cu", "bulk_wait_read<1>();", "", EmulatorError),
    ("tf32gemm", "pipelined", "b[4 * kPitch]", "b[3 * kPitch]", WrongResult),
    ("tf32gemm", "transposed", "tile[x][y]", "tile[y][x]", WrongResult),
    ("tf32gemm", "registers", "__syncwarp();  // all lanes", "// all lanes", Race),
    ("tgemm", "tf32x3", "left(int term) { return term == 0; }", "left(int term) { return term == 1; }", WrongResult),
    ("tgemm", "bf16x3", "left(int term) { return term == 0; }", "left(int term) { return term == 1; }", WrongResult),
    ("tgemm", "bf16x6", "0x001012", "0x001011", WrongResult),
    ("tgemm", "bf16x9", "0x010210212ull", "0x010210202ull", WrongResult),
    ("tgemm", "f16x3", "return min(14 + 127", "return min(17 + 127", WrongResult),
    ("tgemm", "promoted", "!(anew && s == 0)", "!anew", WrongResult),
    ("tgemm", "fused", "k % 4 / 2 * 8", "k % 4 / 2 * 4", EmulatorError),
    ("tgemm", "one_pass", "if (thread < kColumns && column < n)", "if (thread < 64 && column < n)", WrongResult),
    ("tgemm", "one_pass", "wait_for_launch_before();  // which sets", "// which sets", EmulatorError),
    ("tgemm", "small_tiles", "__syncthreads();\n    wait_for_launch_before();", "__syncthreads();", EmulatorError),
    ("tgemm", "tuned", "fence_proxy_async();", "", EmulatorError),
    ("tgemm", "one_launch", "before * kRowsOfBlock + place", "before + place", EmulatorError),
    ("tgemm", "small_tiles", "shared[((1 - group) * 32", "shared[(group * 32", WrongResult),
    ("tgemm", "few_rows", "quad = column % 32 / 4 ^ row % 8", "quad = column % 32 / 4", WrongResult),
    ("tgemm", "wide_tiles", "quad = own % 32 / 4 ^ row", "quad = own % 32 / 4", WrongResult),
    ("tgemm", "wide_tiles", "wgmma_tf32(sums, high[s], small + 2 * s, true);", "", WrongResult),
    ("tgemm", "wide_tiles", "fence_proxy_async();\n", "", EmulatorError),
    ("tgemm", "held", "(4 * s + lane % 4) ^ (own % 8)", "(4 * s + lane % 4)", WrongResult),
    *((name, "wgmma", "step % kChain + s > 0", "step % kChain > 0", WrongResult) for name in PIPES),
]  # fmt: skip

#: Planted faults that only the corners reach.
HIDDEN = [
    ("tgemm", "few_rows", "raised ? kDown : 1.0f", "1.0f", WrongResult),
    ("tgemm", "few_rows", "raise_tiny(values) ? kDown", "raise_tiny(values) ? 1.0f", WrongResult),
    ("tgemm", "few_rows", "sync_warpgroup(1 + group);  // A is split", "//", EmulatorError),
    ("tgemm", "wide_tiles", "raised ? kDown : 1.0f", "1.0f", WrongResult),
    ("tgemm", "wide_tiles", "tiny ? kDown : 1.0f", "1.0f", WrongResult),
    ("tgemm", "wide_tiles", "mbarrier_wait(&slices[i % kStages].empty, i / kStages % 2 ^ 1);", "", EmulatorError),
    ("tgemm", "wide_tiles", "sync_consumers();  // all reads", "// all reads", EmulatorError),
    ("tgemm", "shares", "mbarrier_wait(&slices[i % kStages].empty, i / kStages % 2 ^ 1);", "", EmulatorError),
    ("tgemm", "shares", "first + i * step", "first + i", WrongResult),
    ("tgemm", "shares", "meet_others(&meetings[tile][group], before, kParts, part == 0);", "", EmulatorError),
    ("tgemm", "shares", "before, kParts, part == 0", "before, kParts, part == 1 && tile == 0", EmulatorError),
    ("tgemm", "shares", "__ldcg(at(i, pair))", "__ldcg(at(part, pair))", WrongResult),
    ("tgemm", "shares", "tile * kConsumers + group) * kParts", "tile * kConsumers) * kParts", EmulatorError),
    ("tgemm", "small_tiles", "mbarrier_wait(&empty[slot], i / kStages % 2 ^ 1);", "", EmulatorError),
    ("tgemm", "small_tiles", "row = start + kKept * kRowsAtOnce; row < k", "row = k; row < k", WrongResult),
    ("tgemm", "held", "block * kRowsOfSplit", "block % 2 * kRowsOfSplit", EmulatorError),
    thorough(("tgemm", "held", "mbarrier_arrive_at(&empty[from[p]], lane)", "mbarrier_arrive(&empty[from[p]])", Race)),
    thorough(("tgemm", "held", "if (thread == 0) meet(counter, kSplit);", "", EmulatorError)),
    thorough(("tgemm", "held", "bulk_wait_read<1>()", "bulk_wait_read<2>()", EmulatorError)),
    ("hgemm", "persistent", "<0>();\n            if (thread <", "<0>();\n            if (thread < -", EmulatorError),
    ("hgemm", "overlapped", "while (waiting > 0) store_one();  // left over", "// left over", WrongResult),
    ("hgemm", "overlapped", "at.y = (N - 1) / kCols * kCols - at.y", "at.y = (N - 1) / kCols * kCols", AsyncRace),
    ("hgemm", "overlapped", "slices - 1 - i : i", "slices - 2 - i : i", WrongResult),
    ("hgemm", "two_widths", "k + row % kDepth", "k", WrongResult),
    ("hgemm", "two_widths", "bulk_wait_read<kPlaces - 1>();", "", EmulatorError),
    ("hgemm", "pingpong", "if (t != cluster) wait_for_turn(group);", "", EmulatorError),
    ("hgemm", "pingpong", "wgmma_wait<2>();", "wgmma_wait<4>();", EmulatorError),
    ("hgemm", "pingpong", "position += kConsumers * slices;", "position += slices;", EmulatorError),
    ("hgemm", "pingpong", "output.y += 64;", "", EmulatorError),
    ("hgemm", "small_tiles", "mbarrier_wait(&empty[i % kStages], i / kStages % 2 ^ 1);", "", EmulatorError),
    ("hgemm", "split_k", "thread == 0) mbarrier_arrive(&empty", "thread < 2) mbarrier_arrive(&empty", EmulatorError),
    ("hgemm", "split_k", "k + i * kDepth, first.x, barrier", "i * kDepth, first.x, barrier", WrongResult),
    ("tensor_f16", "wgmma", "step % kChain + s > 0", "step + s > 0", WrongResult),
]  # fmt: skip
