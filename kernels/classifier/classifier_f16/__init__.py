"""The classifier in plain fp16: weights and input stored as halves, one product, sums and output in float32.

Half the bytes of the ladder ``classifier_tensor``, which waits for them: 206 MB of weights in place of 411. Products
need a third of its operations, on a pipe that is twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cublas, cublaslt, triton_peers
from climb.bench.libraries.choosing import Prepared
from climb.bench.problem import Argument, Launch, Peer, Rung, Size, Tensor, ceil_div
from kernels.classifier.classifier import tuning
from kernels.classifier.classifier.launches import args, extents_fit
from kernels.classifier.classifier.problem import FLOAT
from kernels.classifier.classifier.problem import problem as of_floats
from kernels.classifier.classifier_tensor import BATCH
from kernels.classifier.classifier_tensor.launches import SECOND_THREADS, sums

HALF = 2
#: The kernel's kTileRows, kBatch, kSlabs, kDepth, kStages and kThreads.
ROWS, SAMPLES, SLABS, DEPTH, STAGES, THREADS = 128, 32, 2, 64, 5, 544
BYTES = HALF * STAGES * SLABS * DEPTH * (ROWS + SAMPLES)


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: array.astype(np.float16) for name, array in of_floats.make_inputs(size, rng).items()}


def _bytes(size: Size) -> int:
    outputs, inputs, batch = (size[key] for key in ("outputs", "inputs", "batch"))
    return HALF * inputs * (outputs + batch) + FLOAT * batch * outputs


problem = replace(
    of_floats,
    name="classifier_f16",
    precision="fp16",
    title="Fully connected layer, fp16, batch of 32, on tensor cores",
    arguments=(
        Argument("weights", "float16", ("outputs", "inputs")),
        Argument("input", "float16", ("batch", "inputs")),
        Argument("output", "float32", ("batch", "outputs"), role="output"),
    ),
    make_inputs=_inputs,
    # Products of halves are exact in float32. An instruction adds 16 of them to a sum and truncates, by less than 2^-23
    # of it; truncation has one direction, so errors add up in proportion to the number of instructions.
    tolerance=lambda size: 2.0**-23 * (4 + size["inputs"] / 16),
    bytes=_bytes,
    operations=lambda size: {"tensor": {"f16": of_floats.flops(size)}},
    headline=(BATCH,),
    sweep=(),
    check=(
        {"inputs": 0, "outputs": 3, "batch": 1},
        {"inputs": 8, "outputs": 0, "batch": 2},
        {"inputs": 12, "outputs": 3, "batch": 1},
        {"inputs": 8, "outputs": 1, "batch": 1},
        {"inputs": 1032, "outputs": 5, "batch": 2},
        {"inputs": 200, "outputs": 65, "batch": 9},
        {"inputs": 136, "outputs": 130, "batch": 33},
    ),
)


def _fits(size: Size) -> str | None:
    """Return why the rung refuses a size, or None."""
    if size["inputs"] % 8 or not size["inputs"]:
        return "inputs must be a multiple of 8 and not zero, because rows of a tensor map are multiples of 16 bytes"
    if not size["outputs"] or not size["batch"]:
        return "outputs and batch may not be zero, because a tensor map has at least one row"
    return extents_fit(size)


def _plan(size: Size) -> tuple[int, int]:
    """Pieces of the inputs, and stages of each block: as many pieces as make the tiles a block per SM."""
    stages = max(1, ceil_div(size["inputs"], SLABS * DEPTH))
    tiles = ceil_div(size["outputs"], ROWS) * ceil_div(size["batch"], SAMPLES)
    each = ceil_div(stages, max(1, min(tuning.SMS // max(1, tiles), stages)))
    return ceil_div(stages, each), each


def _launches(size: Size) -> tuple[Launch, ...]:
    """A block for a tile and a piece of the inputs; a second pass, launched early, where there are several pieces."""
    pieces, stages = _plan(size)
    shapes = {"weights": ("outputs", ROWS), "input": ("batch", SAMPLES)}
    maps = (
        Tensor(name, (size[lines], size["inputs"]), (box, DEPTH), "float16", swizzle=128, l2_promotion=128)
        for name, (lines, box) in shapes.items()
    )
    _, _, output, *extents = args(size)
    grid = (ceil_div(size["outputs"], ROWS), pieces, ceil_div(size["batch"], SAMPLES))
    to = output if pieces == 1 else "sums"
    taken = (*maps, to, *extents, np.int32(size["batch"]), np.int32(stages))
    first = Launch("classifier_f16", grid, (THREADS,), taken, BYTES)
    if pieces == 1:
        return (first,)
    n = size["outputs"] * size["batch"]
    last_args = ("sums", "output", np.uint64(n), np.int32(pieces))
    blocks = ceil_div(n, SECOND_THREADS)
    return (first, Launch(f"add_pieces_late<{SECOND_THREADS}>", (blocks,), (SECOND_THREADS,), last_args, pdl=True))


def _cublas(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
    import torch

    weights, given, out = (torch.from_dlpack(arrays[name]) for name in ("weights", "input", "output"))
    return Prepared(lambda: torch.mm(given, weights.t(), out_dtype=torch.float32, out=out))


def _cublaslt(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
    factors = cublaslt.matrix(arrays["input"]), cublaslt.matrix(arrays["weights"], transposed=True)
    return cublaslt.product(*factors, cublaslt.matrix(arrays["output"]), "fp16")


def _triton(arrays: dict[str, Any], size: Size) -> Callable[[], Any]:
    return triton_peers.layer(arrays["weights"], arrays["input"], arrays["output"])


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "slabs",
            "weights stored as halves, multiplied from shared memory",
            _launches,
            alignment={"weights": 16, "input": 16},
            requires=_fits,
            workspace=sums(_plan),
            capability="9.0",
            arch="sm_90a",
        ),
    ),
    peers=(
        Peer("cuBLAS fp16", _cublas, cublas.cublas("torch.mm", "fp16, sums fp32")),
        Peer("cuBLASLt fp16", _cublaslt, cublas.cublas("cublasLtMatmul, heuristics timed", "fp16, sums fp32")),
        Peer("Triton fp16", _triton, triton_peers.triton("matrix product", "fp16, sums fp32")),
    ),
)
