"""The cells of a chapter's exercises, each with the chapter's first cell: what a reader runs who begins there."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat


@dataclass(frozen=True)
class ExerciseCells:
    """The code of one exercise and its solution, in order, after the chapter's first code cell."""

    label: str
    setup: str
    sources: tuple[str, ...]


def exercises_of(nb: nbformat.NotebookNode) -> list[ExerciseCells]:
    """The exercises of a chapter that have code cells; one ends where the next begins, or at a heading."""
    setup = next((cell.source for cell in nb.cells if cell.cell_type == "code"), "")
    found: list[tuple[str, list[str]]] = []
    inside = False
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            started = re.search(r"\{exercise(?:-start)?\}[^\n]*\n(?::[\w-]+:[^\n]*\n)*?:label: *(\S+)", cell.source)
            inside = started is not None or (inside and not re.search(r"(?m)^## ", cell.source))
            if started:
                found.append((started[1], []))
        elif cell.cell_type == "code" and inside:
            found[-1][1].append(cell.source)
    return [ExerciseCells(label, setup, tuple(sources)) for label, sources in found if sources]


def run_alone(exercise: ExerciseCells, folder: Path) -> None:
    """Run the first cell and those of the exercise in a new namespace, in the folder of the chapter.

    Raises what the cells raise: NameError for a name that an earlier cell of the chapter defines.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    before = os.getcwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for source in (exercise.setup, *exercise.sources):
                tree = ast.parse(source)
                shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
                exec(compile(tree, exercise.label, "exec"), namespace)
                if isinstance(shown, ast.Expr):
                    repr(eval(compile(ast.Expression(shown.value), exercise.label, "eval"), namespace))
    finally:
        os.chdir(before)
