"""2D stencil with 1 to 32 outputs per thread: blocks load less halo twice, and threads read fewer floats twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import correlate, sum_of_magnitudes

FLOAT = 4
#: The block, in threads across and down.
TILE, ROWS = 32, 8
OUTPUTS = (1, 2, 4, 8, 16, 32)
#: With more, a tile of 32 outputs per thread and its halo would exceed the 48 KB of a block.
MAX_RADIUS = 4
MAX_GRID_Y = 65535
#: Rows and columns are ints in the kernels, and a tile with its halo may reach past the edge.
MAX_EXTENT = (1 << 31) - TILE - 2 * MAX_RADIUS


def weights(radius: int) -> np.ndarray:
    """The (2 radius + 1)^2 weights of the kernels, float32: 1 / (1 + down^2 + across^2), rounded."""
    offsets = np.arange(-radius, radius + 1, dtype=np.int32)
    return np.float32(1.0) / (1 + offsets[:, None] ** 2 + offsets[None, :] ** 2).astype(np.float32)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": correlate(inputs["source"], weights(size["radius"]))}


def _sweep(rows: int, cols: int, radius: int) -> tuple[Size, ...]:
    return tuple({"rows": rows, "cols": cols, "radius": radius, "outputs": outputs} for outputs in OUTPUTS)


problem = Problem(
    name="coarse_stencil",
    title="2D stencil, float32, several outputs per thread",
    size_keys=("rows", "cols", "radius", "outputs"),
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
    # 256 MiB read and written exceed an L2 cache of 60 MB.
    headline=({"rows": 4096, "cols": 8192, "radius": 3, "outputs": 16},),
    sweep=tuple(size for size in _sweep(4096, 8192, 3) if size["outputs"] != 16),
    check=(
        {"rows": 0, "cols": 5, "radius": 1, "outputs": 1},
        {"rows": 1, "cols": 1, "radius": 2, "outputs": 32},
        {"rows": 3, "cols": 70, "radius": 4, "outputs": 2},
        {"rows": 67, "cols": 2, "radius": 1, "outputs": 8},
        {"rows": 64, "cols": 96, "radius": 2, "outputs": 4},
        {"rows": 97, "cols": 45, "radius": 3, "outputs": 16},
    ),
    parameters=("radius", "outputs"),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["outputs"] not in OUTPUTS:
        return f"outputs must be one of {', '.join(map(str, OUTPUTS))}"
    if size["radius"] > MAX_RADIUS:
        return f"radius may be at most {MAX_RADIUS}, because tile and halo must fit the 48 KB of a block"
    if size["rows"] > MAX_GRID_Y * ROWS * size["outputs"]:
        most = MAX_GRID_Y * ROWS * size["outputs"]
        return f"rows may be at most {most}, because a grid has at most {MAX_GRID_Y} blocks in y"
    if size["cols"] > MAX_EXTENT:
        return f"cols may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    return None


def _launches(name: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["cols"], TILE)), max(1, ceil_div(size["rows"], ROWS * size["outputs"])))
        args = ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))
        return (Launch(f"coarse_stencil_{name}<{size['radius']}, {size['outputs']}>", grid, (TILE, ROWS), args),)

    return launches


def _rung(name: str, idea: str) -> Rung:
    return Rung(name, idea, _launches(name), requires=_requires)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("strided", "a thread's outputs eight rows apart"),
        _rung("register_column", "adjacent outputs of a column per thread"),
    ),
)
