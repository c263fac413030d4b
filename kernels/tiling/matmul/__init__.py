"""Matrix product C = A B in float32, row-major: the chapter on coalescing starts this ladder, tiling climbs it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas
from climb.bench.problem import Launch, Peer, Rung, Size, ceil_div
from kernels.common.matrix_product import product_problem, rounding_tolerance

BLOCK = 32
#: Side of a block's tile of C, and threads of the block: with a column of 8 sums per thread, with 8 x 8 sums.
COLUMN_TILE, COLUMN_THREADS = 64, 512
SQUARE_TILE, SQUARE_THREADS = 128, 256
MAX_GRID_Y = 65535
#: Rows and columns are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - SQUARE_TILE - 1


problem = product_problem(
    "matmul",
    "Matrix product, float32",
    tolerance=rounding_tolerance,
    # Sizes that leave SMs without a tile or the matrices in L2, and one whose rows are no multiples of four floats.
    sweep=tuple({"m": edge, "n": edge, "k": edge} for edge in (512, 1024, 2048, 4095)),
    check=(
        {"m": 0, "n": 3, "k": 4},
        {"m": 5, "n": 3, "k": 0},
        {"m": 1, "n": 1, "k": 1},
        {"m": 1, "n": 33, "k": 7},
        {"m": 33, "n": 1, "k": 64},
        {"m": 31, "n": 65, "k": 17},
        {"m": 132, "n": 260, "k": 20},
        {"m": 96, "n": 64, "k": 32},
    ),
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("A", "B", "C", *(np.int32(size[key]) for key in ("m", "n", "k")))


def _fits(blocks_down_the_grid: int, what: str) -> str | None:
    if blocks_down_the_grid <= MAX_GRID_Y:
        return None
    return f"{what} may be at most {MAX_GRID_Y * BLOCK}, because a grid has at most {MAX_GRID_Y} blocks in y"


def _square(kernel: str, tile: int, block: tuple[int, ...]) -> Callable[[Size], tuple[Launch, ...]]:
    """One block for each tile of C, ``tile`` x ``tile`` elements."""

    def launches(size: Size) -> tuple[Launch, ...]:
        return (Launch(kernel, (ceil_div(size["n"], tile), ceil_div(size["m"], tile)), block, _args(size)),)

    return launches


def _wide(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The launches of :func:`_square`, with float4 if every row of A, B and C starts at a multiple of 16 bytes."""

    def launches(size: Size) -> tuple[Launch, ...]:
        width = 4 if size["n"] % 4 == 0 and size["k"] % 4 == 0 else 1
        return _square(f"{kernel}<{width}>", SQUARE_TILE, (SQUARE_THREADS,))(size)

    return launches


def _tiles_fit(tile: int) -> Callable[[Size], str | None]:
    def requires(size: Size) -> str | None:
        if size["m"] > MAX_GRID_Y * tile:
            return f"m may be at most {MAX_GRID_Y * tile}, because a grid has at most {MAX_GRID_Y} blocks in y"
        if max(size["n"], size["k"]) > MAX_EXTENT:
            return f"n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
        return None

    return requires


QUAD_ALIGNED = {"A": 16, "B": 16, "C": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "naive",
            "neighbouring threads on neighbouring rows",
            lambda size: (
                Launch(
                    "matmul_naive",
                    (ceil_div(size["m"], BLOCK), ceil_div(size["n"], BLOCK)),
                    (BLOCK, BLOCK),
                    _args(size),
                ),
            ),
            requires=lambda size: _fits(ceil_div(size["n"], BLOCK), "n"),
        ),
        Rung(
            "coalesced",
            "neighbouring threads on neighbouring columns",
            lambda size: (
                Launch(
                    "matmul_coalesced",
                    (ceil_div(size["n"], BLOCK), ceil_div(size["m"], BLOCK)),
                    (BLOCK, BLOCK),
                    _args(size),
                ),
            ),
            requires=lambda size: _fits(ceil_div(size["m"], BLOCK), "m"),
        ),
        Rung(
            "tiled",
            "tiles of A and B in shared memory",
            _square("matmul_tiled", BLOCK, (BLOCK, BLOCK)),
            requires=_tiles_fit(BLOCK),
        ),
        Rung(
            "register_column",
            "a column of eight sums per thread",
            _square("matmul_register_column", COLUMN_TILE, (COLUMN_THREADS,)),
            requires=_tiles_fit(COLUMN_TILE),
        ),
        Rung(
            "register_tile",
            "a square of 8 x 8 sums per thread",
            _square("matmul_register_tile", SQUARE_TILE, (SQUARE_THREADS,)),
            requires=_tiles_fit(SQUARE_TILE),
        ),
        Rung(
            "vectorised",
            "16 bytes per access, A transposed on the way in",
            _wide("matmul_vectorised"),
            alignment=QUAD_ALIGNED,
            requires=_tiles_fit(SQUARE_TILE),
        ),
        Rung(
            "double_buffered",
            "the next tiles are loaded while these are used",
            _wide("matmul_double_buffered"),
            alignment=QUAD_ALIGNED,
            requires=_tiles_fit(SQUARE_TILE),
        ),
    ),
    peers=(
        Peer(
            "cuBLAS fp32",
            cublas.product(tf32=False),
            cublas.cublas("torch.matmul, cuBLAS's own choice", "fp32"),
        ),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer(
            "cuBLAS TF32",
            cublas.product(tf32=True),
            cublas.cublas("torch.matmul, cuBLAS's own choice", "TF32"),
            tolerance=lambda size: 2.0**-10,
        ),
    ),
)
