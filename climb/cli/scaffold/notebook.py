"""Cells of a chapter, in the form that `make run` leaves them: made, inserted, numbered."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Cell = dict[str, Any]

_METADATA = {"kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}}
_HEADING = re.compile(r"(?m)^## ")


def read(path: Path) -> list[Cell]:
    """Read the cells of a page."""
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def text(cells: list[Cell]) -> str:
    """Return a page of these cells, its code cells numbered in order."""
    number = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            number += 1
            cell["execution_count"] = number
            for output in cell["outputs"]:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = number
    page = {"cells": cells, "metadata": _METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def markdown(name: str, source: str) -> Cell:
    """Make a cell of text."""
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": _lines(source)}


def code(name: str, source: str, *, result: Any = None, prints: str = "", tags: tuple[str, ...] = ()) -> Cell:
    """Make a cell of code with its output: a result, as text and, if available, as HTML, or text that it prints."""
    outputs: list[dict[str, Any]] = []
    if prints:
        outputs = [{"name": "stdout", "output_type": "stream", "text": _lines(prints)}]
    if result is not None:
        data = {"text/plain": _lines(repr(result))}
        if hasattr(result, "_repr_html_"):
            data["text/html"] = _lines(result._repr_html_())
        outputs = [{"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}]
    metadata = {"tags": list(tags)} if tags else {}
    return {"cell_type": "code", "execution_count": None, "id": name, "metadata": metadata, "outputs": outputs,
            "source": _lines(source)}  # fmt: skip


def add_to_exercises(cells: list[Cell], new: list[Cell]) -> list[Cell]:
    """Return the cells with new ones at the end of the section Exercises, which is made before the last one if need
    be."""
    headings = [(at, match) for at, cell in enumerate(cells) if cell["cell_type"] == "markdown"
                for match in _HEADING.finditer("".join(cell["source"]))]  # fmt: skip
    inside = [n for n, (at, match) in enumerate(headings) if _title(cells[at], match) == "Exercises"]
    if inside:
        following = headings[inside[0] + 1 : inside[0] + 2]
    else:
        new = [markdown("exercises", "## Exercises\n\nThe checks need no GPU."), *new]
        following = headings[-1:]
    if not following:
        return [*cells, *new]
    at, match = following[0]
    before, after = _split(cells[at], match.start())
    return [*cells[:at], *before, *new, *after, *cells[at + 1 :]]


def used_names(cells: list[Cell]) -> set[str]:
    """Return the identifiers in a page's code."""
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return set(re.findall(r"\b[A-Za-z_]\w*", source))


def _title(cell: Cell, match: re.Match[str]) -> str:
    return "".join(cell["source"])[match.end() :].split("\n", 1)[0].strip()


def _split(cell: Cell, at: int) -> tuple[list[Cell], list[Cell]]:
    """Split a cell of text where a heading begins; the part before it keeps the id."""
    source = "".join(cell["source"])
    if not source[:at].strip():
        return [], [cell]
    return (
        [{**cell, "source": _lines(source[:at].rstrip())}],
        [markdown(f"{cell['id']}-next"[:64], source[at:])],
    )


def _lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)
