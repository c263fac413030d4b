"""The ladder reduction goes on: launches that overlap, and clusters whose blocks add up together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div
from kernels.warp_shuffles import reduction
from kernels.warp_shuffles.reduction import CHUNK, QUAD_ALIGNED, WIDE_THREADS

#: Blocks of a cluster; the kernel's kBlocks.
CLUSTER = 8

problem = replace(
    reduction.problem,
    name="async_reduction",
    title="Sum n floats, with launches that overlap",
    headline=({"n": 1 << 28},),
    sweep=({"n": 1 << 20}, {"n": 1 << 24}),
    check=({"n": 0}, {"n": 1}, {"n": 513}, {"n": 2 * CHUNK + 1500}),
)


def _sums(size: Size, cluster: int) -> int:
    """The number of sums that the first launch writes: one for each cluster."""
    return max(1, ceil_div(size["n"], CHUNK * cluster))


def _rung(name: str, idea: str, *, cluster: int = 1, pdl: bool = False) -> Rung:
    def launches(size: Size) -> tuple[Launch, ...]:
        sums = _sums(size, cluster)
        first = ("source", "sums", np.uint64(size["n"]))
        return (
            Launch(f"sum_{name}", (sums * cluster,), (WIDE_THREADS,), first),
            Launch("sum_of_sums", (1,), (WIDE_THREADS,), ("sums", "total", np.int32(sums)), pdl=pdl),
        )

    return Rung(
        name,
        idea,
        launches,
        alignment=QUAD_ALIGNED,
        workspace=lambda size: {"sums": ((_sums(size, cluster),), "float32")},
        requires=reduction.ladder["last_block"].rung.requires,
        capability="9.0",
    )


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(reduction.ladder["last_block"].rung, source="../../warp_shuffles/reduction/08_last_block.cu"),
        _rung("two_pass", "the second launch adds the blocks' sums"),
        _rung("dependent", "the second launch starts early", pdl=True),
        _rung("cluster", "eight blocks add up in shared memory", cluster=CLUSTER, pdl=True),
    ),
    peers=reduction.ladder.peers,
)
