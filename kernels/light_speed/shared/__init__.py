"""Shared: threads add up what lies in shared memory. Its rate is the ceiling of bytes read from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size

WORD, QUAD = 4, 4
#: Threads of a block, quads of its tile, and quads that a thread reads: the kernels' kThreads, kQuads and kSteps.
THREADS, QUADS, STEPS = 256, 1024, 1000


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    """Thread t of each block adds the quads t to t + STEPS - 1, counted around the tile, modulo 2^32."""
    of_quad = inputs["tile"].sum(axis=1, dtype=np.uint32)
    running = np.concatenate([np.zeros(1, np.uint32), np.cumsum(np.tile(of_quad, 2), dtype=np.uint32)])
    first = np.arange(THREADS)
    return {"sums": np.tile(running[first + STEPS] - running[first], (size["blocks"], 1))}


def _launch(kernel: str, size: Size) -> tuple[Launch, ...]:
    return (Launch(kernel, (size["blocks"],), (THREADS,), ("tile", "sums")),)


problem = Problem(
    name="shared",
    title="Each thread adds 1000 quads of a tile in shared memory",
    size_keys=("blocks",),
    arguments=(
        Argument("tile", "uint32", (lambda size: QUADS, lambda size: QUAD)),
        Argument("sums", "uint32", ("blocks", lambda size: THREADS), role="output"),
    ),
    make_inputs=lambda size, rng: {"tile": rng.integers(0, 2**32, (QUADS, QUAD), dtype=np.uint32)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # exact, modulo 2^32
    flops=lambda size: 0,
    bytes=lambda size: WORD * (QUADS * QUAD + size["blocks"] * THREADS),
    operations=lambda size: {"shared": WORD * QUAD * STEPS * THREADS * size["blocks"]},
    # Eight full waves of 132 SMs with 8 blocks each.
    headline=({"blocks": 8 * 8 * 132},),
    check=({"blocks": 1}, {"blocks": 3}),
    parameters=("blocks",),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("scalar", "four loads of 4 bytes", lambda size: _launch("shared_scalar", size), alignment={"tile": 16}),
        Rung(
            "vectorised",
            "one load of 16 bytes",
            lambda size: _launch("shared_vectorised", size),
            alignment={"tile": 16},
        ),
    ),
    ceiling="shared_tb_s",
)
