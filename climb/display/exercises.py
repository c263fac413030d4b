"""An exercise's kernel as a chapter shows it: the skeleton to complete, and the folded solution."""

from __future__ import annotations

from climb.bench.exercise import Exercise
from climb.display.show import source
from climb.display.shown import Shown


def skeleton(exercise: Exercise) -> Shown:
    """The kernel to complete, highlighted."""
    return source(exercise.skeleton)


def solution(exercise: Exercise) -> Shown:
    """The completed kernel, highlighted; tag its cell ``hide-cell``. The tests check exactly this text."""
    return source(exercise.solution)
