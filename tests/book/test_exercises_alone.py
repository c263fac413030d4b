"""Each exercise runs after the chapter's first cell alone, and shows its two hints."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tools import notebooks
from tools.exercise_cells import exercises_of, run_alone
from tools.thorough import first_of_each

from climb.bench.registry import exercise_chapters, load_exercises

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
EXERCISES = [
    exercise
    for path in sorted(BOOK.glob("*.ipynb"))
    for exercise in exercises_of(notebooks.read_sources(path))
]  # fmt: skip
#: Exercises that still need a name from elsewhere in their chapter; one that no longer does is removed here.
NOT_ALONE: set[str] = set()


@pytest.mark.parametrize(
    "exercise", first_of_each(EXERCISES, lambda exercise: exercise.setup), ids=lambda exercise: exercise.label
)
def test_exercise_runs_after_the_first_cell_alone(exercise):
    if exercise.label in NOT_ALONE:
        with pytest.raises(NameError):
            run_alone(exercise, BOOK)
    else:
        run_alone(exercise, BOOK)


def test_not_alone_names_only_exercises_of_the_book():
    assert {exercise.label for exercise in EXERCISES} >= NOT_ALONE


@pytest.mark.parametrize("chapter", exercise_chapters())
def test_chapter_shows_the_hints_of_every_exercise(chapter):
    page = chapter.replace("_", "-")
    cells = notebooks.read(BOOK / f"{page}.ipynb").cells
    calls = [
        cell for cell in cells if cell.cell_type == "code" and cell.source.rstrip().split("\n")[-1][:6] == "hints("
    ]
    shown = sum("remove-input" in cell.metadata.get("tags", []) for cell in calls)
    assert (shown, len(calls)) == (len(load_exercises(chapter)),) * 2


@pytest.mark.parametrize("chapter", exercise_chapters())
def test_every_exercise_has_two_hints_without_the_code(chapter):
    for exercise in load_exercises(chapter):
        assert len(exercise.hints) == 2, exercise.name
        for hint in exercise.hints:
            assert 8 <= len(hint.split()) <= 60 and hint.endswith((".", "?")), hint
        new = set(exercise.solution.split("\n")) - set(exercise.skeleton.split("\n"))
        code = {line.strip().rstrip(";") for line in new if len(line.strip()) > 12 and "//" not in line}
        assert not [line for line in code if any(line in hint for hint in exercise.hints)], exercise.name


# The tool, on a notebook made up here.


def test_cells_of_an_exercise_reach_to_the_next_one_or_to_a_heading():
    nb = new_notebook(cells=[
        new_markdown_cell("# A chapter"),
        new_code_cell("first = 1"),
        new_code_cell("second = 2"),
        new_markdown_cell("```{exercise} A title\n:label: ex-a\n```"),
        new_code_cell("first + 1"),
        new_markdown_cell("```{solution} ex-a\n:class: dropdown\n```"),
        new_code_cell("first + 2"),
        new_markdown_cell(":::{exercise-start}\n:class: x\n:label: ex-b\n:::"),
        new_code_cell("second"),
        new_markdown_cell("## Next"),
        new_code_cell("3"),
    ])  # fmt: skip
    a, b = exercises_of(nb)
    assert (a.label, a.setup, a.sources) == ("ex-a", "first = 1", ("first + 1", "first + 2"))
    assert (b.label, b.sources) == ("ex-b", ("second",))
    run_alone(a, BOOK)
    with pytest.raises(NameError, match="second"):
        run_alone(b, BOOK)
