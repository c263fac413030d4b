"""The exercises and exhibits of the chapter on divergence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, at_most, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
THREADS = 256
#: In the second exercise, one element in this many needs work.
RARE = 16


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def undivided() -> Claim:
    """Claim that no branch diverges."""

    def test(counters: Any) -> Finding:
        return Finding(not counters.divergent_branches, f"{counters.divergent_branches} branches diverge")

    return Claim("branches", "none diverges", test)


def lanes_busy(least: float) -> Claim:
    """Claim that the lane efficiency over all instructions is at least ``least``."""

    def test(counters: Any) -> Finding:
        found = counters.lane_efficiency
        return Finding(found >= least, f"{found:.2f}")

    return Claim("lane efficiency", f"at least {least:g}", test)


def _problem(name: str, title: str, make: Callable[..., Any], reference: Callable[[np.ndarray], np.ndarray]) -> Problem:
    return Problem(
        name=name,
        title=title,
        size_keys=("n",),
        arguments=(Argument("source", "float32", ("n",)), Argument("target", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"source": make(size["n"], rng)},
        reference=lambda given, size: {"target": reference(given["source"].astype(np.float64))},
        tolerance=lambda size: 2.0**-20,  # each iteration halves the error so far
        flops=lambda size: 0,
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    )


def _launch(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        args = ("source", "target", np.int32(size["n"]))
        return (Launch(kernel, (ceil_div(size["n"], THREADS),), (THREADS,), args),)

    return launches


def _iterated(v: np.ndarray, steps: int, b: float) -> np.ndarray:
    for _ in range(steps):
        v = 0.5 * v + b
    return v


def _alternating(v: np.ndarray) -> np.ndarray:
    even = np.arange(v.size) % 2 == 0
    return np.where(even, _iterated(v, 64, 1.0), _iterated(v, 64, -1.0))


def _rare(n: int, rng: np.random.Generator) -> np.ndarray:
    """Values of which about one in RARE is positive, and always the first."""
    values = rng.random(n, dtype=np.float32) + np.float32(0.5)
    busy = rng.integers(0, RARE, n) == 0
    busy[:1] = True
    return np.where(busy, values, -values).astype(np.float32)


alternating = Exercise(
    name="alternating",
    problem=_problem(
        "alternating",
        "Two kinds of elements in turn",
        lambda n, rng: rng.random(n, dtype=np.float32),
        _alternating,
    ),
    launches=_launch("alternating"),
    sizes=({"n": 1}, {"n": 300}, {"n": 1024}),
    folder=HERE,
    claims=(undivided(), at_most("global load", 8), at_most("global store", 8)),
    hints=(
        "Whether an element is even decides its branch. Which threads form a warp, and which elements do they "
        "take now?",
        "Let the first half of the block's threads take the even elements, and the second half the odd ones. "
        "Both halves are whole warps.",
    ),
)

few = Exercise(
    name="few",
    problem=_problem(
        "few",
        "Work for few elements",
        _rare,
        lambda v: np.where(v > 0, _iterated(v, 200, 1.0), 0.0),
    ),
    launches=_launch("few"),
    sizes=({"n": 1}, {"n": 700}, {"n": 2048}),
    folder=HERE,
    claims=(lanes_busy(0.5),),
    hints=(
        "Lanes wait because the busy elements are scattered over all warps. What must be known before they "
        "can be dealt out without gaps?",
        "Count in shared memory: each busy element takes the next place of a list by an atomic, and stores "
        "its index there. After a barrier, thread *t* works on entry *t*. Idle elements are stored at once.",
    ),
)
