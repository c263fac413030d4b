"""Read: sum chunks of an array and write one float per chunk. Its rate is the ceiling for kernels that only read."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import REGIMES, Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
THREADS = 256
#: Floats that one block sums; the kernels' kChunk.
CHUNK = 8192


def _chunks(size: Size) -> int:
    return ceil_div(size["n"], CHUNK)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    starts = np.arange(0, size["n"], CHUNK)
    return {"sums": np.add.reduceat(inputs["source"], starts, dtype=np.float64)}


def _launch(kernel: str, size: Size) -> tuple[Launch, ...]:
    return (Launch(kernel, (_chunks(size),), (THREADS,), ("source", "sums", np.uint64(size["n"]))),)


problem = Problem(
    name="read",
    title="Sum chunks of n floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("sums", "float32", (_chunks,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum passes at most 32 additions in a thread and 8 in the tree; each rounds by at most 2^-24 of a partial sum.
    tolerance=lambda size: 40 * 2.0**-24,
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * (size["n"] + _chunks(size)),
    headline=({"n": 1 << 29},),
    # From less than the L2 cache holds to far more: a cache that must be written back shows at the small sizes only.
    sweep=tuple({"n": 1 << power} for power in (20, 22, 24, 26, 28)),
    check=({"n": 1}, {"n": 255}, {"n": CHUNK - 1}, {"n": CHUNK}, {"n": 2 * CHUNK + 77}),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("scalar", "one float per load", lambda size: _launch("read_scalar", size)),
        Rung(
            "vectorised",
            "eight 16-byte loads in flight per thread",
            lambda size: _launch("read_vectorised", size),
            alignment={"source": 16},
        ),
    ),
    ceiling="read_gb_s",
    # Dirty: the L2 cache is full of modified lines before each launch of the sweep.
    regimes=(*REGIMES, "dirty"),
)
