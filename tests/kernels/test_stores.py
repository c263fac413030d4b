"""Rungs store each output once: what is stored twice with the same value is right, and wasted."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.corners import with_fault
from tools.thorough import choose

from climb import BoundRung, counters, load_ladder

LADDERS = ("copy", "saxpy", "intensity", "transpose", "occupancy", "stencil1d", "stencil2d")


def _stored_bytes(rung: BoundRung, size: dict) -> int:
    return sum(line.lanes * line.width for line in counters(rung, size).lines if line.kind == "global store")


def _output_bytes(rung: BoundRung, size: dict) -> int:
    inputs = rung.ladder.inputs(size)
    return sum(4 * output.size for output in rung.ladder.problem.reference(inputs, size).values())


@pytest.mark.parametrize(
    "rung", [rung for name in LADDERS for rung in load_ladder(name)], ids=lambda rung: f"{rung.ladder.name}-{rung.name}"
)
def test_every_output_is_stored_once(rung: BoundRung) -> None:
    for size in rung.ladder.problem.check[:: choose(3, thorough=1)]:
        if rung.rung.requires(size) is None:
            assert _stored_bytes(rung, size) == _output_bytes(rung, size), size


@pytest.mark.parametrize("name", ["copy", "saxpy"])
def test_a_tail_that_every_block_stores_is_found(name: str, tmp_path: Path) -> None:
    tail = "static_cast<size_t>(blockIdx.x) * kThreads + threadIdx.x;\n    if (tail < n)"
    rung = next(rung for rung in load_ladder(name) if rung.source.count(tail) == 1)
    faulty = with_fault(rung, tail, tail.replace("blockIdx.x", "blockIdx.y"), tmp_path)
    sizes = [dict(size) for size in rung.ladder.problem.check]
    assert any(_stored_bytes(faulty, size) != _output_bytes(faulty, size) for size in sizes)
