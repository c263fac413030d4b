"""What a chapter displays: the card, a rung's source, the diff against the rung before, its launch, numbers for prose.

Everything is HTML with a plain text beside it and depends on committed files alone, so that a re-executed chapter can
be compared with the stored one, character by character. The classes are styled by ``book/_static/custom.css``.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from climb.bench.problem import Size
from climb.bench.units import significant
from climb.display.selecting import ladder_of, record_of
from climb.display.shown import Code, Shown, table
from climb.display.tables import counters_table, sass, timing_table

__all__ = [
    "Code",
    "Shown",
    "card",
    "counters_table",
    "diff",
    "launch",
    "number",
    "sass",
    "say",
    "source",
    "table",
    "timing_table",
]

#: How MyST-NB marks an output that is not shown but pasted into prose.
_RECORD = "application/papermill.record/"
_CONTEXT = 2


def card(
    *, before: Sequence[str], minutes: int, timings: Any = None, ladder: Any = None, upto: str | None = None
) -> Shown:
    """The card at the top of a chapter: what to know before, minutes to read, the ladder, and whose times it quotes.

    ``timings`` (of ``timings(ladder)``, or a list of them) give ladder, GPU and date; without times give ``ladder``.
    A ladder that has a rung ``upto`` is shown up to that rung: the chapter climbs no further.

    >>> card(before=["what a warp is"], minutes=25, timings=timings("transpose"))           # doctest: +SKIP
    """
    if minutes < 1:
        raise ValueError(f"minutes is {minutes}; expected at least 1")
    several = list(timings) if isinstance(timings, (list, tuple)) else [timings] if timings is not None else []
    ladders = [ladder_of(t) for t in several] or ([ladder] if ladder is not None else [])
    entries = [
        ("Before this", ", ".join(before) or "nothing"),
        ("Reading time", "1 minute" if minutes == 1 else f"{minutes} minutes"),
    ]
    for one in ladders:
        names = one.names[: one.names.index(upto) + 1] if upto in one.names else one.names
        entries.append((f"Ladder {one.name}", " → ".join(names)))
    for gpu, dates in _measured(several).items():
        entries.append(("Measured on", f"{gpu}, {dates}"))
    html = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in entries)
    return Shown(f'<dl class="rl-card">{html}</dl>', "\n".join(f"{k}: {v}" for k, v in entries))


def _measured(several: Sequence[Any]) -> dict[str, str]:
    dates: dict[str, list[str]] = {}
    for one in several:
        record, _ = record_of(one)
        dates.setdefault(record.gpu, []).append(record.date[:10] or "not measured yet")
    return {gpu: " to ".join(dict.fromkeys((min(d), max(d)))) for gpu, d in dates.items()}


def source(rung: Any, lines: tuple[int, int] | None = None) -> Shown:
    """A rung's file, highlighted, with the line numbers of the file. ``lines`` shows just those, both ends included.

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
    return Shown(f'<div class="rl-source highlight"><pre>{body}\n</pre></div>', numbered)


def _highlighted(text: str) -> list[str]:
    """The lines of a whole file as HTML: a comment is told from code only with what surrounds it."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    html: str = highlight(text, get_lexer_by_name("cuda", stripnl=False), HtmlFormatter(nowrap=True))
    return html.split("\n")


def diff(rung: Any, before: Any = None) -> Shown:
    """What changed from the rung before (or from ``before``): ``+`` came in, ``-`` went out, the rest is left alone.

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
    # The style makes lines of the rows where the book's style sheet is not there, as in a reader's own notebook.
    html = "".join(f'<span class="rl-{kind}" style="display: block">{escape(row)}</span>' for kind, row in rows)
    text = "\n".join(row.rstrip() for _, row in rows)
    return Shown(f'<div class="rl-diff"><pre>{html}</pre></div>', text)


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


def _unchanged(count: int) -> str:
    return f"... {_lines(count)} as before"


def launch(rung: Any, size: Size) -> Shown:
    """The rung's launches at this size as CUDA C++ writes them, one per line. Raises ArgumentError.

    >>> launch(transpose["tiled"], dict(rows=1024, cols=1024))                              # doctest: +SKIP
    """
    text = "\n".join(f"{one};" for one in rung.launches(size))
    body = "\n".join(_highlighted(text)).rstrip("\n")
    return Shown(f'<div class="rl-source highlight"><pre>{body}\n</pre></div>', text)


def say(**values: Any) -> None:
    """Publish values for prose: ``say(speedup="2.1")`` makes ``{glue:text}`speedup` `` read 2.1.

    Text stays as it is, whole numbers too, a float is rounded to three significant digits; to format it otherwise,
    give text or use :func:`number`. The values are also printed, so that they can be read in a notebook; tag the cell
    ``remove-cell`` or ``remove-output`` to keep that out of the book. Raises TypeError for a value that is no number
    and no text, ValueError for a text that would not survive in prose.

    >>> say(ratio=timings("transpose").ratio("padded", "tiled"), sectors=32)                # doctest: +SKIP
    """
    texts = {name: _spelled(name, value) for name, value in values.items()}
    print("\n".join(f"{name} = {text}" for name, text in texts.items()))
    for name, text in texts.items():
        _publish(name, text)


def number(name: str, value: float, format: str = ".3g") -> None:
    """Publish one number under ``name``, formatted as Python's format strings say; see :func:`say`.

    >>> number("speedup", 2.1347, ".2f")                                                    # doctest: +SKIP
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name):
        raise ValueError(f"'{name}' cannot be pasted into prose: use letters, digits, - and _, a letter first")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")
    say(**{name: f"{value:{format}}"})


def _spelled(name: str, value: Any) -> str:
    if isinstance(value, str):
        if not value.strip() or value[0] in "'\"" or "\n" in value:
            raise ValueError(f"{name} is {value!r}: prose takes one line of text that does not start with a quote")
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, (float, np.floating)):
        raise TypeError(f"{name} is a {type(value).__name__}; expected a number or text")
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; expected a finite number")
    return significant(float(value))


def _publish(name: str, text: str) -> None:
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return
    if get_ipython() is None:
        return
    metadata = {"scrapbook": {"name": name, "mime_prefix": _RECORD}}
    display({f"{_RECORD}text/plain": _kept_together(text)}, raw=True, metadata=metadata)


def _kept_together(text: str) -> str:
    """A number and its unit with a no-break space between them, so that prose does not tear them apart."""
    return re.sub(r"(?<=\d) (?=\S+$)", "\u00a0", text)
