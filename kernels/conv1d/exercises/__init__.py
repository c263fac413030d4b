"""The exercises and exhibits of the chapter on the 1D convolution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, at_most, exhibit_reader
from climb.bench.machine_code import opcode_counts
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
FLOAT, WARP, THREADS, TAPS, COLUMNS = 4, 32, 64, 5, 4
SHUFFLES = 6


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def reader() -> str:
    """The text of ``conv1d_reader.cu``: its loads stay together only if the compiler may use the registers for it."""
    return (HERE / "../exhibits/reader.cu").read_text(encoding="utf-8")


def _no_barrier() -> Claim:
    def test(counters: Any) -> Finding:
        return Finding(not counters.barriers, f"{counters.barriers} barriers")

    return Claim("barriers of the block", "none", test)


def _few_shuffles(compiled: Any) -> Finding:
    found = sum(opcode_counts(compiled, [compiled.lowered("column_sums")], "SHFL").values())
    return Finding(found <= SHUFFLES, f"{found} shuffles")


def _weighed(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"values": inputs["filters"].astype(np.float64) @ np.arange(1, TAPS + 1)}


filters = Exercise(
    name="filters",
    problem=Problem(
        name="weigh",
        title="The taps of n filters, weighed",
        size_keys=("n",),
        arguments=(
            Argument("filters", "float32", ("n", lambda size: TAPS)),
            Argument("values", "float32", ("n",), "output"),
        ),
        make_inputs=lambda size, rng: {"filters": rng.standard_normal((size["n"], TAPS), dtype=np.float32)},
        reference=_weighed,
        tolerance=lambda size: 10 * 2.0**-24,  # five products, added up
        flops=lambda size: 2 * TAPS * size["n"],
        bytes=lambda size: FLOAT * (TAPS + 1) * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("weigh", (ceil_div(size["n"], THREADS),), (THREADS,), ("filters", "values", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 77}, {"n": 256}),
    folder=HERE,
    claims=(at_most("global load", 4), _no_barrier()),
    hints=(
        "The five taps of a filter are neighbours, so two lanes load floats that are five apart. Which floats "
        "could the 32 lanes load in one request instead?",
        "The warp's 32 filters are 160 neighbouring floats. Load them in five coalesced steps into an array "
        "of shared memory that belongs to this warp, synchronise the warp, and let each lane read its own "
        "filter there.",
    ),
)

fold = Exercise(
    name="fold",
    problem=Problem(
        name="column_sums",
        title="Sums of four columns by each warp",
        size_keys=("warps",),
        arguments=(
            Argument("source", "float32", ("warps", lambda size: WARP, lambda size: COLUMNS)),
            Argument("sums", "float32", ("warps", lambda size: COLUMNS), "output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.random((size["warps"], WARP, COLUMNS), dtype=np.float32)},
        reference=lambda inputs, size: {"sums": inputs["source"].sum(axis=1, dtype=np.float64)},
        tolerance=lambda size: 5 * 2.0**-24,  # five additions on the way, all terms positive
        flops=lambda size: size["warps"] * COLUMNS * (WARP - 1),
        bytes=lambda size: FLOAT * size["warps"] * COLUMNS * (WARP + 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("column_sums", (size["warps"],), (WARP,), ("source", "sums")),),
    sizes=({"warps": 1}, {"warps": 3}),
    folder=HERE,
    builds=(Claim("machine code", f"at most {SHUFFLES}", _few_shuffles),),
    hints=(
        "After the first exchange, two lanes hold the same four sums. What does the second of them still contribute?",
        "In each of the first two steps, let a lane give away half of its columns and keep the other half: "
        "two shuffles, then one. Then one column is left in each lane, and three more shuffles finish it.",
    ),
)

padding = Exercise(
    name="padding",
    problem=Problem(
        name="row_sums",
        title="Sums of 32 rows",
        size_keys=("l",),
        arguments=(
            Argument("rows", "float32", (lambda size: WARP, "l")),
            Argument("sums", "float32", (lambda size: WARP,), "output"),
        ),
        make_inputs=lambda size, rng: {"rows": rng.random((WARP, size["l"]), dtype=np.float32)},
        reference=lambda inputs, size: {"sums": inputs["rows"].sum(axis=1, dtype=np.float64)},
        tolerance=lambda size: size["l"] * 2.0**-24,  # all terms are positive
        flops=lambda size: WARP * size["l"],
        bytes=lambda size: FLOAT * WARP * (size["l"] + 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch(f"row_sums<{size['l']}>", (1,), (WARP,), ("rows", "sums")),),
    sizes=({"l": 8}, {"l": 6}, {"l": 10}),
    folder=HERE,
    hints=(
        "With rows of 6 floats, four neighbouring floats may belong to two rows. Where does the unused float "
        "between those rows go?",
        "The offset `i / kLength` is computed for the first float of the four alone. Compute the place of "
        "each of the four floats separately.",
    ),
)
