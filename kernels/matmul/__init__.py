"""Matrix product C = A B in float32, row-major. The ladder that coalescing starts and the sgemm worklog finishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kernels.lab import libraries
from kernels.lab.ladder import Ladder
from kernels.lab.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div

FLOAT = 4
BLOCK = 32
MAX_GRID_Y = 65535


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)}


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "A": rng.standard_normal((size["m"], size["k"]), dtype=np.float32),
        "B": rng.standard_normal((size["k"], size["n"]), dtype=np.float32),
    }


problem = Problem(
    name="matmul",
    title="Matrix product, float32",
    size_keys=("m", "n", "k"),
    arguments=(
        Argument("A", "float32", ("m", "k")),
        Argument("B", "float32", ("k", "n")),
        Argument("C", "float32", ("m", "n"), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    # A dot product of k terms rounds k times, by at most 2^-24 of a partial sum; the errors add up like a random walk.
    tolerance=lambda size: 4 * 2.0**-24 * max(1.0, size["k"] ** 0.5),
    flops=lambda size: 2 * size["m"] * size["n"] * size["k"],
    bytes=lambda size: FLOAT * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
    headline=({"m": 4096, "n": 4096, "k": 4096},),
    # A size whose three matrices stay in L2.
    sweep=({"m": 512, "n": 512, "k": 512},),
    check=(
        {"m": 1, "n": 1, "k": 1},
        {"m": 1, "n": 33, "k": 7},
        {"m": 33, "n": 1, "k": 64},
        {"m": 31, "n": 65, "k": 17},
        {"m": 96, "n": 64, "k": 32},
    ),
)


def _args(size: Size) -> tuple[Any, ...]:
    return ("A", "B", "C", *(np.int32(size[key]) for key in ("m", "n", "k")))


def _fits(blocks_down_the_grid: int, what: str) -> str | None:
    if blocks_down_the_grid <= MAX_GRID_Y:
        return None
    return f"{what} may be at most {MAX_GRID_Y * BLOCK}, for the grid has at most {MAX_GRID_Y} blocks in y"


def _torch_product(tf32: bool):
    def prepare(arrays: dict[str, Any], size: Size):
        import torch

        a, b, c = (torch.from_dlpack(arrays[name]) for name in ("A", "B", "C"))

        def enqueue() -> None:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.matmul(a, b, out=c)

        return enqueue

    return prepare


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "naive",
            "neighbouring threads on neighbouring rows",
            "naive.cu",
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
            "coalesced.cu",
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
    ),
    peers=(
        Peer("cuBLAS fp32", _torch_product(tf32=False), libraries.cublas("torch.matmul, cuBLAS's own choice", "fp32")),
        # TF32 rounds each factor to 11 bits: a relative error of 2^-11 for each product, and they average out.
        Peer(
            "cuBLAS TF32",
            _torch_product(tf32=True),
            libraries.cublas("torch.matmul, cuBLAS's own choice", "TF32"),
            tolerance=lambda size: 2.0**-10,
        ),
    ),
)
