"""Timings, accesses and rungs that tests make up; they are used nowhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from types import SimpleNamespace
from typing import Any

import numpy as np

from climb.bench.problem import Argument, Launch, Problem
from climb.bench.work import Work
from climb.toolchain import Compiled, compile_cuda

LANES = np.arange(32)
#: The address of an array, as far as drawing goes.
BASE = 0x7F00_0000_0000
CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 4100.0, "fma_tflop_s": 60.0}


def made_up(
    name: str = "transpose",
    rungs: Sequence[tuple[str, float]] = (("naive", 3e-3), ("tiled", 1e-3), ("padded", 6e-4)),
    peers: Sequence[tuple[str, float]] = (),
    flops: int = 0,
    ceilings: dict[str, float] | None = None,
) -> SimpleNamespace:
    """A record of a ladder that does not exist: a square problem that reads and writes n x n floats.

    ``rungs`` and ``peers`` are names with their times in seconds; ``flops`` is the count for each element.
    """
    problem = Problem(
        name=name,
        title=name,
        size_keys=("n",),
        arguments=(Argument("a", "float32", ("n", "n")), Argument("b", "float32", ("n", "n"), "output")),
        make_inputs=lambda size, rng: {},
        reference=lambda inputs, size: {},
        tolerance=lambda size: 0.0,
        flops=lambda size: flops * size["n"] ** 2,
        bytes=lambda size: 8 * size["n"] ** 2,
        headline=({"n": 16384},),
        check=({"n": 4},),
    )
    size = {"n": 16384}

    def point(kind: str, name: str, seconds: float) -> SimpleNamespace:
        return SimpleNamespace(
            name=name, kind=kind, size=size, regime="cold", median_s=seconds, p25_s=seconds, p75_s=seconds,
            flops=problem.flops(size), bytes=problem.bytes(size),
        )  # fmt: skip

    return SimpleNamespace(
        ladder=SimpleNamespace(name=name, problem=problem, names=tuple(n for n, _ in rungs)),
        ceilings=CEILINGS if ceilings is None else ceilings,
        date="2026-01-02",
        gpu="A GPU",
        device={},
        points=[point("rung", *r) for r in rungs] + [point("peer", *p) for p in peers],
        slowed=lambda point: False,
    )


def access(
    addresses: Any, width: int = 4, kind: str = "global load", active: np.ndarray | None = None, carried_out: str = ""
) -> SimpleNamespace:
    """An access of one warp, as the emulator's trace has it."""
    active = np.ones(32, bool) if active is None else active
    return SimpleNamespace(
        kind=kind, width=width, addresses=np.asarray(addresses), active=active, line=7, allocation="source",
        carried_out=carried_out,
    )  # fmt: skip


def texts(figure: Any) -> list[str]:
    """The text in a figure's axes, without labels of axes and ticks."""
    return [t.get_text() for axes in figure.axes for t in axes.texts]


FIRST = """// Idea: copy.
constexpr int kTile = 32;  // one comment /* in
__global__ void copy(const float* from, float* to)
{
    __shared__ float tile[kTile];
    tile[threadIdx.x] = from[threadIdx.x];
    /* one
       two < three */
    __syncthreads();
    to[threadIdx.x] = tile[threadIdx.x];
}
"""
SECOND = FIRST.replace("tile[kTile];", "tile[kTile + 1];  // a < b")


def rung(name: str, text: str, previous: Any = None) -> SimpleNamespace:
    """A rung with the source ``text`` and two launches."""

    def compiled(size: dict[str, int]) -> Compiled:
        return compile_cuda(text, filename="made_up/copy.cu", name_expressions=("copy",))

    launches = (Launch("copy", (1,), (32,), ("from", "to")), Launch("copy", (2, 3), (8, 4), ("from", "to"), 128))
    return SimpleNamespace(name=name, source=text, previous=previous, compiled=compiled, launches=lambda size: launches)


def made_up_timings(mine: Any = None) -> SimpleNamespace:
    """Timings of four rungs and two peers of a copy, ``mine`` being the reader's own record."""

    def point(kind: str, name: str, seconds: float) -> SimpleNamespace:
        spread = 0.01 * seconds
        return SimpleNamespace(
            name=name, kind=kind, size=size, regime="cold", median_s=seconds, p25_s=seconds - spread,
            p75_s=seconds + spread, flops=0, bytes=8 * 10**9,
        )  # fmt: skip

    size = {"n": 10}
    problem = SimpleNamespace(
        title="A copy", precision="fp32", headline=(size,), work=lambda size: Work(read=8 * 10**9)
    )
    ladder = SimpleNamespace(name="copy", problem=problem, names=("naive", "float4", "same", "worse"))
    points = [
        point(*p)
        for p in [
            ("rung", "naive", 0.008),
            ("rung", "float4", 0.004),
            ("rung", "same", 0.00401),
            ("rung", "worse", 0.005),
            ("peer", "library", 0.0025),
            ("peer", "coarse", 0.0005),
        ]
    ]
    record = SimpleNamespace(
        ladder="copy",
        ceilings={"read_gb_s": 4000.0},
        points=points,
        date="2026-01-02T03:04:05",
        gpu="A GPU",
        device={},
        slowed=lambda point: False,
    )
    return SimpleNamespace(ladder=ladder, regime="cold", reference=record, mine=mine)


def text_of(html: str) -> str:
    """The text of some HTML, without its tags."""
    return unescape(re.sub(r"<[^>]+>", "", html))
