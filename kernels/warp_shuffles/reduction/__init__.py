"""Reduction: the sum of n floats, each read once. A tree, then shuffles, then one pass at the speed of DRAM."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cub, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
#: In the trees: threads of a block, and floats that it sums; twice as many floats with the first addition on load.
THREADS = 256
#: In the rungs with float4: threads of a block, and floats that it sums; the kernels' kThreads and kChunk.
WIDE_THREADS = 1024
CHUNK = WIDE_THREADS * 8 * 4
QUAD_ALIGNED = {"source": 16}
#: The most blocks of a grid in x.
MAX_BLOCKS = (1 << 31) - 1


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"total": np.sum(inputs["source"], dtype=np.float64, keepdims=True)}


problem = Problem(
    name="reduction",
    title="Sum n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("total", "float32", (lambda size: 1,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A float passes at most 64 additions: 32 in a thread, 5 + 5 in the block, 8 + 10 when the blocks' sums are added;
    # each rounds by at most 2^-24. Atomics add the blocks' sums one after another, and their errors like a random walk.
    tolerance=lambda size: 2.0**-24 * (64 + ceil_div(size["n"], CHUNK) ** 0.5),
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * (size["n"] + 1),
    headline=({"n": 1 << 28},),
    # Sizes bound by latency, by the L2 cache and by memory, and the size at which the read ceiling is measured.
    sweep=({"n": 1 << 16}, {"n": 1 << 20}, {"n": 1 << 24}, {"n": 1 << 29}),
    check=({"n": 0}, {"n": 1}, {"n": 33}, {"n": 255}, {"n": 513}, {"n": CHUNK}, {"n": 2 * CHUNK + 77}),
    accepts_empty=True,
)


def _blocks(n: int, per_block: int) -> int:
    """Blocks for n floats; one for n = 0, because a block must write the zero."""
    return max(1, ceil_div(n, per_block))


def _passes(kernel: str, per_block: int, threads: int, size: Size) -> tuple[Launch, ...]:
    """Launches of the kernel on the floats, then on its own sums, and so on until one sum is left."""
    launches = []
    source, n, targets = "source", size["n"], ("sums", "sums_of_sums")
    while True:
        blocks = _blocks(n, per_block)
        target = "total" if blocks == 1 else targets[len(launches) % 2]
        launches.append(Launch(kernel, (blocks,), (threads,), (source, target, np.uint64(n))))
        if blocks == 1:
            return tuple(launches)
        source, n = target, blocks


def _pass_workspace(per_block: int, size: Size) -> Mapping[str, tuple[tuple[int, ...], str]]:
    first = _blocks(size["n"], per_block)
    second = _blocks(first, per_block)
    shapes = {"sums": first, "sums_of_sums": second}
    return {name: ((blocks,), "float32") for name, blocks in shapes.items() if blocks > 1}


def _tree(name: str, idea: str, per_block: int) -> Rung:
    return Rung(
        name,
        idea,
        lambda size: _passes(f"sum_{name}", per_block, THREADS, size),
        workspace=lambda size: _pass_workspace(per_block, size),
        requires=_fits(per_block),
    )


def _fits(per_block: int):
    def requires(size: Size) -> str | None:
        if size["n"] <= MAX_BLOCKS * per_block:
            return None
        return f"n may be at most {MAX_BLOCKS * per_block}, because a grid has at most {MAX_BLOCKS} blocks"

    return requires


def _atomics(size: Size) -> tuple[Launch, ...]:
    grid = (_blocks(size["n"], CHUNK),)
    return (
        Launch("sum_reset", (1,), (1,), ("total",)),
        Launch("sum_atomics", grid, (WIDE_THREADS,), ("source", "total", np.uint64(size["n"]))),
    )


def _last_block(size: Size) -> tuple[Launch, ...]:
    grid = (_blocks(size["n"], CHUNK),)
    return (Launch("sum_last_block", grid, (WIDE_THREADS,), ("source", "sums", "total", np.uint64(size["n"]))),)


def _cub(arrays: dict[str, Any], size: Size):
    return cub.cupy_reduction(arrays["source"], "sum", arrays["total"])


def _compute(arrays: dict[str, Any], size: Size):
    return cub.reduction(arrays["source"], "PLUS", arrays["total"])


def _torch(arrays: dict[str, Any], size: Size):
    import torch

    source, total = torch.from_dlpack(arrays["source"]), torch.from_dlpack(arrays["total"])
    return lambda: torch.sum(source, dim=0, keepdim=True, out=total)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _tree("interleaved", "a tree; every second thread drops out", THREADS),
        _tree("non_divergent", "the threads that add are neighbours", THREADS),
        _tree("sequential", "the floats that they add are neighbours too", THREADS),
        _tree("first_add", "two floats added during the load", 2 * THREADS),
        _tree("shuffle", "lanes add through registers", 2 * THREADS),
        Rung(
            "vectorised",
            "eight 16-byte loads in flight per thread",
            lambda size: _passes("sum_vectorised", CHUNK, WIDE_THREADS, size),
            alignment=QUAD_ALIGNED,
            workspace=lambda size: _pass_workspace(CHUNK, size),
            requires=_fits(CHUNK),
        ),
        Rung(
            "atomics",
            "one pass, an atomicAdd per block",
            _atomics,
            alignment=QUAD_ALIGNED,
            requires=_fits(CHUNK),
        ),
        Rung(
            "last_block",
            "one launch; the last block adds up, in order",
            _last_block,
            alignment=QUAD_ALIGNED,
            workspace=lambda size: {"sums": ((_blocks(size["n"], CHUNK),), "float32")},
            requires=_fits(CHUNK),
        ),
    ),
    peers=(
        Peer("CUB", _cub, cub.inside_cupy("DeviceReduce::Sum", "fp32")),
        Peer("CUB cuda.compute", _compute, cub.compute("DeviceReduce::Reduce, plus", "fp32"), swept=False),
        Peer("PyTorch", _torch, frameworks.pytorch("torch.sum", "fp32")),
    ),
)
