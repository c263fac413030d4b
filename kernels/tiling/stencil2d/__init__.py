"""2D stencil: every output is the weighted sum of the (2 radius + 1)^2 inputs around it. A halo on four sides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cudnn, npp
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div
from climb.bench.references import correlate, sum_of_magnitudes

FLOAT = 4
TILE = 32
#: Rows of threads in a block of naive and of register_column.
ROWS = 8
#: Outputs of one thread of register_column, in a column.
COLUMN = 8
#: Neighbouring outputs of one thread in a row, in the rungs that load float4.
OUT = 4
#: The rung streamed: threads of a block, rows of a strip.
STREAM_THREADS, STRIP = 128, 128
MAX_RADIUS = 8
MAX_GRID_Y = 65535
#: Rows and columns are ints in the kernels, and a tile with its halo may reach past the edge.
MAX_EXTENT = (1 << 31) - STREAM_THREADS * OUT - 2 * MAX_RADIUS


def weights(radius: int) -> np.ndarray:
    """The (2 radius + 1)^2 weights of the kernels, float32: 1 / (1 + down^2 + across^2), rounded."""
    offsets = np.arange(-radius, radius + 1, dtype=np.int32)
    return np.float32(1.0) / (1 + offsets[:, None] ** 2 + offsets[None, :] ** 2).astype(np.float32)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": correlate(inputs["source"], weights(size["radius"]))}


problem = Problem(
    name="stencil2d",
    title="2D stencil, float32",
    size_keys=("rows", "cols", "radius"),
    arguments=(
        Argument("source", "float32", ("rows", "cols")),
        Argument("target", "float32", ("rows", "cols"), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random((size["rows"], size["cols"]), dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # All terms are positive, so each of (2 radius + 1)^2 steps rounds a partial sum that does not exceed the result.
    tolerance=lambda size: 2.0**-24 * (2 * size["radius"] + 1) ** 2,
    flops=lambda size: 2 * (2 * size["radius"] + 1) ** 2 * size["rows"] * size["cols"],
    bytes=lambda size: 2 * FLOAT * size["rows"] * size["cols"],
    headline=({"rows": 16384, "cols": 16384, "radius": 2},),
    # A quarter of the headline is still nine times an L2 cache of 60 MB, read and written.
    sweep=tuple({"rows": 8192, "cols": 8192, "radius": radius} for radius in (1, 2, 3, 4, 8)),
    check=(
        {"rows": 0, "cols": 5, "radius": 1},
        {"rows": 1, "cols": 1, "radius": 2},
        {"rows": 3, "cols": 70, "radius": 3},
        {"rows": 67, "cols": 2, "radius": 1},
        {"rows": 64, "cols": 128, "radius": 2},
        {"rows": 40, "cols": 36, "radius": 5},
        {"rows": 97, "cols": 133, "radius": 3},
    ),
    parameters=("radius",),
    accepts_empty=True,
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))


def _tiles(kernel: str, block: tuple[int, int], down: int = 1) -> Callable[[Size], tuple[Launch, ...]]:
    """One launch of blocks of shape ``block`` in which each thread has ``down`` outputs of a column."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["cols"], block[0])), max(1, ceil_div(size["rows"], block[1] * down)))
        return (Launch(f"{kernel}<{size['radius']}>", grid, block, _args(size)),)

    return launches


def _high(size: Size) -> int:
    """Rows of outputs of one thread of the rung direct; the kernel's kHigh."""
    return 8 if size["radius"] <= 4 else 4


def _width(size: Size) -> int:
    """Floats per access in the rungs that load float4: 4 if every row starts at a multiple of 16 bytes."""
    return 4 if size["cols"] % 4 == 0 else 1


def _register_tile(size: Size) -> tuple[Launch, ...]:
    grid = (max(1, ceil_div(size["cols"], TILE * OUT)), max(1, ceil_div(size["rows"], ROWS * _high(size))))
    return (Launch(f"stencil2d_register_tile<{size['radius']}, {_width(size)}>", grid, (TILE, ROWS), _args(size)),)


def _streamed(size: Size) -> tuple[Launch, ...]:
    grid = (max(1, ceil_div(size["cols"], STREAM_THREADS * OUT)), max(1, ceil_div(size["rows"], STRIP)))
    return (Launch(f"stencil2d_streamed<{size['radius']}, {_width(size)}>", grid, (STREAM_THREADS,), _args(size)),)


def _requires(rows_per_block: int) -> Callable[[Size], str | None]:
    def requires(size: Size) -> str | None:
        if size["radius"] > MAX_RADIUS:
            return f"radius may be at most {MAX_RADIUS}, because the loops over neighbours are unrolled"
        most = MAX_GRID_Y * rows_per_block
        if size["rows"] > most:
            return f"rows may be at most {most}, because a grid has at most {MAX_GRID_Y} blocks in y"
        if size["cols"] > MAX_EXTENT:
            return f"cols may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
        return None

    return requires


def _conv2d(arrays: dict[str, Any], size: Size):
    rows, cols, radius = size["rows"], size["cols"], size["radius"]
    edge = 2 * radius + 1
    return cudnn.convolution(
        arrays["source"].reshape(1, 1, rows, cols),
        weights(radius).reshape(1, 1, edge, edge),
        arrays["target"].reshape(1, 1, rows, cols),
        padding=(radius, radius),
    )


def _npp(arrays: dict[str, Any], size: Size):
    import cupy

    return npp.convolution(arrays["source"], cupy.asarray(weights(size["radius"])), arrays["target"], "zero")


QUAD_ALIGNED = {"source": 16, "target": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "naive",
            "every neighbour from global memory",
            _tiles("stencil2d_naive", (TILE, ROWS)),
            requires=_requires(ROWS),
        ),
        Rung(
            "tiled",
            "tile and halo in shared memory",
            _tiles("stencil2d_tiled", (TILE, TILE)),
            requires=_requires(TILE),
        ),
        Rung(
            "register_column",
            "a column of eight outputs per thread",
            _tiles("stencil2d_register_column", (TILE, ROWS), COLUMN),
            requires=_requires(ROWS * COLUMN),
        ),
        Rung(
            "register_tile",
            "4 x 8 outputs in registers, no shared memory",
            _register_tile,
            alignment=QUAD_ALIGNED,
            requires=_requires(ROWS * 4),
        ),
        Rung(
            "streamed",
            "down the rows, all sums in registers",
            _streamed,
            alignment=QUAD_ALIGNED,
            requires=_requires(STRIP),
        ),
    ),
    peers=(
        Peer("cuDNN", _conv2d, cudnn.cudnn(cudnn.BENCHMARKED, "fp32")),
        Peer("NPP", _npp, npp.npp("nppiFilterBorder_32f_C1R")),
    ),
)
