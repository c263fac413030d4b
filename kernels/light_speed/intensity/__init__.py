"""Intensity: `steps` multiply-adds on each of n floats, from nearly a copy to nearly pure arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256
#: x <- A x + B. The kernels' kA is the same float32.
A, B = np.float32(0.9998), np.float32(0.25)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """The closed form of the recurrence: x_s = a^s x_0 + b (1 - a^s) / (1 - a)."""
    a, b = float(A), float(B)
    power = a ** size["steps"]
    return {"target": power * inputs["source"].astype(np.float64) + b * (1 - power) / (1 - a)}


def _launches(kernel: str, width: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(ceil_div(size["n"], width), THREADS)),)
        args = ("source", "target", np.uint64(size["n"]), np.int32(size["steps"]), B)
        return (Launch(kernel, grid, (THREADS,), args),)

    return launches


problem = Problem(
    name="intensity",
    title="Multiply-adds on each of n floats",
    size_keys=("n", "steps"),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    # Each step rounds by at most 2^-24 of the value, which only grows from step to step.
    tolerance=lambda size: 2.0**-24 * (size["steps"] + 1),
    flops=lambda size: 2 * size["steps"] * size["n"],
    bytes=lambda size: 2 * FLOAT * size["n"],
    # 2^26 floats are 512 MiB in and out, far above the L2 cache; from an eighth of a FLOP per byte to 256.
    headline=({"n": 1 << 26, "steps": 1}, {"n": 1 << 26, "steps": 1024}),
    # Multiples of 64, by which the loops are unrolled, or nearly zero: a remainder loop is another subject.
    sweep=tuple({"n": 1 << 26, "steps": steps} for steps in (4, 64, 128, 256)),
    check=(
        {"n": 1, "steps": 1},
        {"n": 3, "steps": 17},
        {"n": 127, "steps": 2},
        {"n": 1026, "steps": 33},
        {"n": 2049, "steps": 16},
    ),
    parameters=("steps",),
    accepts_empty=True,
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("scalar", "one float per thread", _launches("intensity_scalar", 1)),
        Rung(
            "vectorised",
            "four floats per thread",
            _launches("intensity_vectorised", 4),
            alignment={"source": 16, "target": 16},
        ),
    ),
)
