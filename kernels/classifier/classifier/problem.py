"""Classifier: a fully connected layer, output = weights x input, float32. Each weight is used once per input vector.

``weights`` has a row of ``inputs`` floats per output, as PyTorch's ``Linear`` has it. A batch of one is the course
report's case; with more the weights can be used again.
"""

from __future__ import annotations

import numpy as np

from climb.bench.problem import Argument, Problem, Size
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
WARP = 32
#: Blocks in y and z.
MAX_GRID_Y = 65535
#: Rows and inputs are ints in the kernels, and a tile may reach past the edge.
MAX_EXTENT = (1 << 31) - (1 << 14)
#: One atomic per product: more than this takes seconds.
MAX_ATOMICS = 1 << 28

CLASS1 = {"inputs": 25088, "outputs": 4096, "batch": 1}
CLASS2 = {"inputs": 4096, "outputs": 1024, "batch": 1}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "weights": rng.standard_normal((size["outputs"], size["inputs"]), dtype=np.float32),
        "input": rng.standard_normal((size["batch"], size["inputs"]), dtype=np.float32),
    }


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"output": inputs["input"].astype(np.float64) @ inputs["weights"].astype(np.float64).T}


problem = Problem(
    name="classifier",
    title="Fully connected layer, float32",
    size_keys=("inputs", "outputs", "batch"),
    arguments=(
        Argument("weights", "float32", ("outputs", "inputs")),
        Argument("input", "float32", ("batch", "inputs")),
        Argument("output", "float32", ("batch", "outputs"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A dot product of k terms rounds k times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["inputs"] ** 0.5),
    flops=lambda size: 2 * size["inputs"] * size["outputs"] * size["batch"],
    bytes=lambda size: FLOAT * (size["inputs"] * size["outputs"] + size["batch"] * (size["inputs"] + size["outputs"])),
    headline=(CLASS1, CLASS2, {**CLASS1, "batch": 32}),
    # The other two layers of VGG's classifier, a layer with few outputs, one with few inputs, and class2's batch.
    sweep=(
        {"inputs": 4096, "outputs": 4096, "batch": 1},
        {"inputs": 4096, "outputs": 1000, "batch": 1},
        {"inputs": 1 << 20, "outputs": 64, "batch": 1},
        {"inputs": 256, "outputs": 1 << 18, "batch": 1},
        {**CLASS2, "batch": 32},
    ),
    check=(
        {"inputs": 0, "outputs": 3, "batch": 1},
        {"inputs": 5, "outputs": 0, "batch": 2},
        {"inputs": 5, "outputs": 2, "batch": 0},
        {"inputs": 1, "outputs": 1, "batch": 1},
        {"inputs": 7, "outputs": 33, "batch": 2},
        {"inputs": 1030, "outputs": 5, "batch": 1},
        {"inputs": 4100, "outputs": 3, "batch": 1},
        {"inputs": 26000, "outputs": 2, "batch": 2},
        {"inputs": 132, "outputs": 65, "batch": 3},
    ),
    accepts_empty=True,
)
