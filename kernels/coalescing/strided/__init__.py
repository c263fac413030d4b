"""Strided copy: lane i reads element i * stride. How many 32-byte sectors does a warp fetch, and at what cost?"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

FLOAT = 4
THREADS = 256
STRIDES = (1, 2, 4, 8, 16, 32, 64)


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    return {"target": inputs["source"][:: size["stride"]][: size["n"]]}


problem = Problem(
    name="strided",
    title="Copy every stride-th float",
    size_keys=("n", "stride"),
    arguments=(
        Argument("source", "float32", (lambda size: size["n"] * size["stride"],)),
        Argument("target", "float32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.random(size["n"] * size["stride"], dtype=np.float32)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # a copy is bit-exact
    flops=lambda size: 0,
    bytes=lambda size: 2 * FLOAT * size["n"],
    # 2^24 floats read and written are 128 MiB at every stride: the useful bytes stay the same and exceed the L2 cache.
    headline=({"n": 1 << 24, "stride": 1}, {"n": 1 << 24, "stride": 64}),
    # With 2^18 floats, stride 8 touches 8 MiB and stride 64 touches 64 MiB: nearly all of it stays in L2.
    sweep=(
        *({"n": 1 << 24, "stride": stride} for stride in STRIDES[1:-1]),
        *({"n": 1 << 18, "stride": stride} for stride in STRIDES),
    ),
    check=({"n": 1, "stride": 1}, {"n": 33, "stride": 3}, {"n": 1000, "stride": 8}, {"n": 257, "stride": 64}),
    parameters=("n", "stride"),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "strided",
            "lane i reads element i * stride",
            lambda size: (
                Launch(
                    "copy_strided",
                    (ceil_div(size["n"], THREADS),),
                    (THREADS,),
                    ("source", "target", np.uint64(size["n"]), np.uint64(size["stride"])),
                ),
            ),
        ),
    ),
)
