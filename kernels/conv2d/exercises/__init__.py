"""The exercises and exhibits of the chapter on the 2D convolution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Claim, Exercise, Finding, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div
from climb.bench.references import correlate

HERE = Path(__file__).parent
FLOAT, WARP = 4, 32
BINOMIAL = np.array([[1, 4, 6, 4, 1]]) / 16
#: Outputs per thread in the exercise ``column``; the kernel's kHigh.
HIGH = 4


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _image(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    # Whole numbers: sums of them, and of their sixteenths, are exact in any order.
    return {"image": rng.integers(0, 200, (size["rows"], size["cols"])).astype(np.float32)}


def _problem(name: str, title: str, reference: Any, taps: int) -> Problem:
    return Problem(
        name=name,
        title=title,
        size_keys=("rows", "cols"),
        arguments=(
            Argument("image", "float32", ("rows", "cols")),
            Argument("result", "float32", ("rows", "cols"), role="output"),
        ),
        make_inputs=_image,
        reference=reference,
        tolerance=lambda size: 0.0,
        flops=lambda size: 2 * taps * size["rows"] * size["cols"],
        bytes=lambda size: 2 * FLOAT * size["rows"] * size["cols"],
        headline=(),
        check=(),
    )


def _requests(limit_of: Any, size: Size) -> Claim:
    """Claim that loads from global memory make at most ``limit_of(size)`` requests."""
    limit = limit_of(size)

    def test(counters: Any) -> Finding:
        found = counters.total("global load").requests
        return Finding(0 < found <= limit, f"{found} requests")

    return Claim("global load", f"at most {limit}", test)


_LANES: tuple[dict[str, int], ...] = (
    {"rows": 1, "cols": 1},
    {"rows": 3, "cols": 34},
    {"rows": 2, "cols": 97},
    {"rows": 4, "cols": 128},
)

lanes = Exercise(
    name="lanes",
    problem=_problem(
        "smooth_rows",
        "Rows weighted with 1 4 6 4 1",
        lambda inputs, size: {"result": correlate(inputs["image"], BINOMIAL)},
        5,
    ),
    launches=lambda size: (
        Launch(
            "smooth_rows",
            (ceil_div(size["cols"], WARP), size["rows"]),
            (WARP,),
            ("image", "result", np.int32(size["cols"])),
        ),
    ),
    sizes=_LANES,
    folder=HERE,
    claims=(_requests(lambda size: 2 * size["rows"] * ceil_div(size["cols"], WARP), _LANES[-1]),),
    hints=(
        "For tap `j`, lane *l* needs the pixel that lane *l + j* holds. What does the last lane get from a "
        "shuffle that goes past lane 31?",
        "Let the first four lanes load the four pixels after the warp's. For each tap, a lane hands over "
        "either its own pixel or that further one, depending on whether its number is below `j`, and all "
        "lanes read from lane `(lane + j) % 32`.",
    ),
)


def _mirrored(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    wide = np.pad(inputs["image"].astype(np.float64), 1, "reflect")
    rows, cols = size["rows"], size["cols"]
    return {"result": sum(wide[i : i + rows, j : j + cols] for i in range(3) for j in range(3))}


mirror = Exercise(
    name="mirror",
    problem=_problem("sum9", "Sums of 3 x 3 pixels, mirrored at the border", _mirrored, 9),
    launches=lambda size: (
        Launch(
            "sum9",
            (ceil_div(size["cols"], WARP), ceil_div(size["rows"], 8)),
            (WARP, 8),
            ("image", "result", np.int32(size["rows"]), np.int32(size["cols"])),
        ),
    ),
    sizes=({"rows": 2, "cols": 2}, {"rows": 3, "cols": 40}, {"rows": 17, "cols": 33}),
    folder=HERE,
    hints=(
        "Write down what the indices -1, 0, n - 1 and n should become. What does `abs` do to the first of them?",
        "Reflect twice: `abs(i)` mirrors at the first pixel. Count from the other end, `n - 1 - i`, and the "
        "same operation mirrors at the last one.",
    ),
)

_COLUMN: tuple[dict[str, int], ...] = ({"rows": 1, "cols": 1}, {"rows": 7, "cols": 45}, {"rows": 64, "cols": 64})

column = Exercise(
    name="column",
    problem=_problem(
        "sum9_column",
        "Sums of 3 x 3 pixels",
        lambda inputs, size: {"result": correlate(inputs["image"], np.ones((3, 3)))},
        9,
    ),
    launches=lambda size: (
        Launch(
            "sum9_column",
            (ceil_div(size["cols"], WARP), ceil_div(size["rows"], HIGH)),
            (WARP,),
            ("image", "result", np.int32(size["rows"]), np.int32(size["cols"])),
        ),
    ),
    sizes=_COLUMN,
    folder=HERE,
    # Six rows of three pixels for four outputs. At the border a warp asks for less.
    claims=(_requests(lambda size: 18 * ceil_div(size["cols"], WARP) * ceil_div(size["rows"], HIGH), _COLUMN[-1]),),
    hints=(
        "A pixel of row *y* belongs to the sums of the outputs *y - 1*, *y* and *y + 1*. In which order of "
        "loops is it loaded only once?",
        "Loop over the six rows on the outside. Add up the three pixels of a row once, and add that to each "
        "of the four sums that it belongs to.",
    ),
)
