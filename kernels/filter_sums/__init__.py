"""The filters of a convolution, read and added up: what conv1d must do, in the same regime, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernels.lab.ladder import REGIMES, Ladder
from kernels.lab.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS, WIDTH = 128, 4
#: Loads of a thread at a time at most: more would not fit into its registers.
MAX_LOADS = 20
MAX_EXTENT = 1 << 30

problem = Problem(
    name="filter_sums",
    title="Sum of the filters of each output channel",
    size_keys=("o", "n"),
    arguments=(
        Argument("filters", "float32", ("o", "n")),
        Argument("sums", "float32", ("o",), role="output"),
    ),
    make_inputs=lambda size, rng: {"filters": rng.random((size["o"], size["n"]), dtype=np.float32)},
    reference=lambda inputs, size: {"sums": inputs["filters"].sum(axis=1, dtype=np.float64)},
    # All terms are positive: each of the additions that a term passes rounds by at most 2^-24 of the sum.
    tolerance=lambda size: 2.0**-24 * (16 + size["n"] / (2 * THREADS)),
    flops=lambda size: size["o"] * size["n"],
    bytes=lambda size: FLOAT * size["o"] * (size["n"] + 1),
    headline=({"o": 1024, "n": 5120}, {"o": 1024, "n": 10240}),
    # Those of the layers of kernels/conv1d: output channels, and input channels times taps.
    sweep=tuple(
        {"o": o, "n": n}
        for o, n in ((256, 1280), (512, 1280), (512, 2560), (1024, 2560), (512, 10240), (256, 5120), (512, 2048))
    ),
    check=(
        {"o": 0, "n": 8},
        {"o": 3, "n": 0},
        {"o": 1, "n": 4},
        {"o": 5, "n": 516},
        {"o": 2, "n": 12000},
    ),
    accepts_empty=True,
)


def _launches(kernel: str) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        loads = min(MAX_LOADS, max(1, ceil_div(size["n"], WIDTH * THREADS)))
        args = ("filters", "sums", np.int32(size["n"]))
        return (Launch(f"{kernel}<{loads}>", (max(1, size["o"]),), (THREADS,), args),)

    return launches


def _requires(size: Size) -> str | None:
    if size["n"] % WIDTH:
        return f"n must be a multiple of {WIDTH}, so that every row starts where a float4 may"
    if max(size.values()) > MAX_EXTENT:
        return f"o and n may be at most {MAX_EXTENT}, for they are counted in 32 bits"
    return None


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "plain",
            "every load on its way at once",
            "plain.cu",
            _launches("filter_sums_plain"),
            alignment={"filters": 16},
            requires=_requires,
        ),
        Rung(
            "evict_first",
            "filters give way first in the caches",
            "evict_first.cu",
            _launches("filter_sums_evict_first"),
            alignment={"filters": 16},
            requires=_requires,
            swept=False,
        ),
    ),
    regimes=(*REGIMES, "dirty"),
)
