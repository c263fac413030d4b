"""The exercises and exhibits of the chapter on bank conflicts, and a ladder: a transpose through a tile of any pitch.

``climb profile kernels.bank_conflicts.exercises`` counts that ladder on a GPU.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.exercise import Exercise, at_most, exhibit_reader, no_bank_conflicts
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

HERE = Path(__file__).parent
TILE, LINES = 32, 8
COLUMN_ROWS = 64
#: Widths of the tile's rows in floats. A column's words are ``pitch`` words apart, so gcd(pitch, 32) lanes conflict in
#: each bank: 1 (no conflict), 2, 4, 8, 16, 32.
PITCHES = (33, 34, 36, 40, 48, 32)


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _turned(pair: bool) -> Problem:
    """Transpose a matrix of float32, or of pairs of them."""
    last = (lambda size: 2,) if pair else ()

    def inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
        shape = (size["rows"], size["cols"], *((2,) if pair else ()))
        return {"source": rng.random(shape, dtype=np.float32)}

    return Problem(
        name="turned",
        title="Transpose a matrix",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("source", "float32", ("rows", "cols", *last)),
            Argument("target", "float32", ("cols", "rows", *last), "output"),
        ),
        make_inputs=inputs,
        reference=lambda given, size: {"target": np.ascontiguousarray(np.swapaxes(given["source"], 0, 1))},
        tolerance=lambda size: 0.0,  # elements are only moved, so bit-exact
        flops=lambda size: 0,
        bytes=lambda size: (16 if pair else 8) * size["rows"] * size["cols"],
        headline=(),
        check=(),
    )


def _launch(kernel: str, rows_per_tile: int, size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["cols"], TILE), ceil_div(size["rows"], rows_per_tile))
    args = ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))
    return (Launch(kernel, grid, (TILE, LINES), args),)


columns = Exercise(
    name="columns",
    problem=_turned(pair=False),
    launches=lambda size: _launch("columns", COLUMN_ROWS, size),
    sizes=({"rows": 1, "cols": 5}, {"rows": 65, "cols": 33}, {"rows": 128, "cols": 64}),
    folder=HERE,
    claims=(at_most("global store", 4), no_bank_conflicts()),
    hints=(
        "Two rows of the tile lie `kPitch` words apart. In which bank does lane *y* read, and when do two "
        "lanes get the same one?",
        "The banks of a column are multiples of `kPitch`, taken modulo 32. Choose the smallest width above 32 "
        "whose first 32 multiples all differ modulo 32.",
    ),
)

pairs = Exercise(
    name="pairs",
    problem=_turned(pair=True),
    launches=lambda size: _launch("pairs", TILE, size),
    sizes=({"rows": 1, "cols": 5}, {"rows": 33, "cols": 65}, {"rows": 64, "cols": 64}),
    folder=HERE,
    claims=(at_most("global store", 8), no_bank_conflicts()),
    hints=(
        "A `float2` occupies two banks, so a row of 32 elements goes round all banks twice, and 16 lanes are "
        "served at a time. Look at one column: which elements of it share a pair of banks?",
        "`column(y, x)` must give every row its own order, and every column of the tile different places in "
        "neighbouring rows. Combine `x` and `y` by an operation that is its own inverse.",
    ),
)

row_sums = Exercise(
    name="row_sums",
    problem=Problem(
        name="row_sums",
        title="Add up the rows of a matrix",
        size_keys=("rows", "cols"),
        arguments=(Argument("source", "float32", ("rows", "cols")), Argument("sums", "float32", ("rows",), "output")),
        make_inputs=lambda size, rng: {"source": rng.integers(0, 100, (size["rows"], size["cols"])).astype(np.float32)},
        reference=lambda given, size: {"sums": given["source"].astype(np.float64).sum(axis=1).astype(np.float32)},
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact in any order
        flops=lambda size: size["rows"] * size["cols"],
        bytes=lambda size: 4 * size["rows"] * (size["cols"] + 1),
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch(
            "row_sums",
            (ceil_div(size["rows"], TILE),),
            (TILE,),
            ("source", "sums", np.int32(size["rows"]), np.int32(size["cols"])),
        ),
    ),
    sizes=({"rows": 1, "cols": 5}, {"rows": 33, "cols": 65}, {"rows": 64, "cols": 64}),
    folder=HERE,
    claims=(at_most("global load", 4), no_bank_conflicts()),
    hints=(
        "All lanes read the same column `j` of different rows. How far apart are those words, and in which "
        "bank is each?",
        "A sum may be taken in any order. Let each lane start at a different column, and wrap around at the "
        "end of the row.",
    ),
)


def _pitched_launch(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["cols"], TILE), ceil_div(size["rows"], TILE))
    args = ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))
    return (Launch(f"transpose_pitch<{size['pitch']}>", grid, (TILE, LINES), args),)


pitched = Ladder(
    Problem(
        name="pitched",
        title="Transpose through a tile whose rows are pitch floats wide",
        size_keys=("rows", "cols", "pitch"),
        arguments=_turned(pair=False).arguments,
        make_inputs=_turned(pair=False).make_inputs,
        reference=_turned(pair=False).reference,
        tolerance=lambda size: 0.0,  # elements are only moved, so bit-exact
        flops=lambda size: 0,
        bytes=lambda size: 8 * size["rows"] * size["cols"],
        headline=tuple({"rows": 16384, "cols": 16384, "pitch": pitch} for pitch in PITCHES),
        check=tuple({"rows": 31, "cols": 65, "pitch": pitch} for pitch in PITCHES),
        parameters=("pitch",),
    ),
    HERE,
    rungs=(Rung("pitched", "rows of the tile are pitch floats wide", _pitched_launch, source="../exhibits/pitch.cu"),),
)

# Where ``climb profile`` finds it.
ladder = pitched
