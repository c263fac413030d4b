"""1D stencil: every output is the weighted sum of its 2 radius + 1 neighbours. The smallest problem with a halo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.libraries import cudnn
from climb.bench.problem import Argument, Launch, Peer, Problem, Rung, Size, ceil_div
from climb.bench.references import correlate, sum_of_magnitudes

FLOAT = 4
THREADS = 256
#: In the rungs with a window in registers: threads of a block, neighbouring outputs of a thread.
WINDOW_THREADS, OUT = 128, 4
MAX_RADIUS = 64
#: Positions are ints in the kernels, and a block's halo may reach past the end.
MAX_N = (1 << 31) - WINDOW_THREADS * OUT - 2 * MAX_RADIUS


def weights(radius: int) -> np.ndarray:
    """The 2 radius + 1 weights of the kernels, float32: 1 / (1 + offset^2), rounded."""
    offsets = np.arange(-radius, radius + 1, dtype=np.int32)
    return np.float32(1.0) / (1 + offsets * offsets).astype(np.float32)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": correlate(inputs["source"], weights(size["radius"]))}


problem = Problem(
    name="stencil1d",
    title="1D stencil, float32",
    size_keys=("n", "radius"),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # All terms are positive, so each of the 2 radius + 1 steps rounds a partial sum that does not exceed the result.
    tolerance=lambda size: 2.0**-24 * (2 * size["radius"] + 1),
    flops=lambda size: 2 * (2 * size["radius"] + 1) * size["n"],
    bytes=lambda size: 2 * FLOAT * size["n"],
    headline=({"n": 1 << 28, "radius": 4},),
    # A quarter of the headline is still nine times an L2 cache of 60 MB, read and written.
    sweep=tuple({"n": 1 << 26, "radius": radius} for radius in (1, 4, 8, 16, 32)),
    check=(
        {"n": 0, "radius": 3},
        {"n": 1, "radius": 1},
        {"n": 3, "radius": 5},
        {"n": 256, "radius": 4},
        {"n": 1025, "radius": 2},
        {"n": 2051, "radius": 9},
    ),
    parameters=("radius",),
    accepts_empty=True,
)


def _launch(kernel: str, threads: int = THREADS, outputs: int = 1) -> Callable[[Size], tuple[Launch, ...]]:
    """One launch of blocks of ``threads`` threads with ``outputs`` outputs each; the radius is a template argument."""

    def launches(size: Size) -> tuple[Launch, ...]:
        grid = (max(1, ceil_div(size["n"], threads * outputs)),)
        args = ("source", "target", np.int32(size["n"]))
        return (Launch(f"{kernel}<{size['radius']}>", grid, (threads,), args),)

    return launches


def _requires(size: Size) -> str | None:
    if size["radius"] > MAX_RADIUS:
        return f"radius may be at most {MAX_RADIUS}, because the loop over neighbours is unrolled"
    if size["n"] > MAX_N:
        return f"n may be at most {MAX_N}, because positions are 32-bit"
    return None


def _conv1d(arrays: dict[str, Any], size: Size):
    radius = size["radius"]
    return cudnn.convolution(
        arrays["source"].reshape(1, 1, 1, -1),
        weights(radius).reshape(1, 1, 1, -1),
        arrays["target"].reshape(1, 1, 1, -1),
        padding=(0, radius),
    )


QUAD_ALIGNED = {"source": 16, "target": 16}

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("naive", "every neighbour from global memory", _launch("stencil1d_naive"), requires=_requires),
        Rung("tiled", "tile and halo in shared memory", _launch("stencil1d_tiled"), requires=_requires),
        Rung(
            "windowed",
            "four outputs from a window in registers",
            _launch("stencil1d_windowed", WINDOW_THREADS, OUT),
            alignment=QUAD_ALIGNED,
            requires=_requires,
        ),
        Rung(
            "untiled",
            "the window straight from global memory",
            _launch("stencil1d_untiled", WINDOW_THREADS, OUT),
            alignment=QUAD_ALIGNED,
            requires=_requires,
        ),
    ),
    peers=(Peer("cuDNN", _conv1d, cudnn.cudnn(cudnn.BENCHMARKED, "fp32")),),
)
