"""Histogram at a place: the same 256 counts, beginning somewhere else. What it costs says how L2 spreads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

BINS, COUNT, THREADS = 256, 4, 256


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    counts = np.zeros(size["before"] + BINS, dtype=np.uint32)
    counts[size["before"] :] = np.bincount(inputs["values"], minlength=BINS)
    return {"counts": counts}


problem = Problem(
    name="histogram_place",
    title="Histogram of n bytes, the counts beginning after some others",
    size_keys=("n", "before"),
    arguments=(
        Argument("values", "uint8", ("n",)),
        Argument("counts", "uint32", (lambda size: size["before"] + BINS,), role="output"),
    ),
    make_inputs=lambda size, rng: {"values": rng.integers(0, BINS, size["n"], dtype=np.uint8)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 0,
    bytes=lambda size: size["n"] + COUNT * (size["before"] + BINS),
    # Measured arrays begin on a boundary of 4 KiB (climb.bench.alignment), so `before` says where the counts begin.
    headline=({"n": 1 << 22, "before": 0}, {"n": 1 << 22, "before": BINS // 2}),
    sweep=tuple({"n": 1 << 22, "before": 32 * i} for i in range(17) if i not in (0, 4)),
    check=({"n": 0, "before": 0}, {"n": 1, "before": 1}, {"n": 255, "before": 128}, {"n": 1000, "before": 3}),
    parameters=("before",),
    may_be_zero=("before",),
    accepts_empty=True,
)


def _launches(size: Size) -> tuple[Launch, ...]:
    before, n = np.int32(size["before"]), np.uint64(size["n"])
    return (
        Launch("clear", (1,), (THREADS,), ("counts", np.int32(size["before"] + BINS))),
        Launch("histogram_place", (max(1, ceil_div(size["n"], THREADS)),), (THREADS,), ("values", "counts", n, before)),
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("place", "256 counts, with others before them", _launches),),
)
