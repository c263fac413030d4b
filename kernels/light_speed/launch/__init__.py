"""Launch: blocks start and end without work. How long a launch takes, and how many blocks start in a nanosecond."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size

#: Threads of a block, eight warps, as most rungs of the book have.
THREADS = 256


def _launches(size: Size) -> tuple[Launch, ...]:
    return (Launch("launch_flag", (size["blocks"],), (THREADS,), ("flag",)),)


problem = Problem(
    name="launch",
    title="Start blocks without work",
    size_keys=("blocks",),
    arguments=(Argument("flag", "int32", (lambda size: 1,), role="output"),),
    make_inputs=lambda size, rng: {},
    reference=lambda inputs, size: {"flag": np.ones(1, np.int32)},
    tolerance=lambda size: 0.0,
    flops=lambda size: 0,
    bytes=lambda size: 4,
    headline=({"blocks": 1},),
    # One for each of 132 SMs, then 16, 32 and 64 waves of eight blocks an SM: a line whose slope is the pace.
    sweep=tuple({"blocks": blocks} for blocks in (132, 16 * 8 * 132, 32 * 8 * 132, 64 * 8 * 132)),
    check=({"blocks": 1}, {"blocks": 5}),
    parameters=("blocks",),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(Rung("flag", "blocks that end at once", _launches),),
    ceiling="launch_us",
    ceiling_sizes=({"blocks": 1}, {"blocks": 132}),
)
