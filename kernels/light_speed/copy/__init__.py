"""Copy: read every byte once, write it once. The ceiling of everything that moves memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import libraries
from climb.bench.ladder import REGIMES, Ladder
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256
#: A block of 128 threads, four warps: small blocks leave an SM warp by warp and are replaced as they go.
SMALL_BLOCK = 128
#: Blocks of the grid-stride rung: eight for each of the H200's 132 SMs. Another GPU may want another number.
GRID_STRIDE_BLOCKS = 8 * 132
IN_FLIGHT = 4

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
    tolerance=lambda size: 0.0,  # a copy is bit-equal
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
            "one thread, one float",
            lambda size: _one_launch("copy_scalar", _grid(size["n"], THREADS), THREADS, size),
        ),
        Rung(
            "grid_stride",
            "a full GPU of threads, each in a loop",
            lambda size: _one_launch("copy_grid_stride", (GRID_STRIDE_BLOCKS,), THREADS, size),
        ),
        Rung(
            "float4",
            "16 bytes per load and store",
            lambda size: _one_launch("copy_float4", _grid(ceil_div(size["n"], 4), SMALL_BLOCK), SMALL_BLOCK, size),
            alignment=QUAD_ALIGNED,
        ),
        Rung(
            "in_flight",
            "four 16-byte loads before the first store",
            lambda size: _one_launch(
                "copy_in_flight", _grid(ceil_div(size["n"], 4), IN_FLIGHT * THREADS), THREADS, size
            ),
            alignment=QUAD_ALIGNED,
        ),
        Rung(
            "streaming",
            "evict-first loads and stores",
            lambda size: _one_launch("copy_streaming", _grid(ceil_div(size["n"], 4), SMALL_BLOCK), SMALL_BLOCK, size),
            alignment=QUAD_ALIGNED,
        ),
    ),
    peers=(Peer("driver memcpy", _driver_copy, libraries.driver("cudaMemcpyAsync, device to device")),),
    ceiling={"name": "copy_gb_s", "per": "bytes"},
    # What a cache full of modified lines costs, at the sizes of the sweep.
    regimes=(*REGIMES, "dirty"),
)
