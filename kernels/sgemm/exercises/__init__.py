"""The exercises of the sgemm worklog, and its exhibit.

``lanes`` and ``rounds`` are kernels to complete, ``judge`` checks a function that chooses the number of parts,
``BETA`` is the source of a kernel that is wrong, ``beta`` a rung that runs it on an output that nothing has written.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict, at_most
from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

HERE = Path(__file__).parent
FLOAT = 4
#: The lanes exercise: the tile of a warp. The rounds exercise: the side of a block's tiles.
LANES_ROWS, LANES_COLS, WARP = 32, 16, 32
TILE = 16
#: The paper exercise: SMs of an H200, parts that are tried, and how full the last wave should be.
SMS, MOST_PARTS, FULL = 132, 16, Fraction(9, 10)

BETA = (HERE / "../exhibits/beta.cu").read_text(encoding="utf-8")


def _product(check: tuple[dict[str, int], ...]) -> Problem:
    return Problem(
        name="product",
        title="Matrix product",
        size_keys=("m", "n", "k"),
        arguments=(
            Argument("A", "float32", ("m", "k")),
            Argument("B", "float32", ("k", "n")),
            Argument("C", "float32", ("m", "n"), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "A": rng.integers(0, 50, (size["m"], size["k"])).astype(np.float32),
            "B": rng.integers(0, 50, (size["k"], size["n"])).astype(np.float32),
        },
        reference=lambda inputs, size: {"C": inputs["A"].astype(np.float64) @ inputs["B"].astype(np.float64)},
        tolerance=lambda size: 0.0,  # sums of products of small whole numbers are exact in any order
        flops=lambda size: 2 * size["m"] * size["n"] * size["k"],
        bytes=lambda size: FLOAT * (size["m"] * size["k"] + size["k"] * size["n"] + size["m"] * size["n"]),
        headline=(),
        check=check,
    )


def _launch(rows: int, cols: int, block: tuple[int, ...]) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (ceil_div(size["n"], cols), ceil_div(size["m"], rows))
        return (Launch("product", grid, block, ("A", "B", "C", *(np.int32(size[key]) for key in ("m", "n", "k")))),)

    return launches


_LANES_SIZES = ({"m": 1, "n": 1, "k": 1}, {"m": 33, "n": 20, "k": 13}, {"m": 64, "n": 32, "k": 16})

lanes = Exercise(
    name="lanes",
    problem=_product(_LANES_SIZES),
    launches=_launch(LANES_ROWS, LANES_COLS, (WARP,)),
    sizes=_LANES_SIZES,
    folder=HERE,
    claims=(at_most("shared load", 2, "wavefronts"),),
    hints=(
        "A 16-byte load is served in groups of lanes, and lanes that read the same address share a word. "
        "Which lanes read the same quad of A, and which the same quad of B?",
        "Number the lanes so that each group of eight covers few different quads in both directions. Let one "
        "bit of the lane's number move down and the next one across, before the others.",
    ),
)

_ROUNDS_SIZES = ({"m": 1, "n": 1, "k": 1}, {"m": 17, "n": 33, "k": 40}, {"m": 48, "n": 48, "k": 64})


def _one_barrier_a_round() -> Claim:
    """Claim that a block passes at most one barrier for each pair of tiles, and one more."""
    size = _ROUNDS_SIZES[-1]
    blocks = ceil_div(size["m"], TILE) * ceil_div(size["n"], TILE)
    limit = blocks * (ceil_div(size["k"], TILE) + 1)

    def test(counters: Any) -> Finding:
        return Finding(0 < counters.barriers <= limit, f"{counters.barriers} barriers")

    return Claim("all blocks together", f"at most {limit}", test)


rounds = Exercise(
    name="rounds",
    problem=_product(_ROUNDS_SIZES),
    launches=_launch(TILE, TILE, (TILE, TILE)),
    sizes=_ROUNDS_SIZES,
    folder=HERE,
    claims=(_one_barrier_a_round(),),
    hints=(
        "What does the second barrier of a round protect, and would it be needed if the next tiles went elsewhere?",
        "Keep two tiles of each matrix and use them in turn. The barrier that completes one pair also proves "
        "that all threads have finished with the pair before it.",
    ),
)


def _beta_launch(size: Size) -> tuple[Launch, ...]:
    m, n, k = (np.int32(size[key]) for key in ("m", "n", "k"))
    args = (m, n, k, np.float32(1), "A", "B", np.float32(0), "C")
    return (Launch("sgemm", (ceil_div(size["n"], TILE), ceil_div(size["m"], TILE)), (TILE, TILE), args),)


beta = Ladder(
    _product(({"m": 8, "n": 8, "k": 8},)),
    HERE,
    (Rung("beta", "C is scaled by zero instead of not being read", _beta_launch, source="../exhibits/beta.cu"),),
)["beta"]


def full(m: int, n: int, rows: int, cols: int, parts: int) -> Fraction:
    """The share of time in which SMs have work: the number of blocks over the number that would fill all waves.

    Each SM holds one block of ``rows`` x ``cols``, and k is cut into ``parts``.
    """
    blocks = ceil_div(m, rows) * ceil_div(n, cols) * parts
    return Fraction(blocks, ceil_div(blocks, SMS) * SMS)


def fewest_parts(m: int, n: int, rows: int, cols: int) -> int:
    """The fewest parts, up to ``MOST_PARTS``, with which SMs have work nine tenths of the time; else the fullest."""
    tried = range(1, MOST_PARTS + 1)
    enough = [parts for parts in tried if full(m, n, rows, cols, parts) >= FULL]
    return enough[0] if enough else max(tried, key=lambda parts: full(m, n, rows, cols, parts))


def judge(answer: Callable[[int, int, int, int], int]) -> Verdict:
    """Compare a reader's function of (m, n, rows, cols) with :func:`fewest_parts`; one line for each product."""
    cases = ((4096, 4096, 128, 256), (1024, 1024, 128, 256), (512, 11008, 128, 256), (32, 4096, 32, 128))
    checks = []
    for case in cases:
        m, n, rows, cols = case
        try:
            right = answer(*case) == fewest_parts(*case)
            wrong = None if right else "another number is right"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        checks.append(Check(f"C of {m} x {n} in tiles of {rows} x {cols}", wrong))
    return Verdict("parts of k", tuple(checks))
