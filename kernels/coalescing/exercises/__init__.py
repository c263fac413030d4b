"""The exercises and exhibits of the chapter on coalescing."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.exercise import Exercise, at_most, exhibit_reader
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

HERE = Path(__file__).parent
FLOAT, WARP, THREADS = 4, 32, 256


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


#: A copy that starts ``offset`` floats into its source: a ladder of one rung, so that its accesses can be traced.
shifted = Ladder(
    Problem(
        name="shifted",
        title="Copy from an offset",
        size_keys=("n", "offset"),
        arguments=(
            Argument("source", "float32", (lambda size: size["n"] + size["offset"],)),
            Argument("target", "float32", ("n",), role="output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.random(size["n"] + size["offset"], dtype=np.float32)},
        reference=lambda inputs, size: {"target": inputs["source"][size["offset"] :]},
        tolerance=lambda size: 0.0,  # a copy is bit-exact
        flops=lambda size: 0,
        bytes=lambda size: 2 * FLOAT * size["n"],
        headline=tuple({"n": 1 << 24, "offset": offset} for offset in (0, 1)),
        check=({"n": 1, "offset": 0}, {"n": 33, "offset": 1}, {"n": 1000, "offset": 8}, {"n": 257, "offset": 31}),
        parameters=("n", "offset"),
    ),
    HERE,
    rungs=(
        Rung(
            "shifted",
            "lane i reads element i + offset",
            lambda size: (
                Launch(
                    "copy_shifted",
                    (ceil_div(size["n"], THREADS),),
                    (THREADS,),
                    ("source", "target", np.int32(size["n"]), np.int32(size["offset"])),
                ),
            ),
            source="../exhibits/shifted.cu",
        ),
    ),
)

#: For ``climb profile kernels.coalescing.exercises``.
ladder = shifted


def _lengths(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"squared": (inputs["points"].astype(np.float64) ** 2).sum(axis=0)}


fields = Exercise(
    name="fields",
    problem=Problem(
        name="lengths",
        title="Squared lengths of n points",
        size_keys=("n",),
        arguments=(
            Argument("points", "float32", (lambda size: 3, "n")),
            Argument("squared", "float32", ("n",), "output"),
        ),
        make_inputs=lambda size, rng: {"points": rng.standard_normal((3, size["n"]), dtype=np.float32)},
        reference=_lengths,
        tolerance=lambda size: 3 * 2.0**-24,  # three products and two sums, each rounded at most once
        flops=lambda size: 5 * size["n"],
        bytes=lambda size: 4 * FLOAT * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("lengths", (ceil_div(size["n"], THREADS),), (THREADS,), ("points", "squared", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 333}, {"n": 1000}),
    folder=HERE,
    claims=(at_most("global load", 4), at_most("global store", 4)),
    hints=(
        "In the old layout, x, y and z of one point were neighbours. What are the neighbours of `points[i]` now?",
        "All y begin `n` floats after the first x, and all z begin another `n` floats later. The index of the "
        "point then needs no factor.",
    ),
)

rows = Exercise(
    name="rows",
    problem=Problem(
        name="row_sums",
        title="Add up the rows of a matrix",
        size_keys=("rows", "cols"),
        arguments=(Argument("matrix", "float32", ("rows", "cols")), Argument("sums", "float32", ("rows",), "output")),
        make_inputs=lambda size, rng: {"matrix": rng.integers(0, 100, (size["rows"], size["cols"])).astype(np.float32)},
        reference=lambda inputs, size: {"sums": inputs["matrix"].astype(np.float64).sum(axis=1)},
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact in any order
        flops=lambda size: size["rows"] * size["cols"],
        bytes=lambda size: FLOAT * size["rows"] * (size["cols"] + 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("row_sums", (size["rows"],), (WARP,), ("matrix", "sums", np.int32(size["cols"]))),),
    sizes=({"rows": 1, "cols": 5}, {"rows": 3, "cols": 333}, {"rows": 8, "cols": 1000}),
    folder=HERE,
    claims=(at_most("global load", 4),),
    hints=(
        "In one step of the loop, lane 0 and lane 1 read columns that are `share` apart. Which columns should "
        "they read, to touch as few sectors as possible?",
        "In step `j` the warp should read 32 neighbouring columns. Let the step choose the group of 32, and "
        "the lane the place in it.",
    ),
)
