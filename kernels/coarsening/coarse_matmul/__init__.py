"""Matrix product with 1 to 32 elements of C per thread: when a large product gains and a small one loses."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
#: Columns of a block's tile of C, its rows per output of a thread, and threads of the block.
WIDE, WARPS, THREADS = 32, 8, 256
OUTPUTS = (1, 2, 4, 8, 16, 32)
MAX_GRID_Y = 65535
#: Rows and columns are ints in the kernel, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - WARPS * OUTPUTS[-1] - 1


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "A": rng.standard_normal((size["m"], size["k"]), dtype=np.float32),
        "B": rng.standard_normal((size["k"], size["n"]), dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}


def _sweep(edge: int) -> tuple[Size, ...]:
    return tuple({"m": edge, "n": edge, "k": edge, "outputs": outputs} for outputs in OUTPUTS)


problem = Problem(
    name="coarse_matmul",
    title="Matrix product, float32, several outputs per thread",
    size_keys=("m", "n", "k", "outputs"),
    arguments=(
        Argument("A", "float32", ("m", "k")),
        Argument("B", "float32", ("k", "n")),
        Argument("C", "float32", ("m", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A dot product of k terms rounds k times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["k"] ** 0.5),
    flops=lambda size: 2 * size["m"] * size["n"] * size["k"],
    bytes=lambda size: FLOAT * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=({"m": 2048, "n": 2048, "k": 2048, "outputs": 8},),
    # At 512, from 8 outputs per thread on, the product has fewer blocks than the H200 has SMs.
    sweep=(*(size for size in _sweep(2048) if size["outputs"] != 8), *_sweep(512)),
    check=(
        {"m": 0, "n": 3, "k": 4, "outputs": 2},
        {"m": 5, "n": 3, "k": 0, "outputs": 4},
        {"m": 1, "n": 1, "k": 1, "outputs": 32},
        {"m": 1, "n": 33, "k": 7, "outputs": 1},
        {"m": 33, "n": 1, "k": 64, "outputs": 2},
        {"m": 96, "n": 64, "k": 32, "outputs": 8},
        {"m": 131, "n": 65, "k": 37, "outputs": 16},
    ),
    parameters=("outputs",),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["outputs"] not in OUTPUTS:
        return f"outputs must be one of {', '.join(map(str, OUTPUTS))}"
    most = MAX_GRID_Y * WARPS * size["outputs"]
    if size["m"] > most:
        return f"m may be at most {most}, because a grid has at most {MAX_GRID_Y} blocks in y"
    if max(size["n"], size["k"]) > MAX_EXTENT:
        return f"n and k may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    return None


def _launches(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], WIDE), ceil_div(size["m"], WARPS * size["outputs"]))
    args = ("A", "B", "C", *(np.int32(size[key]) for key in ("m", "n", "k")))
    return (Launch(f"coarse_matmul_register_column<{size['outputs']}>", grid, (THREADS,), args),)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("register_column", "adjacent outputs of a column per thread", _launches, requires=_requires),),
)
