"""Occupancy and arithmetic: multiply-adds with more or fewer warps on an SM, and more or fewer chains per thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.toolchain.occupancy import refusal

FLOAT = 4
#: Multiply-adds per value; the kernels' kSteps. x <- A x + B; the kernels' kA is the same float32.
STEPS = 4096
A, B = np.float32(0.9998), np.float32(0.25)
#: Four full waves of 2048 threads with 8 values each on the H200's 132 SMs.
N = 4 * 132 * 2048 * 8
#: Threads per block and bytes of dynamic shared memory per block. The kernels do not use that memory; it only keeps
#: further blocks off an SM of compute capability 9.0, which then holds 16, 9, 4, 2 or 1 block of 4 warps.
LIMITED = tuple((128, shared) for shared in (0, 24 << 10, 48 << 10, 100 << 10, 200 << 10))


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The closed form of the recurrence: x_s = a^s x_0 + b (1 - a^s) / (1 - a)."""
    a, b = float(A), float(B)
    power = a**STEPS
    return {"target": power * inputs["source"].astype(np.float64) + b * (1 - power) / (1 - a)}


def demand(size: Size) -> str | None:
    """Return why a block of this size cannot be launched, or None."""
    return refusal(size["threads"], size["shared"])


def _launches(kernel: str, chains: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        # Groups of 32 threads, each with its own run of the array: the last group must be whole.
        groups = max(1, ceil_div(size["n"], 32 * chains))
        grid = (ceil_div(32 * groups, size["threads"]),)
        args = ("source", "target", np.uint64(size["n"]), B)
        return (Launch(kernel, grid, (size["threads"],), args, shared_mem=size["shared"]),)

    return launches


def _rung(name: str, idea: str, chains: int) -> Rung:
    return Rung(name, idea, _launches(f"fma_{name}", chains), requires=demand)


def _size(threads: int, shared: int, n: int = N) -> dict[str, int]:
    return {"n": n, "threads": threads, "shared": shared}


problem = Problem(
    name="occupancy_fma",
    title=f"{STEPS} multiply-adds on each of n floats, with a given block size and shared memory",
    size_keys=("n", "threads", "shared"),
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
    headline=(_size(*LIMITED[0]), _size(*LIMITED[-1])),
    sweep=tuple(_size(*limits) for limits in LIMITED[1:-1]),
    check=tuple(_size(threads, shared, n) for n, threads, shared in ((3001, 128, 200 << 10), (100, 33, 100))),
    parameters=("threads", "shared"),
    may_be_zero=("shared",),
    accepts_empty=True,
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("chains_1", "one chain per thread", 1),
        _rung("chains_2", "two chains", 2),
        _rung("chains_4", "four chains", 4),
        _rung("chains_8", "eight chains", 8),
        _rung("chains_48", "48 chains: registers limit the warps", 48),
        _rung("capped_48", "48 chains in 32 registers", 48),
    ),
)
