"""The exercises of the chapter on tiling, and its exhibits.

``halo`` and ``column`` are kernels to complete, ``judge`` checks tile widths worked out on paper, and
``exhibit(name)`` is the source of a kernel that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div
from climb.bench.references import correlate

HERE = Path(__file__).parent
FLOAT = 4
WARP = 32
#: The halo exercise: side of the tile, radius. The column exercise: side of the tile, rows of threads.
HALO_TILE, RADIUS = 16, 2
TILE, ROWS = 32, 8


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _halo_launch(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["cols"], HALO_TILE), ceil_div(size["rows"], HALO_TILE))
    args = ("source", "target", np.int32(size["rows"]), np.int32(size["cols"]))
    return (Launch("neighbours", grid, (HALO_TILE, HALO_TILE), args),)


_HALO_SIZES: tuple[dict[str, int], ...] = ({"rows": 1, "cols": 5}, {"rows": 33, "cols": 50}, {"rows": 48, "cols": 48})


def _each_float_once() -> Claim:
    """Claim that a block loads each float of its tile and halo once, in as few requests as a loop over all threads."""
    wide = HALO_TILE + 2 * RADIUS
    blocks = ceil_div(_HALO_SIZES[-1]["rows"], HALO_TILE) * ceil_div(_HALO_SIZES[-1]["cols"], HALO_TILE)
    limit = blocks * ceil_div(wide * wide, WARP)

    def test(counters: Any) -> Finding:
        found = counters.total("global load").requests
        return Finding(found <= limit, f"{found} requests")

    return Claim("global load", f"at most {limit}", test)


halo = Exercise(
    name="halo",
    problem=Problem(
        name="neighbours",
        title="Sum of the 5 x 5 floats around each element",
        size_keys=("rows", "cols"),
        arguments=(
            Argument("source", "float32", ("rows", "cols")),
            Argument("target", "float32", ("rows", "cols"), role="output"),
        ),
        make_inputs=lambda size, rng: {"source": rng.integers(0, 100, (size["rows"], size["cols"])).astype(np.float32)},
        reference=lambda inputs, size: {
            "target": correlate(inputs["source"], np.ones((2 * RADIUS + 1, 2 * RADIUS + 1), np.float32))
        },
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact in any order
        flops=lambda size: (2 * RADIUS + 1) ** 2 * size["rows"] * size["cols"],
        bytes=lambda size: 2 * FLOAT * size["rows"] * size["cols"],
        headline=(),
        check=_HALO_SIZES,
    ),
    launches=_halo_launch,
    sizes=_HALO_SIZES,
    folder=HERE,
    claims=(_each_float_once(),),
    hints=(
        "How many floats does the tile hold, and how many threads are there to load them?",
        "Turn the block into a loop: each thread takes the float with its own number, and then goes on by the "
        "number of threads until the tile is full.",
    ),
)


def _column_launch(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], TILE), ceil_div(size["m"], TILE))
    args = ("A", "B", "C", *(np.int32(size[key]) for key in ("m", "n", "k")))
    return (Launch("product", grid, (TILE, ROWS), args),)


_COLUMN_SIZES: tuple[dict[str, int], ...] = (
    {"m": 1, "n": 1, "k": 1},
    {"m": 33, "n": 20, "k": 45},
    {"m": 64, "n": 64, "k": 64},
)


def _five_for_four() -> Claim:
    """Claim that a thread loads 5 floats from shared memory for 4 products: 4 of A and 1 of B."""
    size, out = _COLUMN_SIZES[-1], TILE // ROWS
    limit = size["m"] * size["n"] * size["k"] // WARP // out * (out + 1)

    def test(counters: Any) -> Finding:
        found = counters.total("shared load").requests
        return Finding(0 < found <= limit, f"{found} requests")

    return Claim("shared load", f"at most {limit}", test)


column = Exercise(
    name="column",
    problem=Problem(
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
        check=_COLUMN_SIZES,
    ),
    launches=_column_launch,
    sizes=_COLUMN_SIZES,
    folder=HERE,
    claims=(_five_for_four(),),
    hints=(
        "For one `k`, which of the two factors is the same for all outputs of a thread?",
        "Make the loop over `k` the outer one. Read the float of `b` into a register once, and use it for "
        "every output.",
    ),
)


def stencil_tile(radius: int, percent: int) -> int:
    """The narrowest square tile of a 2D stencil that loads at most ``percent`` per cent more floats than it has
    outputs: the least T with (T + 2 radius)^2 <= (1 + percent / 100) T^2."""
    allowed = 1 + Fraction(percent, 100)
    tile = 1
    while (tile + 2 * radius) ** 2 > allowed * tile**2:
        tile += 1
    return tile


def product_tile(gflops: int, gb_s: int) -> int:
    """The narrowest square tile of a float32 matrix product whose loads keep up with its FLOPs: 2 T^2 FLOPs and 2 T
    floats per step of k, so T / 4 FLOPs per byte, which must be at least gflops / gb_s."""
    return ceil_div(4 * gflops, gb_s)


def judge(stencil: Callable[[int, int], int], product: Callable[[int, int], int]) -> Verdict:
    """Compare a reader's two functions with :func:`stencil_tile` and :func:`product_tile`; one line for each."""
    tried = (
        ("the stencil's tile", stencil, stencil_tile, ((1, 50), (1, 10), (3, 25), (8, 100), (2, 3)), "radius {}, {} %"),
        (
            "the product's tile",
            product,
            product_tile,
            ((65800, 4300), (65800, 11000), (8000, 8000)),
            "{} GFLOP/s, {} GB/s",
        ),
    )
    checks = []
    for what, answer, right, cases, label in tried:
        wrong = None
        for case in cases:
            try:
                given = answer(*case)
            except Exception as error:
                wrong = f"at {label.format(*case)}: {type(error).__name__}: {error}"
                break
            if given != right(*case):
                wrong = f"not right at {label.format(*case)}"
                break
        checks.append(Check(what, wrong))
    return Verdict("tile widths", tuple(checks))
