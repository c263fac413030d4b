"""Rungs with asynchronous copies give the same bits whatever the order of warps, blocks and copies."""

from __future__ import annotations

import numpy as np
import pytest

from climb import BoundRung, cp, load_ladder
from climb.bench import cuda
from climb.bench.checking import Case
from climb.emulator import Schedule, Schedules, scheduling

#: By ladder, the rungs that copy asynchronously and whose blocks do not add to one output.
RUNGS = {
    "sgemm": ("pipelined",),
    "conv1d": ("cp_async",),
    "conv3d": ("pipelined", "karatsuba"),
    "convlayer": ("pipelined",),
}
pytestmark = pytest.mark.skipif(cuda.backend != "emulator", reason="a GPU chooses its own order")


def outputs(rung: BoundRung, case: Case, schedule: Schedule | None) -> list[np.ndarray]:
    arrays = case.arrays()
    launch = rung.prepare(arrays, case.size)
    with scheduling(schedule):
        launch()
    return [cp.asnumpy(arrays[each.name]) for each in case.problem.outputs]


def same_bits(rung: BoundRung, size: dict, schedules: Schedules) -> None:
    case = Case.make(rung.ladder, size)
    usual = outputs(rung, case, None)
    for schedule in schedules:
        for before, after in zip(usual, outputs(rung, case, schedule), strict=True):
            assert before.tobytes() == after.tobytes(), f"{rung.name} at {size} under {schedule}"


def test_the_pipelined_product_does_not_depend_on_the_order() -> None:
    rung = load_ladder("sgemm")["pipelined"]
    same_bits(rung, {"m": 40, "n": 70, "k": 70}, Schedules(1))


@pytest.mark.thorough
@pytest.mark.in_turn
@pytest.mark.parametrize("name", RUNGS)
def test_rungs_that_copy_asynchronously_do_not_depend_on_the_order(name: str) -> None:
    ladder = load_ladder(name)
    for rung in RUNGS[name]:
        sizes = [dict(size) for size in ladder.problem.check if ladder[rung].rung.requires(size) is None]
        for size in sizes[:2]:
            same_bits(ladder[rung], size, Schedules(2))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["specialised", "two_consumers", "persistent", "balanced"], ids="hgemm-{}".format)
def test_rungs_with_a_ring_of_stages_do_not_depend_on_the_order(name: str) -> None:
    """The ring goes around, and a slot that is handed back too often or too early is found in one of the orders."""
    same_bits(load_ladder("hgemm")[name], {"m": 128, "n": 256, "k": 640}, Schedules(4))
