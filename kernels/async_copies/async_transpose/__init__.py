"""The ladder transpose goes on: the copy engine moves the tiles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, Tensor, ceil_div
from kernels.bank_conflicts import transpose

SMS = 132
#: Side of a tile, floats in a row of a box, threads that transpose a tile.
TILE, BOX, THREADS = 64, 32, 256
TILE_BYTES = 4 * TILE * TILE
#: Tiles in the ring, and blocks that have one.
STAGES, RINGS = 4, 3 * SMS
MAX_GRID_Y = 65535

problem = replace(
    transpose.problem,
    name="async_transpose",
    title="Transpose a float32 matrix with the copy engine",
    sweep=({"rows": 1024, "cols": 1024},),
    check=(
        {"rows": 1, "cols": 1},
        {"rows": 31, "cols": 33},
        {"rows": 100, "cols": 68},
        {"rows": 4, "cols": 132},
        {"rows": 132, "cols": 72},
    ),
)


def _requires(size: Size) -> str | None:
    if size["rows"] % 4 or size["cols"] % 4:
        return "rows and cols must be multiples of 4: the rows of a tensor map start at multiples of 16 bytes"
    if max(size["rows"], size["cols"]) > MAX_GRID_Y * TILE:
        return f"rows and cols may be at most {MAX_GRID_Y * TILE}"
    return None


def _maps(size: Size, swizzle: int) -> tuple[Tensor, Tensor]:
    shape = (size["rows"], size["cols"])
    return (
        Tensor("source", shape, (TILE, BOX), "float32", swizzle),
        Tensor("target", shape[::-1], (TILE, BOX), "float32", swizzle),
    )


def _one_tile(name: str, idea: str, swizzle: int) -> Rung:
    """A rung with a block for each tile; blocks are numbered down the columns of the source."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (ceil_div(size["rows"], TILE), ceil_div(size["cols"], TILE))
        return (Launch(f"transpose_{name}", grid, (THREADS,), _maps(size, swizzle)),)

    return Rung(name, idea, launches, alignment=ALIGNED, requires=_requires, capability="9.0")


def _persistent(size: Size) -> tuple[Launch, ...]:
    tiles = ceil_div(size["rows"], TILE) * ceil_div(size["cols"], TILE)
    args = (*_maps(size, 128), np.int32(size["rows"]), np.int32(size["cols"]))
    kernel, shared = f"transpose_persistent<{STAGES}>", STAGES * TILE_BYTES
    return (Launch(kernel, (min(RINGS, tiles),), (THREADS + 32,), args, shared),)


ALIGNED = {"source": 16, "target": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(
            transpose.ladder["vectorised"].rung,
            source="../../bank_conflicts/transpose/06_vectorised.cu",
        ),
        _one_tile("tma", "the copy engine loads and stores the tile", 0),
        _one_tile("swizzled", "the copy engine swizzles it on the way", 128),
        _one_tile("diagonal", "lanes on diagonals, to which its swizzle fits", 128),
        Rung(
            "persistent",
            "blocks stay, and a warp of its own loads ahead",
            _persistent,
            alignment=ALIGNED,
            requires=_requires,
            capability="9.0",
        ),
    ),
    peers=transpose.ladder.peers,
)
