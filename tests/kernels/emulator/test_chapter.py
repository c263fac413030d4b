"""The chapter on the emulator: its exercises, and the picture of a warp's steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from climb import alt_text, check, steps_figure, warp_steps
from climb.bench.exercise import drifted
from kernels.emulator.exercises import palette, smooth

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "emulator.ipynb"


@pytest.mark.parametrize("exercise", [smooth, palette], ids=lambda one: one.name)
def test_the_cell_of_an_exercise_is_its_skeleton(exercise) -> None:
    assert not drifted(CHAPTER, exercise)


def test_both_bugs_are_found_one_after_the_other() -> None:
    assert "uninitialised" in repr(check(smooth.skeleton, smooth))
    filled = smooth.skeleton.replace("if (i < n) tile[t] = x[i];", "tile[t] = i < n ? x[i] : 0.0f;")
    assert filled != smooth.skeleton
    assert "race" in repr(check(filled, smooth))
    assert check(smooth.solution, smooth).passed


@pytest.mark.parametrize(
    ("pixel", "wavefronts"), [("lane", 4), ("lane % 2 * 16 + lane / 2", 2), ("lane % 16 * 2 + lane / 16", 4)]
)
def test_pixel_order_decides_the_wavefronts_per_request(pixel: str, wavefronts: int) -> None:
    """Pairs of lanes that want one colour are enough."""
    verdict = check(palette.solution.replace("lane % 4 * kColours + lane / 4", pixel), palette)
    wrong = [c.wrong for c in verdict.checks if c.wrong]
    assert wrong == ([f"{wavefronts} wavefronts per request"] if wavefronts > 2 else [])


DIVERGING = """__global__ void k(int* o) {
    if (threadIdx.x < 8)
        atomicAdd(o, 1);
    else
        atomicMax(o, 2);
    o[threadIdx.x] = 3;
}
"""


def test_lanes_diverge_and_reconverge() -> None:
    steps = [s for s in warp_steps(DIVERGING, "k", [np.zeros(32, np.int32)]) if s.lines]
    counts = [int(s.lanes.sum()) for s in steps]
    assert (counts[0], sorted(counts[1:3]), counts[3:]) == (32, [8, 24], [32])
    (least,) = (s for s in steps if s.lanes.sum() == 8)
    assert least.lanes[:8].all()
    figure = steps_figure(steps)
    assert "24 lanes" in alt_text(figure)
    assert len(figure.axes[0].patches) == 4 * 32


def test_empty_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        steps_figure([])
