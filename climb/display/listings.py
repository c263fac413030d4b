"""Listings of a rung's code: its source, the changes from the rung before, its launches.

The HTML and the plain text beside it depend on committed files alone, so that a re-executed chapter can be compared
with the stored one, character by character. Lines end in a line feed within their element: a notebook viewer without
the book's style sheet (``book/_static/code.css``) shows them one below the other too.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from climb import paths
from climb.bench.problem import Size
from climb.display import highlighting
from climb.display.cell_output import CellOutput
from climb.display.comparing import Row, compare

#: The number of unchanged lines that a diff shows around a change.
_CONTEXT = 2
_SIGNS = {"add": "+ ", "del": "- ", "same": "  "}


def source(rung: Any, lines: tuple[int, int] | None = None, *, whole: bool = True) -> CellOutput:
    """Show a rung's file, highlighted, with line numbers. ``lines`` is the first and the last line to show, both
    included.

    ``rung`` is a rung of a ladder, the path of a file, or CUDA C++ as text. Below an excerpt, the whole file can be
    unfolded, unless ``whole`` is false, for a page that would become too heavy. Raises ValueError for lines that the
    file does not have.

    >>> source(transpose["tiled"])                                                          # doctest: +SKIP
    >>> source(transpose["tiled"], lines=(18, 24))                                          # doctest: +SKIP
    >>> source(transpose.folder / "tile.cuh")                                               # doctest: +SKIP
    """
    text, file = _text_and_file(rung)
    rows = text.split("\n")
    first, last = lines or (1, len(rows))
    if not 1 <= first <= last <= len(rows):
        raise ValueError(f"lines {first} to {last} are not in the file, which has {len(rows)} lines")
    width = len(str(last))
    numbered = "\n".join(f"{n:{width}}  {row}".rstrip() for n, row in enumerate(rows[first - 1 : last], first))
    coloured = highlighting.html_lines(text)[first - 1 : last]
    body = "".join(f'<span class="linenos">{n:{width}}  </span>{row}\n' for n, row in enumerate(coloured, first))
    if (first, last) == (1, len(rows)):
        return CellOutput(_box("rl-source", body, _file(file)), numbered)
    extent = f"lines {first} to {last} of {len(rows)}"
    title = f"{_file(file)}, {extent}" if file else extent[:1].upper() + extent[1:]
    rest = _whole(text, "The whole file") if whole else ""
    return CellOutput(_box("rl-source", body, title) + rest, numbered)


def diff(rung: Any, before: Any = None) -> CellOutput:
    """Show the changes from the rung before (or from ``before``): ``+`` marks an added line, ``-`` a removed one.

    The comments that open a rung are left out. Names that were only replaced by others, and line breaks that moved, are
    not shown as changes; the title says which names are new. Below the changes, the whole new rung can be unfolded.
    Raises ValueError for a first rung without ``before``, and if the two files are the same.

    >>> diff(transpose["padded"])                                                           # doctest: +SKIP
    """
    older = before if before is not None else rung.previous
    if older is None:
        raise ValueError(f"{rung.name} is the first rung of its ladder; show its source, or give before=")
    (old, _), (new, file) = _text_and_file(older), _text_and_file(rung)
    if old == new:
        raise ValueError(f"{rung.name} and {older.name} have the same source")
    comparison = compare(old.split("\n"), new.split("\n"))
    added, removed = (sum(row.kind == kind for row in comparison.rows) for kind in ("add", "del"))
    counts = f"{_lines(added)} in, {_lines(removed)} out"
    renamed = list(comparison.renamed.items())
    title = f"{older.name} to {rung.name}: {counts}" + _listed((f"{a} is now {b}" for a, b in renamed), "; ")
    in_html = f"<b>{escape(older.name)} to {escape(rung.name)}</b>: {counts}" + _listed(
        (f"<code>{a}</code> is now <code>{b}</code>" for a, b in renamed), "; "
    )

    plain, html = ["  " + title], []
    coloured = {"del": highlighting.lines_of(old)}
    coloured["add"] = coloured["same"] = highlighting.lines_of(new)
    texts = {"del": old.split("\n")}
    texts["add"] = texts["same"] = new.split("\n")
    for shown in _with_gaps(comparison.rows):
        if isinstance(shown, int):
            gap = f"... {_lines(shown)} as before"
            plain.append("  " + gap)
            html.append(f'<span class="rl-gap">  {gap}\n</span>')
            continue
        sign = _SIGNS[shown.kind]
        plain.append((sign + texts[shown.kind][shown.line]).rstrip())
        line = highlighting.html_of(coloured[shown.kind][shown.line], shown.marked)
        html.append(f'<span class="rl-{shown.kind}"><i>{sign}</i>{line}\n</span>')
    whole = _whole(new, f"The whole rung {escape(rung.name)}")
    return CellOutput(
        _box("rl-diff", "".join(html), in_html + (f"<br>{_file(file)}" if file else "")) + whole, "\n".join(plain)
    )


def launch(rung: Any, size: Size) -> CellOutput:
    """Show the rung's launches at this size in CUDA C++, one per line. Raises ArgumentError for a size it cannot run.

    >>> launch(transpose["tiled"], dict(rows=1024, cols=1024))                              # doctest: +SKIP
    """
    text = "\n".join(f"{one};" for one in rung.launches(size))
    return CellOutput(_box("rl-source", _highlighted(text)), text)


def _text_and_file(code: Any) -> tuple[str, str]:
    """Return the text of a rung, a file or a text, without line feeds at its end, and its path in the repository or
    ""."""
    if isinstance(code, str):
        return code.rstrip("\n"), ""
    if isinstance(code, Path):
        return code.read_text(encoding="utf-8").rstrip("\n"), _in_repository(code)
    return code.source.rstrip("\n"), _in_repository(getattr(code, "path", None))


def _in_repository(path: Path | None) -> str:
    """Return the path of one of the book's files as the repository has it, "" for other files."""
    if path is None or not path.resolve().is_relative_to(paths.ROOT):
        return ""
    return path.resolve().relative_to(paths.ROOT).as_posix()


def _file(file: str) -> str:
    """Return the name of a file in the repository. The build of the book can make a link of ``data-file``."""
    return f'<code class="rl-file" data-file="{escape(file)}">{escape(file)}</code>' if file else ""


def _box(kind: str, body: str, title: str = "") -> str:
    heading = f'<p class="rl-title">{title}</p>' if title else ""
    return f'<div class="{kind} highlight">{heading}<pre>{body}</pre></div>'


def _whole(text: str, title: str) -> str:
    """Show a whole file to unfold. It has no line numbers: they would make up a third of its size."""
    count = _lines(text.count("\n") + 1)
    box = _box("rl-source", _highlighted(text))
    return f'<details class="rl-whole"><summary>{title} ({count})</summary>{box}</details>'


def _highlighted(text: str) -> str:
    return "".join(line + "\n" for line in highlighting.html_lines(text))


def _with_gaps(rows: list[Row]) -> list[Row | int]:
    """Return the changed rows with their context; a number stands for that many rows left out, at least two."""
    near = [False] * len(rows)
    for n, row in enumerate(rows):
        if row.kind != "same":
            near[max(0, n - _CONTEXT) : n + _CONTEXT + 1] = [True] * len(rows[max(0, n - _CONTEXT) : n + _CONTEXT + 1])
    shown: list[Row | int] = []
    for is_near, group in groupby(zip(rows, near, strict=True), key=itemgetter(1)):
        run = [row for row, _ in group]
        # One line takes as much room as the note that it is left out.
        shown += run if is_near or len(run) == 1 else [len(run)]
    return shown


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


def _listed(parts: Iterable[str], before: str) -> str:
    joined = ", ".join(parts)
    return before + joined if joined else ""
