"""Classifier in integers: the layer of the ladder ``classifier`` on int32, as the course report had it.

Products and sums wrap around, so every order of adding gives the same bits, and results are compared exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import frameworks, triton_peers
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size
from kernels.classifier.classifier import tuning
from kernels.classifier.classifier.launches import ATOMIC_THREADS, TILE, args, atomics_fit, extents_fit, with_atomics
from kernels.classifier.classifier.tuning import packs_of, width

WORD = 4


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
        {"inputs": 26000, "outputs": 2, "batch": 2},
        {"inputs": 132, "outputs": 65, "batch": 3},
    ),
    accepts_empty=True,
)


def _row_block(size: Size) -> tuple[Launch, ...]:
    """A block per output and sample."""
    shape = tuning.choose("row_block", packs_of(size))
    name = f"classifier_int_row_block<{width(size)}, {shape.threads}, {shape.unroll}>"
    return (Launch(name, (size["outputs"], size["batch"]), (shape.threads,), args(size)),)


def _cupy(arrays: dict[str, Any], size: Size):
    import cupy

    frameworks.load_cublas_of_cupy()
    transposed = arrays["weights"].T
    return lambda: cupy.matmul(arrays["input"], transposed, out=arrays["output"])


def _triton(arrays: dict[str, Any], size: Size):
    return triton_peers.layer(arrays["weights"], arrays["input"], arrays["output"])


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "tiles",
            "a thread per weight, an atomic per product",
            with_atomics("classifier_int_tiles", TILE, TILE, "unsigned"),
            requires=atomics_fit(TILE),
        ),
        Rung(
            "single_thread_load",
            "a block per input, one thread loads",
            with_atomics("classifier_int_single_thread_load", 1, ATOMIC_THREADS, "unsigned"),
            requires=atomics_fit(ATOMIC_THREADS),
        ),
        Rung(
            "row_block",
            "a block per output, a whole row in flight",
            _row_block,
            alignment={"weights": 16, "input": 16},
            requires=extents_fit,
        ),
    ),
    peers=(
        Peer("CuPy", _cupy, frameworks.cupy("matmul of int32, a kernel of CuPy's own", "int32")),
        Peer("Triton", _triton, triton_peers.triton("matrix-vector product", "int32")),
    ),
)
