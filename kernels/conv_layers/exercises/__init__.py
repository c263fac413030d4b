"""The exercises of the chapter on convolution layers, and its exhibits.

``keep`` and ``window`` are kernels to complete, ``judge`` checks how a small layer is split, which is worked out on
paper, ``exhibit(name)`` is the source of a kernel that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div
from climb.bench.references import correlate

HERE = Path(__file__).parent
FLOAT = 4
WARP = 32
#: Pixels of a block of ``keep``; rows, threads across and outputs of a thread of ``window``.
KEEP_THREADS = 64
ROWS, ACROSS, OUT = 8, 16, 4
#: The tile of ``judge``: output maps and pixels of a block.
TILE_OUTS, TILE_PIXELS = 64, 128


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _layer(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    maps = [
        sum((correlate(image, taps) for image, taps in zip(inputs["input"], of_output, strict=True)), 0.0)
        for of_output in inputs["weights"]
    ]
    return {"output": np.array(maps).reshape(size["c_out"], size["n"], size["n"])}


def _whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-9, 10, shape).astype(np.float32)


_KEEP_SIZES: tuple[dict[str, int], ...] = (
    {"n": 1, "c_in": 1, "c_out": 2},
    {"n": 9, "c_in": 3, "c_out": 2},
    {"n": 16, "c_in": 4, "c_out": 3},
)


def _keep_launch(size: Size) -> tuple[Launch, ...]:
    args = ("input", "weights", "output", *(np.int32(size[key]) for key in ("n", "c_in", "c_out")))
    return (Launch("layer", (ceil_div(size["n"] ** 2, KEEP_THREADS), size["c_out"]), (KEEP_THREADS,), args),)


def _written_once() -> Claim:
    size = _KEEP_SIZES[-1]
    limit = size["c_out"] * size["n"] ** 2 // WARP

    def test(counters: Any) -> Finding:
        found = counters.total("global store").requests
        return Finding(found <= limit, f"{found} requests")

    return Claim("global store", f"at most {limit}", test)


keep = Exercise(
    name="keep",
    problem=Problem(
        name="layer",
        title="Convolution layer, 3 x 3",
        size_keys=("n", "c_in", "c_out"),
        arguments=(
            Argument("input", "float32", ("c_in", "n", "n")),
            Argument("weights", "float32", ("c_out", "c_in", lambda size: 3, lambda size: 3)),
            Argument("output", "float32", ("c_out", "n", "n"), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "input": _whole(rng, size["c_in"], size["n"], size["n"]),
            "weights": _whole(rng, size["c_out"], size["c_in"], 3, 3),
        },
        reference=_layer,
        tolerance=lambda size: 0.0,  # sums of products of small whole numbers are exact in any order
        flops=lambda size: 18 * size["n"] ** 2 * size["c_in"] * size["c_out"],
        bytes=lambda size: FLOAT * (size["n"] ** 2 * (size["c_in"] + size["c_out"]) + 9 * size["c_in"] * size["c_out"]),
        headline=(),
        check=_KEEP_SIZES,
    ),
    launches=_keep_launch,
    sizes=_KEEP_SIZES,
    folder=HERE,
    claims=(_written_once(),),
    hints=(
        "Which variable lives across all input maps, and where is it kept between two of them?",
        "A sum in a register can live through the whole loop over the maps. Store it after the loop.",
    ),
)

_WINDOW_SIZES: tuple[dict[str, int], ...] = ({"n": 1}, {"n": 37}, {"n": 64})


def _window_launch(size: Size) -> tuple[Launch, ...]:
    grid = (ceil_div(size["n"], ACROSS * OUT), ceil_div(size["n"], ROWS))
    return (Launch("convolve", grid, (ACROSS, ROWS), ("input", "weights", "output", np.int32(size["n"]))),)


def _eighteen() -> Claim:
    """Claim that a warp makes 18 requests for the windows of its threads."""
    blocks = ceil_div(_WINDOW_SIZES[-1]["n"], ACROSS * OUT) * ceil_div(_WINDOW_SIZES[-1]["n"], ROWS)
    limit = 18 * blocks * ROWS * ACROSS // WARP

    def test(counters: Any) -> Finding:
        found = counters.total("shared load").requests
        return Finding(0 < found <= limit, f"{found} requests")

    return Claim("shared load", f"at most {limit}", test)


window = Exercise(
    name="window",
    problem=Problem(
        name="convolve",
        title="One map convolved with 3 x 3 weights",
        size_keys=("n",),
        arguments=(
            Argument("input", "float32", ("n", "n")),
            Argument("weights", "float32", (lambda size: 3, lambda size: 3)),
            Argument("output", "float32", ("n", "n"), role="output"),
        ),
        make_inputs=lambda size, rng: {"input": _whole(rng, size["n"], size["n"]), "weights": _whole(rng, 3, 3)},
        reference=lambda inputs, size: {"output": correlate(inputs["input"], inputs["weights"])},
        tolerance=lambda size: 0.0,  # sums of products of small whole numbers are exact in any order
        flops=lambda size: 18 * size["n"] ** 2,
        bytes=lambda size: 2 * FLOAT * size["n"] ** 2,
        headline=(),
        check=_WINDOW_SIZES,
    ),
    launches=_window_launch,
    sizes=_WINDOW_SIZES,
    folder=HERE,
    claims=(_eighteen(),),
    hints=(
        "Four neighbouring outputs and three taps reach how many floats of one row of the tile?",
        "For each of the three rows, load those six floats into a small array first. Then let every pair of "
        "tap and output read from the array, with all loops unrolled.",
    ),
)


def parts_for(n: int, c_out: int, multiprocessors: int) -> int:
    """Into how many parts the input maps must be split, so that there is a block of 64 output maps x 128 pixels and one
    part for every multiprocessor."""
    return ceil_div(multiprocessors, ceil_div(n * n, TILE_PIXELS) * ceil_div(c_out, TILE_OUTS))


def extra_bytes(n: int, c_out: int, parts: int) -> int:
    """Bytes of partial sums: written by the blocks and read by the second pass; none where nothing is split."""
    return 2 * FLOAT * parts * n * n * c_out if parts > 1 else 0


def judge(parts: Callable[[int, int, int], int], traffic: Callable[[int, int, int], int]) -> Verdict:
    """Compare a reader's two functions with :func:`parts_for` and :func:`extra_bytes`; one line for each."""
    tried = (
        ("the parts", parts, parts_for, ((224, 64, 132), (14, 512, 132), (28, 512, 132), (14, 512, 80), (7, 64, 20))),
        ("the partial sums", traffic, extra_bytes, ((14, 512, 9), (28, 512, 3), (224, 64, 1))),
    )
    checks = []
    for what, answer, right, cases in tried:
        wrong = None
        for case in cases:
            try:
                given = answer(*case)
            except Exception as error:
                wrong = f"at {case}: {type(error).__name__}: {error}"
                break
            if given != right(*case):
                wrong = f"not right at {case}"
                break
        checks.append(Check(what, wrong))
    return Verdict("splitting a layer", tuple(checks))
