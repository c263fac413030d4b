"""Cold read: the sum of each 512 floats of a few megabytes. What a kernel takes that reads them once, and no more.

The ladder ``read`` has gigabytes before it, and says how fast DRAM delivers. This one has as much as a small layer of a
network, and a single warp's share: what it costs to start, to wait for the first byte, and to end.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div
from climb.bench.references import sum_of_magnitudes

FLOAT = 4
THREADS = 256
#: Floats summed by a warp, the kernel's kChunk, and by a block.
CHUNK = 512
BLOCK_CHUNK = CHUNK * THREADS // 32
#: As many floats as the weights of the classifier's class2, and of the layers that the chapter on conv1d tunes.
CLASS2, CONV1D, CONV1D_DOUBLE = 4096 * 1024, 1024 * 1024 * 5, 2048 * 1024 * 5


def _chunks(size: Size) -> int:
    return ceil_div(size["n"], CHUNK)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    starts = np.arange(0, size["n"], CHUNK)
    return {"sums": np.add.reduceat(inputs["source"], starts, dtype=np.float64)}


def _launch(size: Size) -> tuple[Launch, ...]:
    return (
        Launch(
            "read_warps",
            (max(1, ceil_div(size["n"], BLOCK_CHUNK)),),
            (THREADS,),
            ("source", "sums", np.uint64(size["n"])),
        ),
    )


problem = Problem(
    name="cold_read",
    title="Sum each 512 of a few megabytes of floats",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("sums", "float32", (_chunks,), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=_reference,
    reference_magnitude=sum_of_magnitudes(_reference),
    # A sum passes at most 16 additions in a thread and 5 in the warp; each rounds by at most 2^-24 of a partial sum.
    tolerance=lambda size: 21 * 2.0**-24,
    flops=lambda size: size["n"],
    operations=lambda size: {"fp32": size["n"]},
    bytes=lambda size: FLOAT * (size["n"] + _chunks(size)),
    headline=({"n": CLASS2},),
    # One warp's share, which is a launch and a trip to DRAM; and more, to see at which rate the time grows.
    sweep=({"n": CHUNK}, {"n": 1 << 20}, {"n": CONV1D}, {"n": CONV1D_DOUBLE}),
    check=(
        {"n": 0},
        {"n": 1},
        {"n": 31},
        {"n": CHUNK - 1},
        {"n": CHUNK},
        {"n": CHUNK + 1},
        {"n": 2 * BLOCK_CHUNK + 77},
    ),
    accepts_empty=True,
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("warps", "four 16-byte loads a lane, a sum a warp", _launch, alignment={"source": 16}),),
)
