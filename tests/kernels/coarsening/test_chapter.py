"""The chapter on coarsening: its exercises, the exercise on paper, and its exhibit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from climb import count_kernel, load_ladder
from climb.bench.exercise import check, drifted
from kernels.coarsening.exercises import PAIRS, most_outputs, spread, window

CHAPTER = Path(__file__).resolve().parents[3] / "book" / "coarsening.ipynb"


@pytest.mark.parametrize("exercise", [spread, window], ids=lambda one: one.name)
def test_the_cell_of_an_exercise_is_its_skeleton(exercise):
    assert not drifted(CHAPTER, exercise)


@pytest.mark.parametrize("exercise", [spread, window], ids=lambda one: one.name)
def test_the_solution_passes_and_the_skeleton_does_not(exercise):
    assert check(exercise.solution, exercise).passed
    assert not check(exercise.skeleton, exercise).passed


def test_the_skeletons_are_right_and_only_wasteful():
    assert [c.wrong for c in check(spread.skeleton, spread).checks] == [None] * 4 + ["16 sectors per request"] * 2
    wrong = [c.wrong for c in check(window.skeleton, window).checks]
    # 7 for each output, but for the last six rows, below which there are fewer: (64 * 7 - 21) / 64.
    assert wrong == [None] * 3 + ["6.67 floats for each output"]


def test_a_window_that_drops_the_last_float_is_wrong():
    source = window.solution.replace("y < o + kTaps", "y < o + kTaps - 1")
    assert source != window.solution
    assert "wrong" in repr(check(source, window)) and not check(source, window).passed


def test_a_stride_that_leaves_elements_out_is_found():
    source = spread.solution.replace("o * kThreads + threadIdx.x", "o * 32 + threadIdx.x")
    assert source != spread.solution
    assert "never written" in repr(check(source, spread))


@pytest.mark.parametrize("edge", [128, 384, 512, 768, 1024, 2048])
def test_the_paper_answer_is_what_the_launches_say(edge: int):
    rung = load_ladder("coarse_matmul")["register_column"]
    blocks = {o: int(np.prod(rung.launches({"m": edge, "n": edge, "k": edge, "outputs": o})[0].grid))
              for o in (1, 2, 4, 8, 16, 32)}  # fmt: skip
    enough = [o for o, count in blocks.items() if count >= 132]
    assert most_outputs(edge, sms=132) == max(enough, default=1)


def test_the_exhibit_is_right_and_touches_twice_the_sectors():
    x, y = (np.arange(n, n + 1023, dtype=np.float32) for n in (0, 5))
    z = np.zeros(1023, np.float32)
    counted = count_kernel(PAIRS, "pairs", (2,), (256,), [x, y, z, np.int32(1023)])
    assert np.array_equal(z, x + y)
    assert counted.total("global load").sectors_per_request == pytest.approx(8, rel=0.01)
