"""What only moves data, or computes by itself: each rung is right on awkward sizes and values, and tidy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st
from tools.rung_checks import *  # noqa: F403
from tools.rung_checks import EDGE

from climb import WrongResult, cp, load_ladder, verify
from climb.emulator import EmulatorError, OutOfBounds, Uninitialised

#: Sizes to draw from: small, with ones, primes and tile edges among them.
SIZES = {
    "copy": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 9000))}),
    "read": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 25000))}),
    "cold_read": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 25000))}),
    "strided": st.fixed_dictionaries({"n": st.integers(1, 600), "stride": st.integers(1, 70)}),
    "saxpy": st.fixed_dictionaries({"n": st.one_of(st.integers(0, 40), st.integers(0, 9000))}),
    "transpose": st.fixed_dictionaries({"rows": EDGE, "cols": EDGE}),
    "fma": st.fixed_dictionaries({"n": st.one_of(st.integers(1, 40), st.integers(1, 4200))}),
    "intensity": st.fixed_dictionaries({"n": st.integers(0, 3000), "steps": st.integers(1, 100)}),
    "occupancy": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 9000)),
            "threads": st.one_of(st.integers(1, 1024), st.sampled_from((32, 128, 1024))),
            "shared": st.one_of(st.just(0), st.integers(0, 227 << 10)),
        }
    ),
    "occupancy_fma": st.fixed_dictionaries(
        # A run takes seconds, of whatever size: half of those drawn are empty.
        {"n": st.one_of(st.just(0), st.integers(1, 3000)), "threads": st.integers(1, 300), "shared": st.just(0)}
    ),
    "divergence": st.fixed_dictionaries(
        {
            "n": st.one_of(st.integers(0, 40), st.integers(0, 5000)),
            "data": st.sampled_from(("shuffled", "image", "sorted", "periodic")),
        }
    ),
}

#: The head of the loop in which copy's rung unrolled stores.
STORES_FROM = """u < kUnroll; ++u) {
        const size_t i = first + u * kThreads;
        if (i < quads) {
            reinterpret"""

#: Faults planted in rungs: what is replaced by what, and what must come of it.
PLANTED = [
    ("copy", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("copy", "unrolled", STORES_FROM, STORES_FROM.replace("< kUnroll", "< kUnroll - 1"), WrongResult),
    ("read", "float4", "start + kChunk <= n", "start + kChunk <= n + kChunk", OutOfBounds),
    ("cold_read", "warps", "start + kChunk <= n", "start < n", OutOfBounds),
    ("strided", "strided", "[i * stride]", "[(i + 1) * stride]", OutOfBounds),
    ("saxpy", "float2", "pairs * kWidth + i", "pairs * kWidth + i + 1", WrongResult),
    ("saxpy", "float4", "a * p.w + q.w", "a * p.w + q.z", WrongResult),
    ("saxpy", "unrolled", "quads = n / kWidth", "quads = (n + kWidth - 1) / kWidth", EmulatorError),
    ("saxpy", "four_scalars", "blockIdx.x) * kThreads * kUnroll", "blockIdx.x) * kThreads", WrongResult),
    ("transpose", "naive", "row + j < rows", "row + j <= rows", OutOfBounds),
    ("transpose", "tiled", "row + j < cols", "row + j <= cols", Uninitialised),
    ("transpose", "padded", "tile[threadIdx.x][threadIdx.y + j]", "tile[threadIdx.y + j][threadIdx.x]", Uninitialised),
    ("transpose", "swizzled", "(threadIdx.y + j) ^ threadIdx.x]", "threadIdx.y + j]", Uninitialised),
    ("transpose", "vectorised", "(q ^ (c / 4 % 8))", "(q ^ (c / 4 % 2 + 16))", EmulatorError),
    ("fma", "many_chains", "step < kSteps", "step < kSteps - kUnroll", WrongResult),
    ("intensity", "scalar", "step < steps", "step <= steps", WrongResult),
    ("intensity", "float4", "quads * kWidth + i", "quads * kWidth + i + 1", WrongResult),
    ("occupancy", "one_float", "target, n);", "target, n + 1);", OutOfBounds),
    ("occupancy", "four_floats", "<float, 4>", "<float, 3>", WrongResult),
    ("occupancy", "one_quad", "<float4, 1>", "<float2, 1>", WrongResult),
    ("occupancy", "four_quads", "(source, target", "(target, target", WrongResult),
    ("occupancy", "eight_quads", "<float4, 8>", "<float4, 2>", WrongResult),
    ("occupancy", "released", "target, n);", "target, n - 1);", WrongResult),
    ("occupancy_fma", "chains_1", "n, b);", "n, -b);", WrongResult),
    ("occupancy_fma", "chains_2", "<2>", "<1>", WrongResult),
    ("occupancy_fma", "chains_4", "n, b);", "n + 1, b);", OutOfBounds),
    ("occupancy_fma", "chains_8", "<8>", "<4>", WrongResult),
    ("occupancy_fma", "chains_48", "source, target", "target, target", WrongResult),
    ("occupancy_fma", "capped_48", "n, b);", "n - 1, b);", WrongResult),
    ("divergence", "fixed", "k < kMaxSteps", "k < kMaxSteps - 1", WrongResult),
    ("divergence", "early_exit", "count < kMaxSteps", "count <= kMaxSteps", WrongResult),
    ("divergence", "strided", "if (i >= n)", "if (i > n)", OutOfBounds),
    ("divergence", "flattened", "        z = {0.0f, 0.0f};", "        z = c;", WrongResult),
    ("divergence", "reconverged", "count == kMaxSteps", "count == kBatch", WrongResult),
    ("divergence", "refilled", "finished & ((1u << lane) - 1)", "finished", WrongResult),
]  # fmt: skip


@pytest.mark.parametrize("name", ["copy", "strided", "transpose", "occupancy"])
def test_what_is_only_moved_keeps_every_bit(name: str) -> None:
    """Infinities, the largest and the smallest floats and both zeros pass through; a tolerance of 0 is asserted."""
    special = np.array([np.inf, -np.inf, 3.4e38, 1.2e-38, 1e-45, -0.0, 0.0, 1.0], dtype=np.float32)
    ladder = load_ladder(name)
    size = ladder.problem.check[-1]
    assert ladder.problem.tolerance(size) == 0.0
    for rung in ladder:
        inputs = ladder.inputs(size)
        inputs["source"].reshape(-1)[:] = np.resize(special, inputs["source"].size)
        verify(rung, size, inputs=inputs)
        out = cp.asnumpy(rung(cp.asarray(inputs["source"]), **{k: size[k] for k in ladder.problem.parameters}))
        expected = ladder.problem.reference(inputs, size)["target"]
        assert np.array_equal(out.view(np.uint32), np.ascontiguousarray(expected).view(np.uint32))
