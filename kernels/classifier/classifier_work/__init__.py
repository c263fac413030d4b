"""The report's tile of the fully connected layer over its two numbers: threads of a block, and weights of a thread.

The course report suspects too many blocks, threads that do too little, and blocks that are too large. ``threads`` and
``each`` vary these apart from each other: a block has ``threads`` / 32 rows, a thread ``each`` weights of one of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes
from kernels.classifier.classifier.launches import ATOMIC_THREADS
from kernels.classifier.classifier.problem import CLASS1, CLASS2, FLOAT, MAX_EXTENT, MAX_GRID_Y, WARP

#: Threads of a block, and weights of a thread, that are measured; 784 weights are the whole of class1's rows.
BLOCKS, WORK = (128, 256, 512, 1024), (1, 4, 16, 64, 256, 784)
MAX_THREADS, MAX_EACH = 1024, 1024


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "weights": rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32),
        "input": rng.standard_normal(size["inputs"], dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"output": inputs["weights"].astype(np.float64) @ inputs["input"].astype(np.float64)}


def _layer(size: Size, threads: int, each: int) -> dict[str, int]:
    return {"inputs": size["inputs"], "outputs": size["outputs"], "threads": threads, "each": each}


problem = Problem(
    name="classifier_work",
    title="Fully connected layer by tiles, float32",
    size_keys=("inputs", "outputs", "threads", "each"),
    arguments=(
        Argument("weights", "float32", ("outputs", "inputs")),
        Argument("input", "float32", ("inputs",)),
        Argument("output", "float32", ("outputs",), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A dot product of k terms rounds k times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["inputs"] ** 0.5),
    flops=lambda size: 2 * size["inputs"] * size["outputs"],
    bytes=lambda size: FLOAT * (size["inputs"] * size["outputs"] + size["inputs"] + size["outputs"]),
    # The report's choice at its class1, and a small block with whole rows.
    headline=(_layer(CLASS1, 1024, 1), _layer(CLASS1, 128, 784)),
    sweep=(
        *(_layer(CLASS1, 1024, each) for each in WORK if each != 1),
        *(_layer(CLASS1, 128, each) for each in WORK if each != 784),
        *(_layer(CLASS1, threads, 16) for threads in BLOCKS if threads not in (128, 1024)),
        *(_layer(CLASS2, threads, 1) for threads in BLOCKS),
    ),
    check=(
        {"inputs": 0, "outputs": 3, "threads": 128, "each": 1},
        {"inputs": 5, "outputs": 0, "threads": 128, "each": 1},
        {"inputs": 1, "outputs": 1, "threads": 32, "each": 4},
        {"inputs": 70, "outputs": 33, "threads": 1024, "each": 1},
        {"inputs": 1030, "outputs": 5, "threads": 128, "each": 4},
    ),
    parameters=("threads", "each"),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["threads"] % WARP or size["threads"] > MAX_THREADS:
        return f"threads must be a multiple of {WARP} up to {MAX_THREADS}, because a warp has a row"
    if size["each"] > MAX_EACH:
        return f"each may be at most {MAX_EACH}"
    if max(size["inputs"], size["outputs"]) > MAX_EXTENT:
        return f"inputs and outputs may be at most {MAX_EXTENT}, because positions in a row are 32-bit"
    rows = size["threads"] // WARP
    if ceil_div(size["outputs"], rows) > MAX_GRID_Y:
        return f"outputs may be at most {MAX_GRID_Y * rows}, because a grid has at most {MAX_GRID_Y} blocks in y"
    return None


def _launches(size: Size) -> tuple[Launch, ...]:
    threads, each, outputs = size["threads"], size["each"], size["outputs"]
    grid = (max(1, ceil_div(size["inputs"], WARP * each)), max(1, ceil_div(outputs, threads // WARP)))
    zero = Launch(
        f"zero_output<{ATOMIC_THREADS}, float>",
        (ceil_div(outputs, ATOMIC_THREADS),),
        (ATOMIC_THREADS,),
        ("output", np.uint64(outputs)),
    )
    args = ("weights", "input", "output", np.int32(size["inputs"]), np.int32(outputs))
    return (zero, Launch(f"classifier_work<{threads}, {each}>", grid, (threads,), args))


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("tile_sums", "threads of a block and weights of a thread are free", _launches, requires=_requires),),
)
