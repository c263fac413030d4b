"""The time that it takes to read a chapter, from a count of its words."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

#: Words of text and code that a reader takes in per minute.
WORDS_A_MINUTE = 220
#: The tags of cells whose source a page does not show, or shows folded.
FOLDED = frozenset({"hide-input", "hide-cell", "remove-input", "remove-cell"})

#: A word contains a letter or a digit: operators, rules and the pipes of tables are not words.
_WORD = re.compile(r"\S*\w\S*")
#: Parts of a page's source that a reader does not see: comments, targets, the addresses of links.
_UNSEEN = re.compile(r"<!--.*?-->|^\([\w-]+\)=$|(?<=\])\([^)\s]*\)|<[^>\s]+>(?=`)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"(#{1,6}) +(.*?)\s*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,}|:{3,})")


def words_in(text: str) -> int:
    """Count the words of a text in Markdown, or of code."""
    return len(_WORD.findall(_UNSEEN.sub(" ", text)))


def words_of(page: Path) -> int:
    """Count the words of a notebook or a Markdown page: its text and the code that it shows; folded parts are left
    out."""
    return sum(words_in(text) for text, _ in _shown(page))


def minutes_to_read(notebook: Path) -> int:
    """Return the minutes that a page takes, at 220 words a minute, rounded up; at least 1.

    >>> minutes_to_read(Path("book/coalescing.ipynb"))                                      # doctest: +SKIP
    """
    return _minutes(words_of(notebook))


def minutes_text(minutes: int) -> str:
    """Format minutes in words: "1 minute", "25 minutes"."""
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def sections(page: Path, begins: str) -> list[tuple[str, int]]:
    """Return the title and the minutes of each section with this beginning of its title, including the sections inside
    it.

    A section ends at the next heading of its level or above.
    """
    found: list[tuple[str, int]] = []
    title, level, words = "", 0, 0
    for text, is_text in _shown(page):
        for line, heading in _lines(text) if is_text else [(text, None)]:
            if heading and title and len(heading[1]) <= level:
                found.append((title, _minutes(words)))
                title = ""
            if heading and not title and heading[2].startswith(begins):
                title, level, words = heading[2].replace("`", ""), len(heading[1]), 0
            words += words_in(line)
    return found + ([(title, _minutes(words))] if title else [])


def _shown(page: Path) -> Iterator[tuple[str, bool]]:
    """Return the source of each cell that a page shows, and whether it is text; for a Markdown page the whole
    source."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        yield text, True
        return
    for cell in json.loads(text)["cells"]:
        if cell["cell_type"] in ("markdown", "code") and not FOLDED & set(cell["metadata"].get("tags", [])):
            yield "".join(cell["source"]), cell["cell_type"] == "markdown"


def _lines(text: str) -> Iterator[tuple[str, re.Match[str] | None]]:
    """Return the lines of a text with the heading that each one is; lines of a fenced block are never headings."""
    fence = ""
    for line in text.splitlines():
        opened = _FENCE.match(line)
        if opened and not fence:
            fence = opened[1]
        elif fence and line.strip() == fence:
            fence = ""
        yield line, None if fence or opened else _HEADING.match(line)


def _minutes(words: int) -> int:
    return max(1, math.ceil(words / WORDS_A_MINUTE))
