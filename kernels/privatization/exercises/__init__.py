"""The exercises and exhibits of the chapter on privatization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from climb import load_ladder
from climb.bench.exercise import Claim, Exercise, Finding, exhibit_reader, no_bank_conflicts
from climb.bench.problem import Argument, Launch, Problem, Size, ceil_div

HERE = Path(__file__).parent
THREADS, WARP = 256, 32
BLOCKS = 4


#: The source of an exhibit of the chapter, by name.
exhibit = exhibit_reader(__file__)


def _launches(kernel: str, blocks: int | None, size: Size) -> tuple[Launch, ...]:
    """Clear the counts, then count: with ``blocks`` blocks, or with a thread per value for None."""
    grid = (blocks or max(1, ceil_div(size["n"], THREADS)),)
    return (
        Launch("clear", (1,), (THREADS,), ("counts",)),
        Launch(kernel, grid, (THREADS,), ("values", "counts", np.uint64(size["n"]))),
    )


merge = Exercise(
    name="merge",
    problem=load_ladder("histogram").problem,
    launches=lambda size: _launches("merged", BLOCKS, size),
    sizes=tuple(
        {"n": n, "bins": 256, "data": data} for n, data in ((0, "uniform"), (999, "constant"), (5003, "uniform"))
    ),
    folder=HERE,
    claims=(no_bank_conflicts(),),
    hints=(
        "In one step, lane *l* reads word `bin * 32 + step`. In which bank is that, for each bin?",
        "The copies of a bin may be added in any order. Let each lane begin at a different copy and wrap around.",
    ),
)


def _two_per_warp(counters: Any) -> Finding:
    """Check that at most two lanes per warp add to global memory, one for each bin."""
    total = counters.total("global atomic")
    if not total.requests:
        return Finding(False, "the kernel adds nothing to global memory")
    warps = ceil_div(votes.sizes[-1]["n"], THREADS) * THREADS // WARP
    return Finding(total.lanes <= 2 * warps, f"{total.lanes} lanes of {warps} warps add")


votes = Exercise(
    name="votes",
    problem=Problem(
        name="votes",
        title="Count the bytes below 128 and the others",
        size_keys=("n",),
        arguments=(Argument("values", "uint8", ("n",)), Argument("counts", "uint32", (lambda size: 2,), "output")),
        make_inputs=lambda size, rng: {"values": rng.integers(0, 256, size["n"], dtype=np.uint8)},
        reference=lambda given, size: {"counts": np.bincount(given["values"] >> 7, minlength=2).astype(np.uint32)},
        tolerance=lambda size: 0.0,  # whole numbers
        flops=lambda size: 0,
        bytes=lambda size: size["n"] + 8,
        headline=(),
        check=(),
        accepts_empty=True,
    ),
    launches=lambda size: _launches("votes", None, size),
    sizes=({"n": 0}, {"n": 1}, {"n": 33}, {"n": 5003}),
    folder=HERE,
    claims=(Claim("atomics in global memory", "at most two lanes of each warp", _two_per_warp),),
    hints=(
        "A warp function gathers one bit from each lane into a word. How do you count the bits of that word?",
        "Vote twice: which lanes are inside, and which have a high value. One lane adds the two counts. All "
        "lanes must take part in the votes, so none may return before.",
    ),
)
