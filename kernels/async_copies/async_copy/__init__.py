"""The ladder copy goes on: through shared memory, with asynchronous copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Rung, Size, ceil_div
from kernels.light_speed import copy

SMS = 132
#: Threads of a block of the rung cp_async, and its blocks: eight for each SM of an H200.
THREADS, BLOCKS = 256, 8 * SMS
#: Bytes of a block of the rung bulk; bytes of a chunk of the ring, its stages and its blocks.
BULK = 4096
CHUNK, STAGES, RINGS = 16384, 6, 2 * SMS
WARP = 32
MAX_BLOCKS = (1 << 31) - 1

problem = replace(
    copy.problem,
    name="async_copy",
    title="Copy n floats, asynchronously",
    headline=({"n": 1 << 29},),
    sweep=({"n": 1 << 17}, {"n": 1 << 22}, {"n": 1 << 24}),
    check=({"n": 1}, {"n": 3}, {"n": 4096}, {"n": 4099}, {"n": 10007}),
)


def _launch(kernel: str, blocks: int, threads: int, size: Size, shared: int = 0) -> tuple[Launch, ...]:
    args = ("source", "target", np.uint64(size["n"]))
    return (Launch(kernel, (max(1, blocks),), (threads,), args, shared),)


def _fits(size: Size) -> str | None:
    most = MAX_BLOCKS * BULK // 4
    return f"n may be at most {most}, because chunks are counted in 32 bits" if size["n"] > most else None


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        replace(copy.ladder["vectorised"].rung, source="../../light_speed/copy/03_vectorised.cu"),
        Rung(
            "cp_async",
            "copies into shared memory that hold no registers",
            lambda size: _launch("copy_cp_async", min(BLOCKS, ceil_div(size["n"], 4 * THREADS)), THREADS, size),
            alignment=copy.QUAD_ALIGNED,
        ),
        Rung(
            "bulk",
            "one thread copies 4 KiB in and out",
            lambda size: _launch("copy_bulk", ceil_div(size["n"] * 4, BULK), WARP, size),
            alignment=copy.QUAD_ALIGNED,
            requires=_fits,
            capability="9.0",
        ),
        Rung(
            "pipelined",
            "blocks stay; loads run ahead of stores",
            lambda size: _launch(
                f"copy_pipelined<{CHUNK}, {STAGES}>",
                min(RINGS, ceil_div(size["n"] * 4, CHUNK)),
                WARP,
                size,
                CHUNK * STAGES,
            ),
            alignment=copy.QUAD_ALIGNED,
            requires=_fits,
            capability="9.0",
        ),
    ),
    peers=copy.ladder.peers,
)
