"""The tile of the worklog's last kernel over its width, in a grid of one dimension and of three.

``tile`` is the width of a cube of outputs; a block has a thread for each of them, so a width of ten is the largest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div

FLOAT, QUAD = 4, 4
OF_VOLUMES = load_ladder("conv3d")
#: Widths whose cube is at least a warp and at most 1024 threads.
WIDTHS = (4, 5, 6, 7, 8, 9, 10)
#: The weights' edge: odd; the loops over it are unrolled.
EDGES = (3, 7, 9)
#: A volume of this edge is 64 GiB, and its tiles fit a grid of one dimension.
MAX_N = 2580

problem = replace(
    OF_VOLUMES.problem,
    name="conv3d_tiles",
    title="3D convolution by cubic tiles, float32",
    size_keys=("n", "k", "tile"),
    headline=({"n": 256, "k": 7, "tile": 8}, {"n": 512, "k": 9, "tile": 8}),
    sweep=tuple({"n": 256, "k": 7, "tile": width} for width in WIDTHS if width != 8),
    check=(
        {"n": 0, "k": 3, "tile": 4},
        {"n": 2, "k": 3, "tile": 4},
        {"n": 9, "k": 3, "tile": 8},
        {"n": 7, "k": 9, "tile": 5},
        {"n": 12, "k": 3, "tile": 10},
    ),
    parameters=("tile",),
)


def _requires(size: Size) -> str | None:
    if size["tile"] not in WIDTHS:
        return f"tile may be from {WIDTHS[0]} to {WIDTHS[-1]}, because a block has a thread for each output"
    if size["k"] not in EDGES:
        return f"k may be {', '.join(map(str, EDGES))}, because the loops over the weights are unrolled"
    if size["n"] > MAX_N:
        return f"n may be at most {MAX_N}, because the blocks of a one-dimensional grid are counted in 32 bits"
    return None


def _launch(size: Size, kernel: str, flat: bool) -> Launch:
    n, k, tile = (size[key] for key in ("n", "k", "tile"))
    across = max(1, ceil_div(n, tile))
    grid = (across**3,) if flat else (across,) * 3
    args = ("source", "weights", "target", np.int32(n), *((np.int32(across),) if flat else ()))
    shared = FLOAT * ((tile + k - 1) ** 3 + ceil_div(k**3, QUAD) * QUAD)
    return Launch(f"{kernel}<{k}, {tile}>", grid, (tile**3,), args, shared)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "grid_1d",
            "blocks numbered in one dimension",
            lambda size: (_launch(size, "conv3d_grid_1d", flat=True),),
            requires=_requires,
        ),
        Rung(
            "grid_3d",
            "blocks numbered in three dimensions",
            lambda size: (_launch(size, "conv3d_grid_3d", flat=False),),
            requires=_requires,
        ),
    ),
)
