"""Reduction to the largest of n floats: like the sum, but the result does not depend on the order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
#: Threads of a block and floats that it compares; the kernels' kThreads and kChunk.
THREADS = 1024
CHUNK = THREADS * 8 * 4
QUAD_ALIGNED = {"source": 16}

problem = Problem(
    name="reduction_max",
    title="The largest of n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("largest", "float32", (lambda size: 1,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.standard_normal(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"largest": np.max(inputs["source"], keepdims=True)},
    tolerance=lambda size: 0.0,  # one of the inputs, so bit-exact
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * (size["n"] + 1),
    headline=({"n": 1 << 28},),
    check=({"n": 1}, {"n": 33}, {"n": 1000}, {"n": CHUNK}, {"n": 2 * CHUNK + 77}),
)


def _two_pass(size: Size) -> tuple[Launch, ...]:
    blocks = ceil_div(size["n"], CHUNK)
    if blocks == 1:
        return (Launch("max_two_pass", (1,), (THREADS,), ("source", "largest", np.uint64(size["n"]))),)
    return (
        Launch("max_two_pass", (blocks,), (THREADS,), ("source", "maxima", np.uint64(size["n"]))),
        Launch("max_two_pass", (1,), (THREADS,), ("maxima", "largest", np.uint64(blocks))),
    )


def _atomics(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], CHUNK),)
    return (
        Launch("max_reset", (1,), (1,), ("largest",)),
        Launch("max_atomics", grid, (THREADS,), ("source", "largest", np.uint64(size["n"]))),
    )


def _requires(size: Size) -> str | None:
    if size["n"] <= CHUNK * CHUNK:
        return None
    return f"n may be at most {CHUNK * CHUNK}, because one block must take the maxima of all blocks"


def _cub(arrays: dict[str, Any], size: Size):
    return cub.cupy_reduction(arrays["source"], "max", arrays["largest"])


def _compute(arrays: dict[str, Any], size: Size):
    return cub.reduction(arrays["source"], "MAXIMUM", arrays["largest"])


def _torch(arrays: dict[str, Any], size: Size):
    import torch

    source, largest = torch.from_dlpack(arrays["source"]), torch.from_dlpack(arrays["largest"])
    return lambda: torch.amax(source, dim=0, keepdim=True, out=largest)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "two_pass",
            "floats as ordered integers, shuffles, float4",
            _two_pass,
            alignment=QUAD_ALIGNED,
            requires=_requires,
            workspace=lambda size: {"maxima": ((ceil_div(size["n"], CHUNK),), "float32")},
        ),
        Rung(
            "atomics",
            "an atomic per block; the order does not matter",
            _atomics,
            alignment=QUAD_ALIGNED,
        ),
    ),
    peers=(
        Peer("CUB", _cub, cub.inside_cupy("DeviceReduce::Max", "fp32")),
        Peer("CUB cuda.compute", _compute, cub.compute("DeviceReduce::Reduce, maximum", "fp32"), swept=False),
        Peer("PyTorch", _torch, frameworks.pytorch("torch.amax", "fp32")),
    ),
)
