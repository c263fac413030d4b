"""Classifier in whole numbers: the layer of the ladder ``classifier`` on int32, as the course report had it.

Products and sums wrap around, so every order of adding gives the same bits, and results are compared exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import libraries
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

WORD = 4
#: The rungs' kTile and kThreads, and threads of a block with packs that each has in flight, as in ``classifier``.
TILE, ATOMIC_THREADS = 32, 1024
SHAPES = ((64, 1), (64, 2), (128, 2), (256, 2), (512, 2), (448, 7))
MAX_GRID_Y = 65535
MAX_EXTENT = (1 << 31) - (1 << 14)
#: One atomic per product: more than this takes seconds.
MAX_ATOMICS = 1 << 28


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Numbers of all 32 bits, as the report's were, so that products do wrap around."""
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    return {
        "weights": rng.integers(low, high, (size["outputs"], size["inputs"]), dtype=np.int32, endpoint=True),
        "input": rng.integers(low, high, (size["batch"], size["inputs"]), dtype=np.int32, endpoint=True),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """Exact modulo 2^32: unsigned arithmetic on the same bits."""
    weights, given = (inputs[name].view(np.uint32) for name in ("weights", "input"))
    output = np.empty((size["batch"], size["outputs"]), dtype=np.uint32)
    for sample, one in enumerate(given):
        output[sample] = weights @ one
    return {"output": output.view(np.int32)}


problem = Problem(
    name="classifier_int",
    title="Fully connected layer, int32",
    size_keys=("inputs", "outputs", "batch"),
    arguments=(
        Argument("weights", "int32", ("outputs", "inputs")),
        Argument("input", "int32", ("batch", "inputs")),
        Argument("output", "int32", ("batch", "outputs"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 2 * size["inputs"] * size["outputs"] * size["batch"],
    bytes=lambda size: WORD * (size["inputs"] * size["outputs"] + size["batch"] * (size["inputs"] + size["outputs"])),
    headline=({"inputs": 25088, "outputs": 4096, "batch": 1}, {"inputs": 4096, "outputs": 1024, "batch": 1}),
    check=(
        {"inputs": 0, "outputs": 3, "batch": 1},
        {"inputs": 5, "outputs": 0, "batch": 2},
        {"inputs": 5, "outputs": 2, "batch": 0},
        {"inputs": 1, "outputs": 1, "batch": 1},
        {"inputs": 7, "outputs": 33, "batch": 2},
        {"inputs": 1030, "outputs": 5, "batch": 1},
        {"inputs": 26000, "outputs": 3, "batch": 2},
        {"inputs": 132, "outputs": 65, "batch": 3},
    ),
    accepts_empty=True,
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("weights", "input", "output", np.int32(size["inputs"]), np.int32(size["outputs"]))


def _extents_fit(size: Size) -> str | None:
    if max(size["inputs"], size["outputs"]) > MAX_EXTENT:
        return f"inputs and outputs may be at most {MAX_EXTENT}, for positions in a row are 32-bit"
    if size["batch"] > MAX_GRID_Y:
        return f"batch may be at most {MAX_GRID_Y}, the most blocks in y and z"
    return None


def _atomics_fit(outputs_per_block: int) -> Callable[[Size], str | None]:
    """What the rungs take that add each product to its output by an atomic."""

    def requires(size: Size) -> str | None:
        products = size["inputs"] * size["outputs"] * size["batch"]
        if products > MAX_ATOMICS:
            return f"{products} products; at most {MAX_ATOMICS}, for more would take far too long"
        if ceil_div(size["outputs"], outputs_per_block) > MAX_GRID_Y:
            most = MAX_GRID_Y * outputs_per_block
            return f"outputs may be at most {most}, for the grid has at most {MAX_GRID_Y} blocks in y"
        return _extents_fit(size)

    return requires


def _zeroed(name: str, inputs_per_block: int, outputs_per_block: int) -> Callable[[Size], tuple[Launch, ...]]:
    """Zero the output, then a grid over inputs, outputs and batch that adds to it."""

    def launches(size: Size) -> tuple[Launch, ...]:
        n, threads = size["outputs"] * size["batch"], (ATOMIC_THREADS,)
        across = max(1, ceil_div(size["inputs"], inputs_per_block))
        grid = (across, ceil_div(size["outputs"], outputs_per_block), size["batch"])
        return (
            Launch(f"zero_{name}", (ceil_div(n, ATOMIC_THREADS),), threads, ("output", np.uint64(n))),
            Launch(f"classifier_int_{name}", grid, threads, _args(size)),
        )

    return launches


def _in_flight(size: Size) -> tuple[Launch, ...]:
    """A block per output and sample."""
    width = 4 if size["inputs"] % 4 == 0 else 1
    packs = size["inputs"] // width
    threads, unroll = next((shape for shape in SHAPES if shape[0] * shape[1] >= packs), SHAPES[-1])
    name = f"classifier_int_in_flight<{width}, {threads}, {unroll}>"
    return (Launch(name, (size["outputs"], size["batch"]), (threads,), _args(size)),)


def _cupy(arrays: dict[str, Any], size: Size):
    import cupy

    turned = arrays["weights"].T
    return lambda: cupy.matmul(arrays["input"], turned, out=arrays["output"])


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "tiles",
            "a thread per weight, an atomic per product",
            _zeroed("tiles", TILE, TILE),
            requires=_atomics_fit(TILE),
        ),
        Rung(
            "lone_loader",
            "a block per input, one thread fetches",
            _zeroed("lone_loader", 1, ATOMIC_THREADS),
            requires=_atomics_fit(ATOMIC_THREADS),
        ),
        Rung(
            "in_flight",
            "a block per output, a whole row in flight",
            _in_flight,
            alignment={"weights": 16, "input": 16},
            requires=_extents_fit,
        ),
    ),
    peers=(Peer("CuPy", _cupy, libraries.cupy("matmul of int32, a kernel of CuPy's own", "int32")),),
)
