"""Rungs of the chapter on asynchronous copies: their sizes, and the faults that their checks must find."""

from __future__ import annotations

from hypothesis import strategies as st
from tools.corners import *  # noqa: F403
from tools.corners import Corner
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE
from tools.thorough import thorough

from climb import WrongResult
from climb.emulator import (
    AsyncRace,
    BarrierMisuse,
    ClusterLifetime,
    Deadlock,
    EarlyAccess,
    MissingProxyFence,
    OutOfBounds,
    Race,
)

#: Sizes to draw from: small; multiples of four, as the copy engine asks for, and others.
FOURS = st.integers(1, 34).map(lambda quads: 4 * quads)
DEPTHS = st.integers(1, 9).map(lambda quads: 4 * quads)
SIZES = {
    "async_copy": st.fixed_dictionaries({"n": st.one_of(EDGE, st.integers(1, 20000))}),
    "async_transpose": st.fixed_dictionaries({"rows": FOURS, "cols": FOURS}),
    "async_matmul": st.fixed_dictionaries({"m": EDGE, "n": FOURS, "k": DEPTHS}),
    "async_reduction": st.fixed_dictionaries({"n": st.integers(1, 2000)}),
}

FOLDER = "kernels.async_copies"
#: Few blocks, so that each goes round its loop several times, and round its ring.
CORNERS = [
    Corner("async_copy", "several turns", {"n": 4096 * 9 + 7},
           {f"{FOLDER}.async_copy.{name}": 1 for name in ("RINGS", "BLOCKS")}),
    Corner("async_transpose", "several turns", {"rows": 132, "cols": 136}, {f"{FOLDER}.async_transpose.RINGS": 1}),
    Corner("async_matmul", "two pairs of tiles", {"m": 36, "n": 260, "k": 36}, {f"{FOLDER}.async_matmul.SMS": 2}),
    Corner(
        "async_reduction",
        "more sums than threads",
        {"n": 128 * 100 + 77},
        {f"{FOLDER}.async_reduction.{name}": value for name, value in (("WIDE_THREADS", 32), ("CHUNK", 128))},
        {"constexpr int kThreads = 1024;": "constexpr int kThreads = 32;", "kUnroll = 8": "kUnroll = 1"},
        only="sum_of_sums",
    ),
]  # fmt: skip

#: Faults planted in rungs: ladder, rung, original text, faulty text, and the error that must be raised.
PLANTED = [
    ("async_copy", "cp_async", "wait_for_groups<kStages - 1>", "wait_for_groups<kStages>", AsyncRace),
    ("async_copy", "bulk", "min(whole - first, size_t{kBytes})", "size_t{kBytes}", OutOfBounds),
    ("async_transpose", "tma", "    fence_proxy_async();\n", "", MissingProxyFence),
    ("async_transpose", "swizzled", "square.write<true>", "square.write<false>", WrongResult),
    ("async_transpose", "diagonal", "__syncthreads();  // every square", "// every square", Race),
    ("async_transpose", "persistent", "parity ^ 1", "parity", Deadlock),
    ("async_matmul", "pipelined", "wait_for_groups<kStages - 2>", "wait_for_groups<kStages - 1>", AsyncRace),
    ("async_matmul", "tma", "__syncthreads();  // all threads have", "// all threads have", Race),
    ("async_matmul", "specialised", "            mbarrier_wait(empty + stage, parity ^ 1);\n", "", BarrierMisuse),
    ("async_matmul", "setmaxnreg", "mbarrier_init(empty + stage, T::kThreads / 32)", "mbarrier_init(empty + stage, 1)",
     Deadlock),
    ("async_matmul", "multicast", "kBlocks * T::kThreads / 32", "T::kThreads / 32", Deadlock),
    ("async_matmul", "persistent", "parity ^= turn == 0;", "", BarrierMisuse),
    ("async_reduction", "two_pass", "i += kThreads) {\n            sum += source", "i += 2 * kThreads) {\n"
     "            sum += source", WrongResult),
    ("async_reduction", "dependent", "i < count; i", "i < count - 1; i", WrongResult),
    ("async_reduction", "cluster", "cluster_sync();  // all blocks", "// all blocks", Race),
    ("async_reduction", "cluster", "    cluster_wait();  // the first block has started: its shared memory is valid\n"
     "    if (threadIdx.x == 0) {\n        at_rank(parts, 0)[cluster_rank()] = sum;\n    }\n",
     "    if (threadIdx.x == 0) {\n        at_rank(parts, 0)[cluster_rank()] = sum;\n    }\n    cluster_wait();\n",
     ClusterLifetime),
    ("async_reduction", "dependent", "wait_for_launch_before();", "", EarlyAccess),
]  # fmt: skip

#: Faults that only the corners reach.
HIDDEN = [
    ("async_copy", "pipelined", "bulk_wait_read<1>();", "bulk_wait_read<2>();", AsyncRace),
    ("async_transpose", "persistent", "if (before >= 0) mbarrier_arrive(empty + before);",
     "mbarrier_arrive(empty + stage);", Race),
    ("async_transpose", "persistent", "sync_consumers();  // the copy engine sees", "// the copy engine sees", Race),
    thorough(("async_matmul", "persistent", "place_of_pair<T>(pair, down, across);\n            Sums",
              "place_of_pair<T>(first_pair, down, across);\n            Sums", WrongResult)),
    ("async_reduction", "dependent", "i < count; i += kThreads", "i < count; i += 2 * kThreads", WrongResult),
]  # fmt: skip
