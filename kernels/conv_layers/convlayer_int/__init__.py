"""The convolution layer in int32, the type of the course report: its two kernels, corrected, and two without atomics.

The problem and the launches are those of the float32 ladder. cuDNN has no convolution of 32-bit integers to compare
with. ``direct`` is near the limit, where the rate of integer multiply-adds matters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb import load_ladder
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size

#: Magnitudes that keep a sum of millions of products within 32 bits.
LARGEST = 20
OF_FLOATS = load_ladder("convlayer")


def _inputs(size: Size, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        argument.name: rng.integers(-LARGEST, LARGEST, argument.extents(size), dtype=np.int32, endpoint=True)
        for argument in OF_FLOATS.problem.inputs
    }


def _in_integers(launches: Callable[[Size], tuple[Launch, ...]]) -> Callable[[Size], tuple[Launch, ...]]:
    return lambda size: tuple(replace(one, kernel=one.kernel.replace("<float", "<int")) for one in launches(size))


def _three_taps(size: Size) -> str | None:
    reason = OF_FLOATS["direct"].rung.requires(size)
    return reason or (None if size["k"] == 3 else "k must be 3, the layers whose time this rung compares")


def _direct(size: Size) -> tuple[Launch, ...]:
    (one,) = OF_FLOATS["direct"].rung.launches(size)
    return (replace(one, kernel=one.kernel.removesuffix(">") + ", int>"),)


def _rung(name: str) -> Rung:
    rung = OF_FLOATS[name].rung
    return replace(rung, launches=_in_integers(rung.launches))


problem = replace(
    OF_FLOATS.problem,
    name="convlayer_int",
    title="Convolution layer, int32",
    arguments=tuple(replace(argument, dtype="int32") for argument in OF_FLOATS.problem.arguments),
    make_inputs=_inputs,
    tolerance=lambda size: 0.0,  # whole numbers
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        *(_rung(name) for name in ("map_atomics", "pair_atomics", "output_stationary")),
        replace(OF_FLOATS["direct"].rung, launches=_direct, requires=_three_taps),
    ),
)
