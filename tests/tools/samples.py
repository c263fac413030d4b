"""Timings and accesses that tests make up; they are used nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from climb.bench.problem import Argument, Problem

LANES = np.arange(32)
#: The address of an array, as far as drawing goes.
BASE = 0x7F00_0000_0000
CEILINGS = {"copy_gb_s": 4000.0, "read_gb_s": 4100.0, "fp32_tflop_s": 60.0}


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
        points=[point("rung", *r) for r in rungs] + [point("peer", *p) for p in peers],
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
