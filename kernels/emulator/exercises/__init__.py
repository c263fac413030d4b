"""The exercises of the chapter on the emulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.exercise import Exercise, at_most
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
FLOAT, WARP, THREADS, COLOURS = 4, 32, 128, 8


def _smoothed(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    wide = np.pad(inputs["x"].astype(np.float64), 1)
    return {"y": wide[:-2] + wide[1:-1] + wide[2:]}


smooth = Exercise(
    name="smooth",
    problem=Problem(
        name="smooth",
        title="Add up each element and its neighbours",
        size_keys=("n",),
        arguments=(Argument("x", "float32", ("n",)), Argument("y", "float32", ("n",), "output")),
        make_inputs=lambda size, rng: {"x": rng.integers(-100, 100, size["n"]).astype(np.float32)},
        reference=_smoothed,
        tolerance=lambda size: 0.0,  # sums of small whole numbers are exact
        flops=lambda size: 2 * size["n"],
        bytes=lambda size: 2 * FLOAT * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (
        Launch("smooth", (ceil_div(size["n"], THREADS),), (THREADS,), ("x", "y", np.int32(size["n"]))),
    ),
    sizes=({"n": 1}, {"n": 128}, {"n": 1000}),
    folder=HERE,
    hints=(
        "There are two mistakes. Run the check: which of the tile's floats does a thread read that another "
        "thread, or no thread, has written?",
        "Reading what another thread writes needs a barrier in between, and the barrier must be reached by "
        "all threads. Beyond the end of the array, the tile still needs a value.",
    ),
)


def _shaded(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    sums = inputs["palette"].astype(np.float64).reshape(COLOURS, 4).sum(axis=1)
    return {"out": np.tile(sums, size["n"] // COLOURS) * inputs["pixels"]}


palette = Exercise(
    name="palette",
    problem=Problem(
        name="shade",
        title="Eight colours in turn",
        size_keys=("n",),
        arguments=(
            Argument("palette", "float32", (lambda size: 4 * COLOURS,)),
            Argument("pixels", "float32", ("n",)),
            Argument("out", "float32", ("n",), "output"),
        ),
        make_inputs=lambda size, rng: {
            "palette": rng.integers(0, 100, 4 * COLOURS).astype(np.float32),
            "pixels": rng.integers(0, 100, size["n"]).astype(np.float32),
        },
        reference=_shaded,
        tolerance=lambda size: 0.0,  # sums and products of small whole numbers are exact
        flops=lambda size: 4 * size["n"],
        bytes=lambda size: 2 * FLOAT * size["n"],
        headline=(),
        check=(),
    ),
    launches=lambda size: (Launch("shade", (size["n"] // WARP,), (WARP,), ("palette", "pixels", "out")),),
    sizes=({"n": WARP}, {"n": 8 * WARP}),
    folder=HERE,
    claims=(at_most("shared load", 2, "wavefronts"), at_most("global store", 4)),
    hints=(
        "A 16-byte load is served eight lanes at a time. How many different colours do eight neighbouring "
        "lanes read now?",
        "If lanes that are served together read the same colour, they need one broadcast. Number the pixels "
        "so that four neighbouring lanes get the same remainder modulo 8.",
    ),
)
