"""Transpose a row-major float32 matrix: a copy whose reads and writes coalesce in different orders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas, cutensor, frameworks
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
TILE, ROWS = 32, 8
VECTOR_TILE, VECTOR_THREADS = 64, 256
SECTOR = 8  # floats
MAX_GRID_Y = 65535
#: Rows and columns are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - 2 * VECTOR_TILE


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": np.ascontiguousarray(inputs["source"].T)}


problem = Problem(
    name="transpose",
    title="Transpose a float32 matrix",
    size_keys=("rows", "cols"),
    arguments=(
        Argument("source", "float32", ("rows", "cols")),
        Argument("target", "float32", ("cols", "rows"), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random((size["rows"], size["cols"]), dtype=np.float32)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # elements are only moved, so bit-exact
    flops=lambda size: 0,
    bytes=lambda size: 2 * FLOAT * size["rows"] * size["cols"],
    headline=({"rows": 16384, "cols": 16384},),
    # A matrix that stays in L2, and one whose extents are no multiples of four.
    sweep=({"rows": 1024, "cols": 1024}, {"rows": 16383, "cols": 16381}),
    check=(
        {"rows": 1, "cols": 1},
        {"rows": 1, "cols": 77},
        {"rows": 77, "cols": 1},
        {"rows": 31, "cols": 33},
        {"rows": 64, "cols": 128},
        {"rows": 100, "cols": 68},
        {"rows": 127, "cols": 131},
    ),
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))


def _across_first(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """Blocks numbered along the rows of the source: x counts tiles across, y counts tiles down."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (ceil_div(size["cols"], TILE), ceil_div(size["rows"], TILE))
        return (Launch(kernel, grid, (TILE, ROWS), _args(size)),)

    return launches


def _down_first(size: Size) -> tuple[Launch, ...]:
    """Blocks numbered down the columns of the source: x counts tiles down, y counts tiles across."""
    grid = (ceil_div(size["rows"], TILE), ceil_div(size["cols"], TILE))
    return (Launch("transpose_reordered", grid, (TILE, ROWS), _args(size)),)


def _vectorised(size: Size) -> tuple[Launch, ...]:
    width = 4 if size["rows"] % 4 == 0 and size["cols"] % 4 == 0 else 1
    grid = (ceil_div(size["rows"], VECTOR_TILE), ceil_div(size["cols"], VECTOR_TILE))
    return (Launch(f"transpose_vectorised<{width}>", grid, (VECTOR_THREADS,), _args(size)),)


def _aligned_stores(size: Size) -> tuple[Launch, ...]:
    """The tiles of a row of the target may begin up to seven floats ahead of it."""
    grid = (ceil_div(size["rows"] + SECTOR - 1, VECTOR_TILE), ceil_div(size["cols"], VECTOR_TILE))
    return (Launch("transpose_aligned_stores", grid, (VECTOR_THREADS,), _args(size)),)


def _grid_y_from(key: str, tile: int) -> Callable[[Size], str | None]:
    """A requirement on the size: at most 65535 tiles along ``key``, which the grid's y extent counts."""

    def requires(size: Size) -> str | None:
        if size[key] > MAX_GRID_Y * tile:
            return f"{key} may be at most {MAX_GRID_Y * tile}, because a grid has at most {MAX_GRID_Y} blocks in y"
        if max(size["rows"], size["cols"]) > MAX_EXTENT:
            return f"rows and cols may be at most {MAX_EXTENT}"
        return None

    return requires


def _contiguous(arrays: dict[str, Any], size: Size):
    import torch

    source, target = torch.from_dlpack(arrays["source"]), torch.from_dlpack(arrays["target"])
    return lambda: target.copy_(source.T)


def _geam(arrays: dict[str, Any], size: Size):
    return cublas.transposition(arrays["source"], arrays["target"])


def _cutensor(arrays: dict[str, Any], size: Size):
    return cutensor.transposition(arrays["source"], arrays["target"])


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "naive",
            "read along rows, write along columns",
            _across_first("transpose_naive"),
            requires=_grid_y_from("rows", TILE),
        ),
        Rung(
            "tiled",
            "transpose the tile in shared memory",
            _across_first("transpose_tiled"),
            requires=_grid_y_from("rows", TILE),
        ),
        Rung(
            "padded",
            "one float of padding per row of the tile",
            _across_first("transpose_padded"),
            requires=_grid_y_from("rows", TILE),
        ),
        Rung(
            "swizzled",
            "columns of the tile permuted with XOR",
            _across_first("transpose_swizzled"),
            requires=_grid_y_from("rows", TILE),
        ),
        Rung(
            "reordered",
            "neighbouring blocks write neighbouring tiles",
            _down_first,
            requires=_grid_y_from("cols", TILE),
        ),
        Rung(
            "vectorised",
            "16 bytes per access, transposed in registers first",
            _vectorised,
            alignment={"source": 16, "target": 16},
            requires=_grid_y_from("cols", VECTOR_TILE),
        ),
        Rung(
            "aligned_stores",
            "single floats, and rows that begin at a sector",
            _aligned_stores,
            requires=_grid_y_from("cols", VECTOR_TILE),
        ),
    ),
    peers=(
        Peer(
            "PyTorch contiguous",
            _contiguous,
            frameworks.pytorch("copy_ of a transposed view, as contiguous() does", "fp32"),
        ),
        Peer("cuBLAS geam", _geam, cublas.cublas("cublasSgeam", "fp32")),
        Peer("cuTENSOR", _cutensor, cutensor.cutensor("cutensorPermute")),
    ),
)
