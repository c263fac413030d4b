"""The exercises of the chapter ``book/first-kernel.ipynb``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.exercise import Exercise, at_most
from climb.bench.problem import Argument, Launch, Problem, ceil_div

HERE = Path(__file__).parent
FLOAT = 4
THREADS = 256
#: Threads of a block of add_row: along a row, and down the rows.
WIDE, HIGH = 32, 8

differences = Exercise(
    name="differences",
    problem=Problem(
        name="differences",
        title="Differences of n neighbouring floats",
        size_keys=("n",),
        arguments=(
            Argument("x", "float32", ("n",)),
            Argument("d", "float32", (lambda size: size["n"] - 1,), role="output"),
        ),
        make_inputs=lambda size, rng: {"x": rng.random(size["n"], dtype=np.float32)},
        reference=lambda inputs, size: {"d": inputs["x"][1:] - inputs["x"][:-1]},
        tolerance=lambda size: 0.0,  # one subtraction, rounded as NumPy rounds it
        flops=lambda size: size["n"] - 1,
        bytes=lambda size: FLOAT * (2 * size["n"] - 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("differences", (ceil_div(size["n"], THREADS),), (THREADS,), ("x", "d", np.int32(size["n"]))),
    ),
    # The last thread with work is in the middle of a block, then the last one of a block, then one past a block.
    sizes=({"n": 2}, {"n": 256}, {"n": 257}, {"n": 1000}),
    folder=HERE,
    hints=(
        "The checker names a thread and an access. Which element of `x` does that thread read, and how many elements "
        "does `x` have?",
        "The largest index that a thread uses must be below the size. Here the largest one is not `i`.",
    ),
)

add_row = Exercise(
    name="add_row",
    problem=Problem(
        name="add_row",
        title="Add one row to every row of a matrix",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("x", "float32", ("rows", "cols")),
            Argument("row", "float32", ("cols",)),
            Argument("y", "float32", ("rows", "cols"), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "x": rng.random((size["rows"], size["cols"]), dtype=np.float32),
            "row": rng.random(size["cols"], dtype=np.float32),
        },
        reference=lambda inputs, size: {"y": inputs["x"] + inputs["row"]},
        tolerance=lambda size: 0.0,  # one addition, rounded as NumPy rounds it
        flops=lambda size: size["rows"] * size["cols"],
        bytes=lambda size: FLOAT * (2 * size["rows"] + 1) * size["cols"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "add_row",
            (ceil_div(size["cols"], WIDE), ceil_div(size["rows"], HIGH)),
            (WIDE, HIGH),
            ("x", "row", "y", np.int32(size["rows"]), np.int32(size["cols"])),
        ),
    ),
    sizes=({"rows": 8, "cols": 32}, {"rows": 1, "cols": 1}, {"rows": 21, "cols": 50}, {"rows": 16, "cols": 64}),
    folder=HERE,
    # At the last size every row begins at a sector, so a warp, which is 32 columns of one row, touches four.
    claims=(at_most("global load", 4), at_most("global store", 4)),
    hints=(
        "The grid has two dimensions here. `c` is built from three variables that end in `.x`; compare `r` with it.",
        "Build the row's index from the variables that end in `.y`. A thread has work only if its column and its row "
        "both exist.",
    ),
)
