"""Copy: read every byte once and write it once. Its rate is the ceiling for kernels that only move memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import REGIMES, Ladder
from climb.bench.libraries import frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256
#: Threads of a small block, four warps. As small blocks finish, an SM replaces them a few warps at a time.
SMALL_BLOCK = 128
#: Blocks of the grid-stride rung: eight for each of the H200's 132 SMs. Another GPU may need another number.
GRID_STRIDE_BLOCKS = 8 * 132
#: float4 per thread of the rung unrolled; the kernel's kUnroll.
UNROLL = 4

problem = Problem(
    name="copy",
    title="Copy n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"target": inputs["source"]},
    tolerance=lambda size: 0.0,  # a copy is bit-exact
    flops=lambda size: 0,
    bytes=lambda size: 2 * FLOAT * size["n"],
    headline=({"n": 1 << 29},),
    # From one block's worth to a quarter of the headline: latency, then the L2 cache, then memory.
    sweep=tuple({"n": 1 << power} for power in (14, 17, 20, 22, 24, 27)),
    check=({"n": 1}, {"n": 3}, {"n": 127}, {"n": 1024}, {"n": 4099}, {"n": 10007}),
)


def _grid(elements: int, block: int) -> tuple[int]:
    return (max(1, ceil_div(elements, block)),)


def _one_launch(kernel: str, grid: tuple[int, ...], block: int, size: Size) -> tuple[Launch, ...]:
    return (Launch(kernel, grid, (block,), ("source", "target", np.uint64(size["n"]))),)


def _driver_copy(arrays: dict[str, Any], size: Size):
    import cupy

    source, target = arrays["source"], arrays["target"]

    def enqueue() -> None:
        target.data.copy_from_device_async(source.data, source.nbytes, cupy.cuda.get_current_stream())

    return enqueue


QUAD_ALIGNED = {"source": 16, "target": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "scalar",
            "one float per thread",
            lambda size: _one_launch("copy_scalar", _grid(size["n"], THREADS), THREADS, size),
        ),
        Rung(
            "grid_stride",
            "just enough threads to fill the GPU, each in a loop",
            lambda size: _one_launch("copy_grid_stride", (GRID_STRIDE_BLOCKS,), THREADS, size),
        ),
        Rung(
            "vectorised",
            "16 bytes per load and store",
            lambda size: _one_launch("copy_vectorised", _grid(ceil_div(size["n"], 4), SMALL_BLOCK), SMALL_BLOCK, size),
            alignment=QUAD_ALIGNED,
        ),
        Rung(
            "unrolled",
            "four 16-byte loads before the first store",
            lambda size: _one_launch("copy_unrolled", _grid(ceil_div(size["n"], 4), UNROLL * THREADS), THREADS, size),
            alignment=QUAD_ALIGNED,
        ),
        Rung(
            "evict_first",
            "evict-first loads and stores",
            lambda size: _one_launch("copy_evict_first", _grid(ceil_div(size["n"], 4), SMALL_BLOCK), SMALL_BLOCK, size),
            alignment=QUAD_ALIGNED,
        ),
    ),
    peers=(Peer("driver memcpy", _driver_copy, frameworks.driver("cudaMemcpyAsync, device to device")),),
    ceiling="copy_gb_s",
    # A rate is a slope: between these two sizes, what L2 still holds at the end cancels.
    ceiling_sizes=({"n": 1 << 27}, {"n": 1 << 29}),
    # Dirty: the L2 cache is full of modified lines before each launch of the sweep.
    regimes=(*REGIMES, "dirty"),
)
