"""How long a chapter takes to read, from a count of its words."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

#: Words of text and code that a reader takes in, in a minute.
WORDS_A_MINUTE = 220
#: The tags of cells whose source a page does not show, or shows folded.
FOLDED = frozenset({"hide-input", "hide-cell", "remove-input", "remove-cell"})

#: A word contains a letter or a digit: operators, rules and the pipes of tables are none.
_WORD = re.compile(r"\S*\w\S*")
#: What the source of a page contains and a reader does not see: comments, targets, the addresses of links.
_UNSEEN = re.compile(r"<!--.*?-->|^\([\w-]+\)=$|(?<=\])\([^)\s]*\)|<[^>\s]+>(?=`)", re.DOTALL | re.MULTILINE)


def words_in(text: str) -> int:
    """The words of a text in Markdown, or of code."""
    return len(_WORD.findall(_UNSEEN.sub(" ", text)))


def words_of(page: Path) -> int:
    """The words of a notebook or a Markdown page: its text and the code that it shows; what is folded is left out."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return words_in(text)
    cells = json.loads(text)["cells"]
    shown = [cell for cell in cells if not FOLDED & set(cell["metadata"].get("tags", []))]
    return sum(words_in("".join(cell["source"])) for cell in shown if cell["cell_type"] in ("markdown", "code"))


def minutes_to_read(notebook: Path) -> int:
    """The minutes that a page takes, at 220 words a minute, rounded up; at least 1.

    >>> minutes_to_read(Path("book/coalescing.ipynb"))                                      # doctest: +SKIP
    """
    return max(1, math.ceil(words_of(notebook) / WORDS_A_MINUTE))
