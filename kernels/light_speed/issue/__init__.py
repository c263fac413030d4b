"""Issue: a mix of instructions that fills no pipe. Its rate is the ceiling of what schedulers can issue."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size, ceil_div

WORD, WARP = 4, 32
#: The kernel's kSteps and kChains.
STEPS, CHAINS = 2048, 4
#: Instructions of two steps of a chain: six additions, and one LOP3 that takes both sums.
OF_TWO_STEPS = 7
#: What a step adds to each chain, three times the kernel's kAdded: exact while the sums are below 2^24.
ADDED = 3
THREADS = 256
#: The largest start value; start values are integers.
MOST = 255


def _bits(start: int) -> np.uint32:
    """The word that a thread writes if it starts from the integer ``start``."""
    steps = np.arange(1, STEPS + 1) * ADDED
    seen = np.concatenate([start + c + steps for c in range(CHAINS)])
    return np.bitwise_xor.reduce(seen.astype(np.float32).view(np.uint32))


def _reference(inputs: dict[str, np.ndarray], size: Size) -> dict[str, np.ndarray]:
    starts, which = np.unique(inputs["source"], return_inverse=True)
    return {"target": np.array([_bits(int(start)) for start in starts], np.uint32)[which]}


problem = Problem(
    name="issue",
    title="2048 steps of a mix of instructions from each of n whole numbers",
    size_keys=("n",),
    arguments=(
        Argument("source", "int32", ("n",)),
        Argument("target", "uint32", ("n",), role="output"),
    ),
    make_inputs=lambda size, rng: {"source": rng.integers(0, MOST + 1, size["n"], dtype=np.int32)},
    reference=_reference,
    tolerance=lambda size: 0.0,  # every step is exact
    flops=lambda size: 3 * CHAINS * STEPS * size["n"],
    bytes=lambda size: 2 * WORD * size["n"],
    operations=lambda size: {
        "fp32": 3 * CHAINS * STEPS * size["n"],
        "issue": OF_TWO_STEPS * CHAINS * STEPS // 2 * ceil_div(size["n"], WARP),
    },
    # Eight full waves of 132 SMs with 8 blocks each.
    headline=({"n": 8 * 8 * 132 * 256},),
    check=({"n": 1}, {"n": 100}, {"n": 513}),
)

ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        Rung(
            "mixed",
            "three additions and one logic instruction",
            lambda size: (
                Launch(
                    "issue_mixed",
                    (ceil_div(size["n"], THREADS),),
                    (THREADS,),
                    ("source", "target", np.uint64(size["n"])),
                ),
            ),
        ),
    ),
    ceiling="issue_ginst_s",
)
