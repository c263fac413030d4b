"""The targets of links to a page of the book: its headings and its figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_ROLE = re.compile(r"\{[\w:]+\}`[^`]*`")
_MARKS = re.compile(r"[`*]")
_FENCED = re.compile(r"(?m)^(`{3,}|~{3,}|:{3,}).*?^\1[ \t]*$", re.DOTALL)
_HEADING = re.compile(r"(?m)^#{1,3} +(.*?)[ \t]*$")
_UNSAFE = re.compile(r"[^\w\u4e00-\u9fff\- ]")


def anchors(page: Path) -> dict[str, str]:
    """Return the text of each heading of a notebook or Markdown page, and the caption of each figure, by its anchor.

    Headings of three levels have anchors, by the rule of GitHub, which MyST follows: ``## What is left`` is
    ``what-is-left``. A figure's anchor is its name.
    """
    found: dict[str, str] = {}
    cells = _cells(page)
    for text in ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"):
        for title in _HEADING.findall(_FENCED.sub("", text)):
            said = _MARKS.sub("", _ROLE.sub("", title))
            slug, number = _UNSAFE.sub("", said.lower().replace(" ", "-")), 1
            while slug in found:
                slug, number = f"{slug}-{number}", number + 1
            found[slug] = said
    return found | _figures(cells)


def book_anchors(folder: Path) -> dict[str, str]:
    """Return the anchors of all pages of a folder, each after the name of its page: ``conv1d#what-is-left``."""
    pages = sorted([*folder.glob("*.ipynb"), *folder.glob("*.md")])
    return {f"{page.stem}#{anchor}": text for page in pages for anchor, text in anchors(page).items()}


def _cells(page: Path) -> list[dict[str, Any]]:
    """The cells of a notebook; a Markdown page is one."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return [{"cell_type": "markdown", "source": text, "metadata": {}}]
    return json.loads(text)["cells"]


def _figures(cells: list[dict[str, Any]]) -> dict[str, str]:
    figures = (cell["metadata"].get("mystnb", {}).get("figure", {}) for cell in cells)
    return {figure["name"]: figure.get("caption", "") for figure in figures if "name" in figure}
