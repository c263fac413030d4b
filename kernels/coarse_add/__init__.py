"""z = x + y with 1 to 16 elements a thread: no work is redundant, so what can coarsening save?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernels.lab.ladder import Ladder
from kernels.lab.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256
OUTPUTS = (1, 2, 4, 8, 16)


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {name: rng.random(size["n"], dtype=np.float32) for name in ("x", "y")}


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"z": inputs["x"].astype(np.float64) + inputs["y"]}


def _sweep(n: int) -> tuple[Size, ...]:
    return tuple({"n": n, "outputs": outputs} for outputs in OUTPUTS)


problem = Problem(
    name="coarse_add",
    title="z = x + y on n floats, some outputs a thread",
    size_keys=("n", "outputs"),
    arguments=(
        Argument("x", "float32", ("n",)),
        Argument("y", "float32", ("n",)),
        Argument("z", "float32", ("n",), role="output"),
    ),
    make_inputs=_inputs,
    reference=_reference,
    tolerance=lambda size: 2.0**-24,  # one rounding
    flops=lambda size: size["n"],
    bytes=lambda size: 3 * FLOAT * size["n"],
    # 192 MiB in three arrays, three times the L2 cache.
    headline=_sweep(1 << 24),
    # Four blocks of one output a thread: all that is timed is a launch.
    sweep=_sweep(1 << 10),
    check=(
        {"n": 1, "outputs": 1},
        {"n": 127, "outputs": 2},
        {"n": 1024, "outputs": 4},
        {"n": 4099, "outputs": 16},
        {"n": 10007, "outputs": 8},
    ),
    parameters=("outputs",),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    return None if size["outputs"] in OUTPUTS else f"outputs may be {', '.join(map(str, OUTPUTS))}"


def _launches(name: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], THREADS * size["outputs"])),)
        args = ("x", "y", "z", np.uint64(size["n"]))
        return (Launch(f"coarse_add_{name}<{size['outputs']}>", grid, (THREADS,), args),)

    return launches


def _rung(name: str, idea: str) -> Rung:
    return Rung(name, idea, f"{name}.cu", _launches(name), requires=_requires)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("neighbours", "a thread's outputs side by side"),
        _rung("strided", "a thread's outputs a block apart"),
    ),
)
