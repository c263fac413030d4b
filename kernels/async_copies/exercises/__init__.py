"""The exercises and exhibits of the chapter on asynchronous copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.exercise import Exercise, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size

HERE = Path(__file__).parent
#: Where kernels of this chapter find ``hopper/tma.cuh``.
HEADERS = (f"-I{HERE.parents[1] / 'common'}",)
#: Threads of a block of the first two exercises, and floats that a chunk of the first has.
THREADS, CHUNK = 128, 512
#: Blocks of a cluster, one warp each.
CLUSTER, WARP = 4, 32

#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _moved(name: str, title: str, result: str) -> Problem:
    """y is x, doubled or reversed: exact, element for element."""
    return Problem(
        name=name,
        title=title,
        size_keys=("n",),
        arguments=(Argument("x", "float32", ("n",)), Argument("y", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"x": rng.random(size["n"], dtype=np.float32)},
        reference=lambda given, size: {"y": 2 * given["x"] if result == "doubled" else given["x"][::-1].copy()},
        tolerance=lambda size: 0.0,  # doubling and moving are exact
        flops=lambda size: 0,
        bytes=lambda size: 8 * size["n"],
        headline=(),
        check=(),
    )


def _ring(size: Size) -> tuple[Launch, ...]:
    return (Launch("ring", (1,), (THREADS,), ("x", "y", np.int32(size["n"] // CHUNK))),)


def _reversed(size: Size) -> tuple[Launch, ...]:
    return (Launch("reversed", (size["n"] // THREADS,), (THREADS,), ("x", "y", np.int32(size["n"]))),)


def _row_max(size: Size) -> tuple[Launch, ...]:
    return (Launch("row_max", (CLUSTER * size["rows"],), (WARP,), ("x", "y", np.int32(size["cols"]))),)


ring = Exercise(
    name="ring",
    problem=_moved("ring", "Double n floats", "doubled"),
    launches=_ring,
    sizes=({"n": CHUNK}, {"n": 8 * CHUNK}),
    folder=HERE,
    options=HEADERS,
    hints=(
        "A barrier's first phase has parity 0, the next one parity 1. How often has the barrier of a slot been used "
        "before the chunk that you wait for?",
        "Count the rounds of the ring, not the chunks. And before thread 0 starts a copy into a slot, every thread "
        "must have taken its `float4` out of it.",
    ),
)

reversed_chunk = Exercise(
    name="reversed",
    problem=_moved("reversed", "Reverse n floats", "reversed"),
    launches=_reversed,
    sizes=({"n": THREADS}, {"n": 4 * THREADS}),
    folder=HERE,
    options=HEADERS,
    hints=(
        "`hopper/tma.cuh` has a fence for what threads wrote and the copy engine reads. Which threads have written?",
        "Every writing thread needs the fence, before the barrier behind which one thread starts the store. That "
        "thread must also wait, not until the store is done, but until the engine has read its source.",
    ),
)

row_max = Exercise(
    name="row_max",
    problem=Problem(
        name="row_max",
        title="The largest element of each row",
        size_keys=("rows", "cols"),
        arguments=(Argument("x", "float32", ("rows", "cols")), Argument("y", "float32", ("rows",), "output")),
        make_inputs=lambda size, rng: {"x": rng.random((size["rows"], size["cols"]), dtype=np.float32)},
        reference=lambda given, size: {"y": given["x"].max(axis=1)},
        tolerance=lambda size: 0.0,  # one of the elements, bit-exact
        flops=lambda size: 0,
        bytes=lambda size: 4 * size["rows"] * (size["cols"] + 1),
        headline=(),
        check=(),
    ),
    launches=_row_max,
    sizes=({"rows": 1, "cols": 5}, {"rows": 3, "cols": 300}),
    folder=HERE,
    options=HEADERS,
    hints=(
        "Each block has an array `parts` of its own. `at_rank(parts, 0)` is the address of the one that block 0 has.",
        "`__syncthreads` waits for the threads of one block. Block 0 needs the stores of four, so all threads of the "
        "cluster must meet.",
    ),
)
