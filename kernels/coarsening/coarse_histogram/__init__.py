"""Histogram with 1 to 16 loads of 16 values per thread: fewer blocks clear and merge fewer private copies."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

COUNT = 4
THREADS = 1024
#: Values that one load brings.
QUAD = 16
OUTPUTS = (1, 2, 4, 8, 16)
MAX_BINS = 256
#: Values counted at a time on the host: NumPy turns bytes into 8-byte integers to count them.
PIECE = 1 << 24


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    counts = np.zeros(MAX_BINS, dtype=np.int64)
    for start in range(0, size["n"], PIECE):
        counts += np.bincount(inputs["values"][start : start + PIECE], minlength=MAX_BINS)
    return {"counts": counts[: size["bins"]].astype(np.uint32)}


problem = Problem(
    name="coarse_histogram",
    title="Histogram of n bytes, several loads of 16 values per thread",
    size_keys=("n", "bins", "outputs"),
    arguments=(
        Argument("values", "uint8", ("n",)),
        Argument("counts", "uint32", ("bins",), role="output"),
    ),
    make_inputs=lambda size, rng: {"values": rng.integers(0, size["bins"], size["n"], dtype=np.uint8)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # whole numbers
    flops=lambda size: 0,
    bytes=lambda size: size["n"] + COUNT * size["bins"],
    headline=({"n": 1 << 28, "bins": MAX_BINS, "outputs": 16},),
    sweep=tuple({"n": 1 << 28, "bins": MAX_BINS, "outputs": outputs} for outputs in OUTPUTS if outputs != 16),
    check=(
        {"n": 0, "bins": 256, "outputs": 1},
        {"n": 1, "bins": 1, "outputs": 4},
        {"n": 17, "bins": 256, "outputs": 16},
        {"n": 1000, "bins": 10, "outputs": 2},
        {"n": 2 * QUAD * THREADS + 37, "bins": 256, "outputs": 8},
        {"n": 5 * QUAD * THREADS - 5, "bins": 256, "outputs": 2},
    ),
    parameters=("bins", "outputs"),
    accepts_empty=True,
)


def _requires(size: Size) -> str | None:
    if size["outputs"] not in OUTPUTS:
        return f"outputs must be one of {', '.join(map(str, OUTPUTS))}"
    if size["bins"] > MAX_BINS:
        return f"bins may be at most {MAX_BINS}, because a value is a byte"
    if size["n"] >= 1 << 32:
        return "n may be at most 4294967295, because a count has 32 bits"
    return None


def _launches(size: Size) -> tuple[Launch, ...]:
    bins, outputs = size["bins"], size["outputs"]
    blocks = max(1, ceil_div(size["n"] // QUAD, THREADS * outputs))
    args = ("values", "counts", np.uint64(size["n"]))
    return (
        Launch(f"coarse_histogram_clear<{bins}>", (1,), (THREADS,), ("counts",)),
        Launch(f"coarse_histogram_chunks<{bins}, {outputs}>", (blocks,), (THREADS,), args),
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "chunks",
            "a block counts a chunk in a copy of its own",
            _launches,
            alignment={"values": QUAD},
            requires=_requires,
        ),
    ),
)
