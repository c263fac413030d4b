"""The exercises of the chapter on the 3D convolution, and its exhibits.

``stream`` is a kernel to complete, ``judge`` looks at two functions of whole numbers that are worked out on paper,
``exhibit(name)`` is the source of a kernel that is wrong or slow.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.exercise import Check, Claim, Exercise, Finding, Verdict, exhibit_reader
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
FLOAT = 4
WARP = 32
TAPS = 5
THREADS = 64


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _stream_reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    source, weights = (inputs[name].astype(np.float64) for name in ("source", "weights"))
    padded = np.pad(source, ((TAPS // 2, TAPS // 2), (0, 0)))
    return {"target": sum(weights[d] * padded[d : d + len(source)] for d in range(TAPS))}


def _stream_launch(size: Size) -> tuple[Launch, ...]:
    args = ("source", "weights", "target", np.int32(size["planes"]), np.int32(size["area"]))
    return (Launch("stream", (ceil_div(size["area"], THREADS),), (THREADS,), args),)


_STREAM_SIZES: tuple[dict[str, int], ...] = (
    {"planes": 1, "area": 3},
    {"planes": 4, "area": 70},
    {"planes": 17, "area": 256},
)


def _each_plane_once() -> Claim:
    """Claim that a warp makes one load per plane, besides those of the weights."""
    size = _STREAM_SIZES[-1]
    limit = size["area"] // WARP * (size["planes"] + TAPS)

    def test(counters: Any) -> Finding:
        found = counters.total("global load").requests
        return Finding(found <= limit, f"{found} requests")

    return Claim("global load", f"at most {limit}", test)


stream = Exercise(
    name="stream",
    problem=Problem(
        name="stream",
        title="Weighted sums across the planes",
        size_keys=("planes", "area"),
        arguments=(
            Argument("source", "float32", ("planes", "area")),
            Argument("weights", "float32", (lambda size: TAPS,)),
            Argument("target", "float32", ("planes", "area"), role="output"),
        ),
        make_inputs=lambda size, rng: {
            "source": rng.integers(0, 100, (size["planes"], size["area"])).astype(np.float32),
            "weights": rng.integers(1, 10, TAPS).astype(np.float32),
        },
        reference=_stream_reference,
        tolerance=lambda size: 0.0,  # sums of products of small whole numbers are exact in any order
        flops=lambda size: 2 * TAPS * size["planes"] * size["area"],
        bytes=lambda size: FLOAT * (2 * size["planes"] * size["area"] + TAPS),
        headline=(),
        check=_STREAM_SIZES,
    ),
    launches=_stream_launch,
    sizes=_STREAM_SIZES,
    folder=HERE,
    claims=(_each_plane_once(),),
    hints=(
        "Each plane reaches five outputs. If you load a plane once, how many unfinished sums must a thread remember?",
        "March over the planes with five sums in registers: add the new float to each, with a different "
        "weight, store the sum that is complete, and move the others up by one. The march takes `kRadius` "
        "steps more than there are planes.",
    ),
)


def tile_width(k: int, percent: int) -> int:
    """The narrowest cubic tile of outputs for which a block loads at most ``percent`` per cent more floats than it has
    outputs: the least T with (T + k - 1)^3 <= (1 + percent / 100) T^3."""
    tile = 1
    while 100 * (tile + k - 1) ** 3 > (100 + percent) * tile**3:
        tile += 1
    return tile


def planes_per_block(n: int, tiles: int, slots: int) -> int:
    """The fewest output planes per block for which all blocks of a cube of n planes run at once: ``tiles`` blocks cover
    a plane, and the GPU holds ``slots`` blocks, at least that many."""
    return ceil_div(n, slots // tiles)


def judge(tile: Callable[[int, int], int], planes: Callable[[int, int, int], int]) -> Verdict:
    """Compare a reader's two functions with :func:`tile_width` and :func:`planes_per_block`; one line for each."""
    tried = (
        ("the tile", tile, tile_width, ((3, 100), (9, 100), (9, 700), (11, 50), (7, 300)), "k = {}, {} %"),
        (
            "the planes of a block",
            planes,
            planes_per_block,
            ((512, 256, 528), (256, 64, 528), (256, 64, 396), (100, 16, 132), (7, 528, 528)),
            "{} planes, {} tiles, {} slots",
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
    return Verdict("on paper", tuple(checks))
