"""FMA: 8192 multiply-adds on every float, in registers. Its rate is the ceiling for float32 arithmetic."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
#: Multiply-adds per value; the kernels' kSteps.
STEPS = 8192
#: x <- A x + B. A is just below 1, so a fifth of the start value is left after all steps.
A, B = np.float32(0.9998), np.float32(0.25)
THREADS = 256
CHAINS = 8
#: One block of four warps on each of the H200's 132 SMs: one warp for each scheduler.
ONE_WARP_PER_SCHEDULER = ((132,), (128,))


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The closed form of the recurrence: x_s = a^s x_0 + b (1 - a^s) / (1 - a)."""
    a, b = float(A), float(B)
    power = a**STEPS
    return {"target": power * inputs["source"].astype(np.float64) + b * (1 - power) / (1 - a)}


def _launch(kernel: str, grid: tuple[int, ...], block: tuple[int, ...], size: Size) -> tuple[Launch, ...]:
    return (Launch(kernel, grid, block, ("source", "target", np.uint64(size["n"]), A, B)),)


problem = Problem(
    name="fma",
    title="8192 multiply-adds on each of n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": (1000 * rng.random(size["n"], dtype=np.float32)).astype(np.float32)},
    reference=_reference,
    # Each step rounds by at most 2^-24 of the value, and a^k of that is left k steps later; the sum is 2^-24 / (1 - a).
    tolerance=lambda size: 2.0**-24 / (1 - float(A)),
    flops=lambda size: 2 * STEPS * size["n"],
    bytes=lambda size: 2 * FLOAT * size["n"],
    # Four full waves of the last rung on 132 SMs: 8 blocks of 256 threads with 8 values each on every SM.
    headline=({"n": 4 * 132 * 8 * 256 * 8},),
    check=({"n": 1}, {"n": 100}, {"n": 2049}, {"n": 5000}),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "one_chain",
            "each multiply-add waits for the one before",
            lambda size: _launch("fma_one_chain", *ONE_WARP_PER_SCHEDULER, size),
        ),
        Rung(
            "many_warps",
            "while one warp waits, others issue",
            lambda size: _launch("fma_many_warps", (ceil_div(size["n"], THREADS),), (THREADS,), size),
        ),
        Rung(
            "immediate",
            "two register operands instead of three",
            lambda size: (
                Launch(
                    "fma_immediate",
                    (ceil_div(size["n"], THREADS),),
                    (THREADS,),
                    ("source", "target", np.uint64(size["n"]), B),
                ),
            ),
        ),
        Rung(
            "many_chains",
            "eight independent chains in each thread",
            lambda size: _launch("fma_many_chains", (ceil_div(size["n"], THREADS * CHAINS),), (THREADS,), size),
        ),
    ),
    ceiling="fma_tflop_s",
)
