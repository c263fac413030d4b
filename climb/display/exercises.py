"""An exercise's kernel as a chapter shows it: the skeleton to complete, and the folded solution."""

from __future__ import annotations

from climb.bench.exercise import Exercise
from climb.display.cell_output import CellOutput
from climb.display.listings import source


def skeleton(exercise: Exercise) -> CellOutput:
    """The kernel to complete, highlighted."""
    return source(exercise.skeleton)


def solution(exercise: Exercise) -> CellOutput:
    """The completed kernel, highlighted; tag its cell ``hide-cell``. The tests check exactly this text."""
    return source(exercise.solution)
