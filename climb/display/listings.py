"""Listings of a rung's code: its source, the diff against the rung before, its launches.

The HTML and the plain text beside it depend on committed files alone, so that a re-executed chapter can be compared
with the stored one, character by character. ``book/_static/custom.css`` styles the classes.
"""

from __future__ import annotations

import difflib
from html import escape
from typing import Any

from climb.bench.problem import Size
from climb.display.cell_output import CellOutput

#: Unchanged lines that a diff shows around a change.
_CONTEXT = 2


def source(rung: Any, lines: tuple[int, int] | None = None) -> CellOutput:
    """A rung's file, highlighted, with line numbers. ``lines`` is the first and the last line to show, both included.

    ``rung`` is a rung of a ladder, or CUDA C++ as text. Raises ValueError for lines that the file does not have.

    >>> source(transpose["tiled"])                                                          # doctest: +SKIP
    >>> source(transpose["tiled"], lines=(18, 24))                                          # doctest: +SKIP
    """
    text = (rung if isinstance(rung, str) else rung.source).rstrip("\n")
    rows = text.split("\n")
    first, last = lines or (1, len(rows))
    if not 1 <= first <= last <= len(rows):
        raise ValueError(f"lines {first} to {last} are not in the file, which has {len(rows)} lines")
    width = len(str(last))
    chosen = rows[first - 1 : last]
    numbered = "\n".join(f"{n:{width}}  {row}".rstrip() for n, row in enumerate(chosen, first))
    coloured = _highlighted(text)[first - 1 : last]
    body = "\n".join(f'<span class="linenos">{n:{width}}</span>  {row}' for n, row in enumerate(coloured, first))
    return CellOutput(f'<div class="rl-source highlight"><pre>{body}\n</pre></div>', numbered)


def _highlighted(text: str) -> list[str]:
    """The lines of a whole file as HTML. Single lines cannot be highlighted: a comment may begin lines before."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    html: str = highlight(text, get_lexer_by_name("cuda", stripnl=False), HtmlFormatter(nowrap=True))
    return html.split("\n")


def diff(rung: Any, before: Any = None) -> CellOutput:
    """The changes from the rung before (or from ``before``): ``+`` marks an added line, ``-`` a removed one.

    Raises ValueError for a first rung without ``before``, and when the two files are the same.

    >>> diff(transpose["padded"])                                                           # doctest: +SKIP
    """
    older = before if before is not None else rung.previous
    if older is None:
        raise ValueError(f"{rung.name} is the first rung of its ladder; show its source, or give before=")
    old, new = (r.source.rstrip("\n").split("\n") for r in (older, rung))
    marked: list[tuple[str, str]] = []
    matcher = difflib.SequenceMatcher(a=old, b=new, autojunk=False)
    shown_to = 0
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if group[0][3] > shown_to:
            marked.append(("gap", _unchanged(group[0][3] - shown_to)))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                marked += [("same", row) for row in new[j1:j2]]
                continue
            marked += [("del", row) for row in old[i1:i2]]
            marked += [("add", row) for row in new[j1:j2]]
        shown_to = group[-1][4]
    if not marked:
        raise ValueError(f"{rung.name} and {older.name} have the same source")
    if len(new) > shown_to:
        marked.append(("gap", _unchanged(len(new) - shown_to)))
    added, removed = (sum(kind == k for kind, _ in marked) for k in ("add", "del"))
    title = f"{older.name} to {rung.name}: {_lines(added)} in, {_lines(removed)} out"
    signs = {"add": "+ ", "del": "- ", "same": "  ", "gap": "  "}
    rows = [("gap", title), *((kind, signs[kind] + row) for kind, row in marked)]
    # The style attribute keeps rows on lines of their own where the book's style sheet is absent, as in Jupyter.
    html = "".join(f'<span class="rl-{kind}" style="display: block">{escape(row)}</span>' for kind, row in rows)
    text = "\n".join(row.rstrip() for _, row in rows)
    return CellOutput(f'<div class="rl-diff"><pre>{html}</pre></div>', text)


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


def _unchanged(count: int) -> str:
    return f"... {_lines(count)} as before"


def launch(rung: Any, size: Size) -> CellOutput:
    """The rung's launches at this size in CUDA C++, one per line. Raises ArgumentError for a size it cannot run.

    >>> launch(transpose["tiled"], dict(rows=1024, cols=1024))                              # doctest: +SKIP
    """
    text = "\n".join(f"{one};" for one in rung.launches(size))
    body = "\n".join(_highlighted(text)).rstrip("\n")
    return CellOutput(f'<div class="rl-source highlight"><pre>{body}\n</pre></div>', text)
