"""Integer: 4096 multiply-adds on every 32-bit integer, in registers. Its rate is the ceiling for integer products."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

WORD = 4
#: Multiply-adds per value; the kernels' kSteps.
STEPS = 4096
#: x <- A x + B modulo 2^32, the linear congruential generator of "Numerical Recipes".
A, B = np.uint32(1664525), np.uint32(1013904223)
THREADS = 256
CHAINS = 8


def _after(steps: int) -> tuple[int, int]:
    """Factor and summand of that many steps at once, modulo 2^32."""
    factor, summand = 1, 0
    for _ in range(steps):
        factor, summand = factor * int(A) % 2**32, (summand * int(A) + int(B)) % 2**32
    return factor, summand


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    factor, summand = _after(STEPS)
    return {"target": inputs["source"] * np.uint32(factor) + np.uint32(summand)}


def _launch(kernel: str, per_thread: int, size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], THREADS * per_thread),)
    return (Launch(kernel, grid, (THREADS,), ("source", "target", np.uint64(size["n"]), A, B)),)


problem = Problem(
    name="integer",
    title="4096 multiply-adds on each of n integers",
    size_keys=("n",),
    arguments=(
        Argument("source", "uint32", ("n",)),
        Argument("target", "uint32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.integers(0, 2**32, size["n"], dtype=np.uint32)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # exact, modulo 2^32
    flops=lambda size: 2 * STEPS * size["n"],
    bytes=lambda size: 2 * WORD * size["n"],
    # Four full waves of the last rung on 132 SMs: 8 blocks of 256 threads with 8 values each on every SM.
    headline=({"n": 4 * 132 * 8 * 256 * 8},),
    check=({"n": 1}, {"n": 100}, {"n": 2049}),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("one_chain", "one value per thread", lambda size: _launch("integer_one_chain", 1, size)),
        Rung("many_chains", "eight independent chains", lambda size: _launch("integer_many_chains", CHAINS, size)),
    ),
    ceiling="int32_top_s",
)
