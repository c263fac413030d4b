"""Chain: steps that wait for each other, as launches and as one launch. Its slope over steps is what waiting costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from climb.bench.ladder import Ladder
from climb.bench.problem import Argument, Launch, Problem, Rung, Size

#: A block for each of the H200's 132 SMs.
BLOCKS = 132
THREADS = 128

problem = Problem(
    name="chain",
    title="Steps of the whole GPU that wait for each other",
    size_keys=("steps",),
    arguments=(Argument("counts", "int32", (lambda size: BLOCKS,), role="output"),),
    make_inputs=lambda size, rng: {},
    reference=lambda inputs, size: {"counts": np.full(BLOCKS, size["steps"], np.int32)},
    tolerance=lambda size: 0.0,
    flops=lambda size: 0,
    bytes=lambda size: 4 * BLOCKS,
    headline=({"steps": 32},),
    # Two lengths give the slope: the cost of one step more.
    sweep=tuple({"steps": steps} for steps in (1, 8, 128)),
    check=({"steps": 1}, {"steps": 2}, {"steps": 5}),
    parameters=("steps",),
)


def _steps(pdl: bool, graph: bool) -> Callable[[Size], tuple[Launch, ...]]:
    """A launch for each step, from one array into the other; the last writes the result."""

    def launches(size: Size) -> tuple[Launch, ...]:
        arrays = ("counts", "other") if size["steps"] % 2 else ("other", "counts")
        return tuple(
            Launch(
                "chain_step",
                (BLOCKS,),
                (THREADS,),
                (arrays[(step + 1) % 2], arrays[step % 2], np.int32(step)),
                pdl=pdl and step > 0,
                graph=graph,
            )
            for step in range(size["steps"])
        )

    return launches


def _one_launch(kernel: str, *args: str) -> Callable[[Size], tuple[Launch, ...]]:
    """The first step, and one launch for all others."""

    def launches(size: Size) -> tuple[Launch, ...]:
        start = Launch("chain_start", (BLOCKS,), (THREADS,), ("counts", "arrived"), graph=True)
        rest = replace(start, kernel=kernel, args=(*args, np.int32(size["steps"])), pdl=True)
        return start, rest

    return launches


def _workspace(size: Size) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"other": ((BLOCKS,), "int32"), "arrived": ((1,), "uint32")}


def _rung(name: str, idea: str, launches: Callable[[Size], tuple[Launch, ...]], capability: str = "9.0") -> Rung:
    return Rung(name, idea, launches, workspace=_workspace, capability=capability)


ladder = Ladder(
    problem,
    Path(__file__).parent,
    rungs=(
        _rung("stream", "a launch for each step", _steps(False, False)),
        _rung("graph", "all launches as one graph", _steps(False, True)),
        _rung("dependent", "each launch starts early, and waits on the GPU", _steps(True, True)),
        _rung(
            "barrier", "one launch, a barrier of the grid", _one_launch("chain_barrier", "counts", "other", "arrived")
        ),
        _rung(
            "handed_over", "one launch, each value says that it is there", _one_launch("chain_handed_over", "counts")
        ),
    ),
)
