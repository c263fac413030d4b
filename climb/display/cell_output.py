"""Outputs of a cell: HTML for a browser and plain text for everything else, the same in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

#: A text with at least this many letters may take several lines of its cell.
_LONG = 40
#: A quantity with at least this many spaces may take several lines: `8192 x 8192` does, `4.2 TB/s` does not.
_PARTS = 2


@dataclass(frozen=True, repr=False)
class CellOutput:
    """An output as HTML and as plain text. A notebook shows the HTML, a terminal the text."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Code:
    """A cell of a table that holds code: in a fixed-width font, left-aligned."""

    text: str

    def __str__(self) -> str:
        return self.text


def table(
    rows: Sequence[Sequence[Any] | Mapping[str, Any]],
    columns: Sequence[str],
    *,
    caption: str = "",
    newest: int | None = None,
) -> CellOutput:
    """Make a small table. A row is a sequence in the columns' order, or a mapping by column; None makes an empty cell.

    Numbers are right-aligned, except in the first column; everything else is left-aligned. ``newest`` is the index of
    the row to emphasise (-1: the last). Raises ValueError for a row that does not fit the columns, and for a float,
    whose digits could depend on the machine: format floats as text.

    >>> table([["naive", 32], ["coalesced", 4]], ["rung", "sectors per request"])            # doctest: +SKIP
    """
    cells = [_cells(row, columns) for row in rows]
    emphasised = newest % len(rows) if newest is not None and rows else None
    text_columns = [
        i == 0 or any(isinstance(row[i], Code) or (isinstance(row[i], str) and not _is_number(row[i])) for row in cells)
        for i in range(len(columns))
    ]
    html = ['<table class="rl-counters rl-table">']
    if caption:
        html.append(f"<caption>{escape(caption)}</caption>")
    heads = (
        f'<th scope="col"{_class(is_text)}>{escape(c)}</th>' for c, is_text in zip(columns, text_columns, strict=True)
    )
    html.append(f"<thead><tr>{''.join(heads)}</tr></thead>")
    html.append("<tbody>")
    for i, row in enumerate(cells):
        opening = '<tr class="rl-newest">' if i == emphasised else "<tr>"
        html.append(opening + "".join(_td(v, t) for v, t in zip(row, text_columns, strict=True)) + "</tr>")
    html.append("</tbody></table>")
    return CellOutput("\n".join(html), _plain(cells, columns, text_columns, caption))


def together(parts: Sequence[CellOutput]) -> CellOutput:
    """Combine several outputs, one below the other."""
    return CellOutput("\n".join(part.html for part in parts), "\n\n".join(part.text for part in parts))


def _cells(row: Sequence[Any] | Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    if isinstance(row, Mapping):
        if unknown := set(row) - set(columns):
            raise ValueError(f"a row has {', '.join(sorted(map(str, unknown)))}, which is no column")
        row = [row.get(c) for c in columns]
    if len(row) != len(columns):
        raise ValueError(f"a row has {len(row)} cells for {len(columns)} columns: {list(row)!r}")
    for value, column in zip(row, columns, strict=True):
        if isinstance(value, float):
            raise ValueError(f"column '{column}' holds the float {value!r}; give it as text with the digits that count")
    return list(row)


def _is_number(text: str) -> bool:
    """Return whether text is a quantity: digits with an optional sign before and an optional unit after them."""
    return text[:1].isdigit() or (text[:1] in "+-<" and text[1:2].isdigit()) or text in ("", "-")


def _class(is_text: bool, is_long: bool = False) -> str:
    if not is_text:
        return ""
    return ' class="rl-text rl-long"' if is_long else ' class="rl-text"'


def _td(value: Any, is_text: bool) -> str:
    if value is None:
        return f"<td{_class(is_text)}></td>"
    body = escape(str(value))
    if not is_text and body.count(" ") < _PARTS:
        body = body.replace(" ", "\u00a0")  # a number keeps its unit on a narrow screen; a long size may wrap
    if isinstance(value, Code):
        return f"<td{_class(is_text)}><code>{body}</code></td>"
    return f"<td{_class(is_text, len(body) > _LONG)}>{body}</td>"


def _plain(cells: list[list[Any]], columns: Sequence[str], text_columns: list[bool], caption: str) -> str:
    shown = [list(columns)] + [["" if v is None else str(v) for v in row] for row in cells]
    widths = [max(len(row[i]) for row in shown) for i in range(len(columns))]
    lines = [
        "  ".join(
            v.ljust(w) if left else v.rjust(w) for v, w, left in zip(row, widths, text_columns, strict=True)
        ).rstrip()
        for row in shown
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join([caption, *lines] if caption else lines)
