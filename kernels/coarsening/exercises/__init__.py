"""The exercises of the chapter on coarsening, and its exhibit.

``spread`` and ``window`` are kernels to complete, ``most_outputs`` answers the exercise on paper, and ``PAIRS`` is the
source of a kernel that is coarsened in the wrong direction.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, at_most
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
FLOAT = 4
#: The exhibit: two neighbouring elements per thread.
PAIRS = (HERE / "../exhibits/pairs.cu").read_text(encoding="utf-8")
#: The kernels' kThreads and kOut in spread, and kTaps and kOut in window, whose blocks are ACROSS x DOWN threads.
SPREAD_THREADS, SPREAD_OUT = 128, 4
TAPS, WINDOW_OUT, ACROSS, DOWN = 7, 8, 32, 2


def most_outputs(edge: int, sms: int, tile: int = 32, warps: int = 8, most: int = 32) -> int:
    """The most outputs per thread, a power of two up to ``most``, with which every SM has a block.

    The outputs are edge x edge. A block of ``warps`` warps computes ``tile`` across and ``warps * outputs`` down.
    """
    counts = [1 << power for power in range(most.bit_length())]
    enough = [o for o in counts if ceil_div(edge, tile) * ceil_div(edge, warps * o) >= sms]
    return max(enough, default=1)


def _spread_launch(size: Size) -> tuple[Launch, ...]:
    blocks = max(1, ceil_div(size["n"], SPREAD_THREADS * SPREAD_OUT))
    return (Launch("spread", (blocks,), (SPREAD_THREADS,), ("x", "y", "z", np.int32(size["n"]))),)


_SPREAD_SIZES: tuple[dict[str, int], ...] = ({"n": 1}, {"n": 513}, {"n": 1030}, {"n": 4096})

spread = Exercise(
    name="spread",
    problem=Problem(
        name="spread",
        title="z = x + y",
        size_keys=("n",),
        arguments=(
            Argument("x", "float32", ("n",)),
            Argument("y", "float32", ("n",)),
            Argument("z", "float32", ("n",), role="output"),
        ),
        make_inputs=lambda size, rng: {name: rng.random(size["n"], dtype=np.float32) for name in ("x", "y")},
        reference=lambda inputs, size: {"z": inputs["x"].astype(np.float64) + inputs["y"]},
        tolerance=lambda size: 2.0**-24,  # one rounding
        flops=lambda size: size["n"],
        bytes=lambda size: 3 * FLOAT * size["n"],
        headline=(),
        check=_SPREAD_SIZES,
    ),
    launches=_spread_launch,
    sizes=_SPREAD_SIZES,
    folder=HERE,
    claims=(at_most("global load", 4), at_most("global store", 4)),
    hints=(
        "For one value of `o`, compare the elements of lane 0 and lane 1. How many floats lie between them?",
        "Neighbouring lanes should take neighbouring elements. Let the elements of one thread lie a whole "
        "block of threads apart.",
    ),
)


def _window_launch(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["cols"], ACROSS), ceil_div(size["rows"], DOWN * WINDOW_OUT))
    args = ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))
    return (Launch("window", grid, (ACROSS, DOWN), args),)


def _window_reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    below = np.pad(inputs["source"].astype(np.float64), ((0, TAPS - 1), (0, 0)))
    return {"target": sum((below[t : t + size["rows"]] for t in range(TAPS)), np.zeros(1))}


def _each_float_once() -> Claim:
    """Claim that a thread loads each float of its column once: kOut + kTaps - 1 for kOut outputs."""
    last = _WINDOW_SIZES[-1]
    limit = last["rows"] // WINDOW_OUT * (WINDOW_OUT + TAPS - 1) * last["cols"]

    def test(counters: Any) -> Finding:
        found = counters.total("global load").lanes
        each = found / (last["rows"] * last["cols"])
        return Finding(0 < found <= limit, f"{each:.3g} floats for each output")

    each = (WINDOW_OUT + TAPS - 1) / WINDOW_OUT
    return Claim("global load", f"at most {each:g}", test)


_WINDOW_SIZES: tuple[dict[str, int], ...] = (
    {"rows": 1, "cols": 3},
    {"rows": 29, "cols": 40},
    {"rows": 64, "cols": 64},
)

window = Exercise(
    name="window",
    problem=Problem(
        name="window",
        title="Sums of seven rows",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("source", "float32", ("rows", "cols")),
            Argument("target", "float32", ("rows", "cols"), role="output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.integers(0, 100, (size["rows"], size["cols"])).astype(np.float32)},
        reference=_window_reference,
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact in any order
        flops=lambda size: (TAPS - 1) * size["rows"] * size["cols"],
        bytes=lambda size: 2 * FLOAT * size["rows"] * size["cols"],
        headline=(),
        check=_WINDOW_SIZES,
    ),
    launches=_window_launch,
    sizes=_WINDOW_SIZES,
    folder=HERE,
    claims=(_each_float_once(),),
    hints=(
        "The windows of two neighbouring outputs share six of seven rows. How many different rows does a "
        "thread need for all its outputs?",
        "Loop over the rows on the outside and over the outputs on the inside: load a float once, and add it "
        "to each of the `kOut` sums whose window contains that row.",
    ),
)
