"""CUDA C++ as highlighted HTML, line by line, with as few elements as colours need.

Pygments knows some eighty kinds of tokens; the book's theme has a few colours. Neighbouring tokens of one colour share
an element, and text in the plain colour has no element: a page can then hold whole kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

#: The class of an element by the name of its token's kind; the first match counts. These are Pygments' own short names.
#: Types are keywords here: `const float` is then one element.
_CLASSES = (
    ("Token.Comment.Preproc", "cp"),
    ("Token.Comment", "c"),
    ("Token.Keyword", "k"),
    ("Token.Literal.Number", "m"),
    ("Token.Literal.String", "s"),
    ("Token.Name.Builtin", "nb"),
    ("Token.Name.Function", "nf"),
)
#: Keywords that the lexer takes for ordinary names.
_KEYWORDS = {"__launch_bounds__", "__align__", "__maxnreg__", "__cluster_dims__", "__grid_constant__"}


@dataclass(frozen=True)
class Piece:
    """Some text of one line, and its class; "" is plain text."""

    kind: str
    text: str


@functools.lru_cache(maxsize=64)
def lines_of(text: str) -> tuple[tuple[Piece, ...], ...]:
    """Split the lines of a whole file into pieces. Single lines cannot be highlighted: a comment may begin lines
    before.

    A chapter shows the same file many times, whole and in differences, so the last results are kept.
    """
    from pygments.lexers import get_lexer_by_name

    lines: list[list[Piece]] = [[]]
    for kind, piece in get_lexer_by_name("cuda", stripnl=False, ensurenl=False).get_tokens(text):
        name = str(kind)
        chosen = next((short for prefix, short in _CLASSES if name.startswith(prefix)), "")
        if piece in _KEYWORDS:
            chosen = "k"
        for n, part in enumerate(piece.split("\n")):
            if n:
                lines.append([])
            if part:
                _add(lines[-1], chosen, part)
    return tuple(map(tuple, lines))


def _add(line: list[Piece], kind: str, text: str) -> None:
    """Append a piece; white space takes the class of the text before it, and pieces of one class are joined."""
    if line and (line[-1].kind == kind or (text.isspace() and kind in ("", "cp"))):
        line[-1] = Piece(line[-1].kind, line[-1].text + text)
    elif text.isspace():
        line.append(Piece("", text))
    else:
        line.append(Piece(kind, text))


def html_lines(text: str) -> list[str]:
    """Return the lines of a whole file as HTML."""
    return [html_of(line) for line in lines_of(text)]


def html_of(line: Sequence[Piece], marked: Sequence[tuple[int, int]] = ()) -> str:
    """Return one line as HTML. ``marked`` are ranges of columns, first and last plus one, in order, to be marked with
    <b>."""
    edges = {edge for span in marked for edge in span}
    opening, closing = {start for start, _ in marked}, {end for _, end in marked}
    out: list[str] = []
    column = 0
    for piece in line:
        cuts = sorted({0, len(piece.text)} | {edge - column for edge in edges if 0 < edge - column < len(piece.text)})
        for start, end in pairwise(cuts):
            if column + start in opening:
                out.append("<b>")
            body = escape(piece.text[start:end], quote=False)
            out.append(f'<span class="{piece.kind}">{body}</span>' if piece.kind else body)
            if column + end in closing:
                out.append("</b>")
        column += len(piece.text)
    return "".join(out)
