"""CUDA as HTML in few bytes: Pygments' classes for what a theme colours, nothing around names and punctuation."""

from __future__ import annotations

from html import escape

#: Classes that themes leave in the colour of the text.
_PLAIN = frozenset({"", "n", "p", "w", "o"})


def lean_lines(text: str) -> list[str]:
    """The lines of CUDA C++ as HTML. Neighbouring tokens of one class share an element, none spans a line."""
    from pygments.lexers import get_lexer_by_name
    from pygments.token import STANDARD_TYPES

    merged: list[tuple[str, str]] = []
    for kind, value in get_lexer_by_name("cuda", stripnl=False, ensurenl=False).get_tokens(text):
        name = STANDARD_TYPES.get(kind, "")
        name = "" if name in _PLAIN else name
        # White space has no colour: it joins what stands before it.
        name = merged[-1][0] if merged and value.isspace() and "\n" not in value else name
        if merged and merged[-1][0] == name:
            merged[-1] = (name, merged[-1][1] + value)
        else:
            merged.append((name, value))
    rows = [""]
    for name, value in merged:
        for n, part in enumerate(value.split("\n")):
            if n:
                rows.append("")
            if part:
                rows[-1] += f'<span class="{name}">{escape(part, quote=False)}</span>' if name else escape(part, False)
    return [row.rstrip() for row in rows]
