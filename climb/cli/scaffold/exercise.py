"""``climb new exercise``: skeleton, solution, definition, and the cells of its chapter."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

from climb import paths
from climb.bench.exercise import Exercise, cell, check
from climb.bench.registry import load_exercises
from climb.cli.errors import UsageError
from climb.cli.scaffold import names, notebook, python_source, templates
from climb.cli.scaffold.changes import Changes, shown
from climb.display.exercises import hints


def new_exercise(text: str) -> None:
    """Make the exercise ``CHAPTER/NAME``. Raises UsageError."""
    chapter, name = names.pair(text, "CHAPTER/NAME")
    chapter = names.find_chapter(chapter)
    page = _page(chapter)
    if not page.exists():
        raise UsageError(f"the chapter has no page {shown(page)}")
    changes = Changes()
    plan(changes, chapter, name)
    changes.write()
    add_cells(chapter, name)
    print("\nNext:")
    for number, step in enumerate(next_steps(chapter, name), 1):
        print(f"{number}. {step}")


def plan(changes: Changes, chapter: str, name: str) -> None:
    """Plan the files of an exercise. Raises UsageError if the chapter uses the name already."""
    folder = paths.KERNELS / chapter / "exercises"
    module = folder / "__init__.py"
    if not module.exists():
        changes.make(module, templates.fill(templates.EXERCISES, page=names.page(chapter)))
    source = changes.text(module)
    if name in python_source.defined(ast.parse(source)):
        raise UsageError(f"{shown(module)} defines '{name}' already")
    changes.make(folder / f"{name}.cu", templates.fill(templates.SKELETON, name=name))
    changes.make(folder / f"{name}_solution.cu", templates.fill(templates.SOLUTION, name=name))
    for imported, wanted in (
        ("climb.bench.problem", {"Argument", "Launch", "Problem", "ceil_div"}),
        ("climb.bench.exercise", {"Exercise", "at_most"}),
        ("pathlib", {"Path"}),
    ):
        source = python_source.with_imports(source, imported, wanted)
    if "np" not in python_source.defined(ast.parse(source)):
        source = source.replace("from climb.", "import numpy as np\n\nfrom climb.", 1)
    source = source.rstrip("\n") + "\n" + templates.fill(templates.EXERCISE, name=name)
    if module in changes.made:
        changes.made[module] = source
    else:
        changes.change(module, source)


def add_cells(chapter: str, name: str) -> None:
    """Put the cells of an exercise whose files are written into its chapter, with their outputs."""
    importlib.invalidate_caches()
    exercise = next(one for one in load_exercises(chapter) if one.name == name)
    page = _page(chapter)
    cells = notebook.read(page)
    known = notebook.used_names(cells)
    changes = Changes()
    changes.change(page, notebook.text(notebook.add_to_exercises(cells, _cells(chapter, exercise, known))))
    changes.write()


def next_steps(chapter: str, name: str) -> list[str]:
    """List the author's next steps for the exercise."""
    folder = f"kernels/{chapter}/exercises"
    return [
        f"write the problem and the claims of {name} in {folder}/__init__.py, and both kernels: {name}.cu is what the "
        f"reader begins with, {name}_solution.cu what passes",
        f"copy the skeleton into the cell of book/{names.page(chapter)}.ipynb (climb check --cells {chapter} prints "
        "it), write the text of the exercise and of its solution there, and import what the cells need",
        f"make run NOTEBOOK={names.page(chapter)}",
        f".venv/bin/python -m pytest --thorough tests/bench/test_exercise.py tests/book/test_exercises_alone.py "
        f"-k '{name} or {chapter}'\n"
        f"   .venv/bin/python -m pytest tests/book/test_notebooks.py -k {names.page(chapter)}",
    ]


def _page(chapter: str) -> Path:
    return paths.ROOT / "book" / f"{names.page(chapter)}.ipynb"


def _cells(chapter: str, exercise: Exercise, known: set[str]) -> list[notebook.Cell]:
    """Return the cells: the task, its folded hints, the kernel to complete, the folded solution, and its check."""
    name, page = exercise.name, names.page(chapter)
    called = f"{name}_exercise" if name in known else name
    imported = f"from kernels.{chapter}.exercises import {name}" + (f" as {called}" if called != name else "")
    prefix = f"ex-{name.replace('_', '-')}"[:50]
    words = {"name": name, "chapter": chapter, "page": page}
    hinted = f"{imported}\nfrom climb import hints\n\nhints({called})"
    todo = f"{imported}\nfrom climb import check\n\n{cell(exercise)}\ncheck(mine, {called})"
    return [
        notebook.markdown(prefix, templates.fill(templates.EXERCISE_TEXT, **words)),
        notebook.code(f"{prefix}-hints", hinted, result=hints(exercise), tags=("remove-input",)),
        notebook.markdown(f"{prefix}-text", "To be written: what the kernel does as it stands."),
        notebook.code(f"{prefix}-cell", todo, result=check(exercise.skeleton, exercise)),
        notebook.markdown(f"{prefix}-solution", templates.fill(templates.SOLUTION_TEXT, **words)),
        notebook.code(
            f"{prefix}-check",
            f"check({called}.solution, {called})",
            result=check(exercise.solution, exercise),
            tags=("hide-cell",),
        ),
    ]
