"""The exercises and exhibits of the chapter on float4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
THREADS = 128
WIDTH = 4


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def requests(kind: str, limit: int) -> Claim:
    """Claim that a launch makes at least one and at most ``limit`` requests of ``kind``."""

    def test(counters: Any) -> Finding:
        made = counters.total(kind).requests
        if not made:
            return Finding(False, f"the kernel makes no {kind}")
        return Finding(made <= limit, f"{made} requests")

    return Claim(kind, f"at most {limit}", test)


#: Five rows of 1001 floats. A row takes 250 quads, or 8 requests of 32 lanes, and at most one request on either side.
_ROWS, _COLS = 5, 1001

rows = Exercise(
    name="rows",
    problem=Problem(
        name="rows_copy",
        title="Copy a matrix row by row",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("source", "float32", ("rows", "cols")),
            Argument("target", "float32", ("rows", "cols"), "output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.random((size["rows"], size["cols"]), dtype=np.float32)},
        reference=lambda given, size: {"target": given["source"]},
        tolerance=lambda size: 0.0,  # a copy is bit-exact
        flops=lambda size: 0,
        bytes=lambda size: 8 * size["rows"] * size["cols"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("rows_copy", (size["rows"],), (THREADS,), ("source", "target", np.int32(size["cols"]))),
    ),
    sizes=(
        {"rows": 3, "cols": 1},
        {"rows": 9, "cols": 3},
        {"rows": 5, "cols": 64},
        {"rows": _ROWS, "cols": _COLS},
    ),
    folder=HERE,
    claims=(requests("global load", 10 * _ROWS), requests("global store", 10 * _ROWS)),
    hints=(
        "A `float4` must lie at a multiple of 16 bytes. How many floats of a row come before the first such "
        "multiple, if the row begins at float `row`?",
        "Split the row into a head of zero to three floats, as many float4 as fit, and a tail. Head and tail "
        "are short enough for the first threads of the block, one float each. Mind rows that are shorter than "
        "their head.",
    ),
)


def _pixels(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(ceil_div(size["n"], WIDTH), THREADS),)
    return (Launch("pixels", grid, (THREADS,), ("source", "target", np.uint64(size["n"]))),)


pixels = Exercise(
    name="pixels",
    problem=Problem(
        name="pixels",
        title="Bytes to floats",
        size_keys=("n",),
        arguments=(Argument("source", "uint8", ("n",)), Argument("target", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"source": rng.integers(0, 256, size["n"], dtype=np.uint8)},
        reference=lambda given, size: {"target": given["source"] * np.float32(0.5)},
        tolerance=lambda size: 0.0,  # halves of bytes are exact
        flops=lambda size: size["n"],
        bytes=lambda size: 5 * size["n"],
        headline=(),
        check=(),
    ),
    launches=_pixels,
    sizes=({"n": 1}, {"n": 6}, {"n": 515}, {"n": 4099}),
    folder=HERE,
    # 1024 quads are 32 requests of 32 lanes, and the tail is one more.
    claims=(requests("global load", 33), requests("global store", 33)),
    hints=(
        "Which types hold four neighbouring pixels on each side, and what alignment do they need?",
        "Let thread *i* load the *i*-th `uchar4` and store the *i*-th `float4`. Up to three pixels remain, "
        "and the first threads can take them.",
    ),
)
