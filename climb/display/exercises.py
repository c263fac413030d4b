"""An exercise as a chapter shows it: the skeleton to complete, two folded hints, and the folded solution."""

from __future__ import annotations

import re
from html import escape

from climb.bench.exercise import Exercise
from climb.display.cell_output import CellOutput
from climb.display.listings import source

#: The titles of the two hints of an exercise, as a reader sees them before opening them.
HINTS = ("Hint 1: where to look", "Hint 2: what to change")


def skeleton(exercise: Exercise) -> CellOutput:
    """Show the kernel to complete, highlighted."""
    return source(exercise.skeleton)


def hints(exercise: Exercise) -> CellOutput:
    """Show the two hints, each folded; tag the cell ``remove-input``. Raises ValueError for an exercise without
    hints."""
    if not exercise.hints:
        raise ValueError(f"exercise {exercise.name} has no hints")
    named = list(zip(HINTS, exercise.hints, strict=True))
    folded = [
        f'<details class="rl-hint"><summary>{escape(name)}</summary><p>{_inline(text)}</p></details>'
        for name, text in named
    ]
    return CellOutput("\n".join(folded), "\n".join(f"{name}. {text}" for name, text in named))


def solution(exercise: Exercise) -> CellOutput:
    """Show the completed kernel, highlighted; tag its cell ``hide-cell``. The tests check exactly this text."""
    return source(exercise.solution)


def _inline(text: str) -> str:
    """Convert code and emphasis of Markdown to HTML, in a text without other markup."""
    parts = re.split(r"`([^`]+)`", text)
    html = [f"<code>{escape(part)}</code>" if odd % 2 else _emphasised(part) for odd, part in enumerate(parts)]
    return "".join(html)


def _emphasised(text: str) -> str:
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", escape(text))
