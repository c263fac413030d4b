"""Floor: a line of memory is read and a line written. Its time is what a kernel takes before its work counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size

FLOAT = 4
WARP = 32
#: Blocks of the rung every_sm: one for each of the H200's 132 SMs.
SMS = 132

problem = Problem(
    name="floor",
    title="Copy n floats, from one line of memory on",
    size_keys=("n",),
    arguments=(
        Argument("source", "float32", ("n",)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"], dtype=np.float32)},
    reference=lambda inputs, size: {"target": inputs["source"]},
    tolerance=lambda size: 0.0,  # a copy is bit-exact
    flops=lambda size: 0,
    bytes=lambda size: 2 * FLOAT * size["n"],
    # A line of 128 bytes, and a line for each of 132 SMs.
    headline=({"n": WARP}, {"n": SMS * WARP}),
    check=({"n": 1}, {"n": WARP}, {"n": 77}, {"n": SMS * WARP + 5}),
)


def _launches(kernel: str, blocks: int) -> Callable[[Size], tuple[Launch, ...]]:
    def launches(size: Size) -> tuple[Launch, ...]:
        return (Launch(kernel, (blocks,), (WARP,), ("source", "target", np.uint64(size["n"]))),)

    return launches


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung("one_warp", "one warp reads a line and writes one", _launches("floor_one_warp", 1)),
        Rung("every_sm", "a warp on every SM", _launches("floor_every_sm", SMS)),
    ),
    ceiling="floor_us",
    ceiling_sizes=({"n": WARP},),
)
