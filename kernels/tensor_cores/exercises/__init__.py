"""The exercises of the chapter on tensor cores.

``swizzle`` is a kernel to complete, ``judge`` checks a function that says who holds a sum.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.exercise import Check, Exercise, Verdict, at_most, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size

HERE = Path(__file__).parent
#: A tile of the swizzle exercise, and the sums of an instruction of the paper exercise.
ROWS, HALVES = 32, 64
SUM_ROWS, SUM_COLS = 16, 8
EXHIBITS = HERE.parent / "exhibits"
#: Reads the source of an exhibit of the chapter by its name.
exhibit = exhibit_reader(__file__)

_SIZES = ({"tiles": 1}, {"tiles": 3})


def _launches(size: Size) -> tuple[Launch, ...]:
    return (Launch("fragments", (size["tiles"],), (32,), ("from", "to")),)


swizzle = Exercise(
    name="swizzle",
    problem=Problem(
        name="fragments",
        title="Rows of halves through shared memory",
        size_keys=("tiles",),
        arguments=(
            Argument("from", "float16", (lambda size: ROWS * size["tiles"], lambda size: HALVES)),
            Argument("to", "float16", (lambda size: ROWS * size["tiles"], lambda size: HALVES), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "from": rng.integers(-99, 99, (ROWS * size["tiles"], HALVES)).astype(np.float16)
        },
        reference=lambda inputs, size: {"to": inputs["from"].astype(np.float64)},
        tolerance=lambda size: 0.0,  # bits are only moved
        flops=lambda size: 0,
        bytes=lambda size: 4 * ROWS * HALVES * size["tiles"],
        headline=(),
        check=_SIZES,
    ),
    launches=_launches,
    sizes=_SIZES,
    folder=HERE,
    claims=(at_most("shared load", 4, "wavefronts"),),
    hints=(
        "ldmatrix reads one 8 x 8 matrix at a time: 16 bytes from each of eight rows. A row of the tile has 128 bytes, "
        "as many as there are bytes in all banks. In which banks do the eight pieces lie?",
        "Rows may lie as they are if each moves its pieces differently. A bijection of 0 to 7 that differs "
        "for each of eight rows is an exclusive or with the number of the row.",
    ),
)


def holder(row: int, col: int) -> tuple[int, int]:
    """The lane, and which of its four registers, that has a sum of ``mma.sync.m16n8k16``."""
    return row % 8 * 4 + col // 2, row // 8 * 2 + col % 2


def judge(answer: Callable[[int, int], tuple[int, int]]) -> Verdict:
    """Compare a reader's function of (row, col) with :func:`holder`; a line for each quarter of the sums."""
    checks = []
    for first in range(0, SUM_ROWS, 8):
        for odd in (0, 1):
            places = [(row, col) for row in range(first, first + 8) for col in range(odd, SUM_COLS, 2)]
            try:
                missed = [place for place in places if tuple(answer(*place)) != holder(*place)]
                wrong = f"the sum at {missed[0]} is held elsewhere" if missed else None
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
            checks.append(Check(f"rows {first} to {first + 7}, {('even', 'odd')[odd]} columns", wrong))
    return Verdict("who holds a sum", tuple(checks))
