"""The frame of all steppers: one drawing, what changes in it from step to step, controls, and a sentence for each step.

A drawing is a list of parts in the order in which they are painted: fixed SVG, :class:`Layer` (a path whose shape
changes) and :class:`Label` (a text that changes). The page's ``stepper.js`` puts the parts of a step in place. Where it
does not run, the reader sees the most telling step and the list of all sentences.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from climb.display.cell_output import CellOutput

#: What colours mean, by class: the attributes that draw it where no style sheet is loaded. ``stepper.css`` has the same
#: names for light and dark.
PAINT = {
    "on": "#0072b2",  # at work in this step
    "soon": "#7fb8dd",  # under way: in flight, or waiting for its turn
    "done": "#c3d3df",  # done before this step
    "rest": "#e9edf1",  # empty, or has nothing to do
    "waste": "#f6c98f",  # idle or moved for nothing, and it costs
    "other": "#b34a00",  # read by what is at work
    "line": "#52606d",
    "text": "#1f2933",
    "quiet": "#52606d",
}


@dataclass
class Layer:
    """A path of one class; ``shapes`` has its ``d`` for each step. ``width``: of the stroke, None fills the shape."""

    paint: str
    shapes: Sequence[str]
    width: float | None = None
    dash: str = ""


@dataclass
class Label:
    """A text at a place; ``texts`` has what it says in each step."""

    x: float
    y: float
    texts: Sequence[str]
    paint: str = "text"
    anchor: str = "start"
    size: float = 12


@dataclass
class Listing:
    """Lines of source beside the drawing: ``lines`` by number, and the numbers marked in each step."""

    lines: Sequence[tuple[int, str]]
    marked: Sequence[Sequence[int]]


@dataclass
class Drawing:
    """A drawing of ``width`` by ``height`` units; at 620 pixels wide, a unit is about 1.5 pixels."""

    width: float
    height: float
    parts: list[str | Layer | Label] = field(default_factory=list)


def number(value: float) -> str:
    """A coordinate with at most two digits after the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, what: str, paint: str = "quiet", anchor: str = "start", size: float = 12) -> str:
    """A fixed text."""
    return (
        f'<text x="{number(x)}" y="{number(y)}" class="s-{paint}" fill="{PAINT[paint]}" text-anchor="{anchor}" '
        f'font-size="{number(size)}">{escape(what)}</text>'
    )


def path(shape: str, paint: str, width: float | None = None, dash: str = "", extra: str = "") -> str:
    """A fixed path, filled where ``width`` is None and stroked otherwise."""
    return f'<path d="{shape}"{_painted(paint, width, dash)}{extra}/>'


def rows(cells: Sequence[int], columns: int, x: float, y: float, pitch: float, down: float | None = None) -> str:
    """Cells of a grid as strokes along its rows: a move and a line for each run of neighbours.

    Cell c is in row ``c // columns``; ``pitch`` is the distance of columns, ``down`` that of rows; stroke them with the
    height of a cell and with ``dashes(pitch)``.
    """
    down = pitch if down is None else down
    out, run = [], None
    for cell in [*sorted(cells), None]:
        if run is not None and (cell is None or cell != run[1] + 1 or cell % columns == 0):
            first, last = run
            left, top = x + first % columns * pitch, y + first // columns * down
            out.append(f"M{number(left)} {number(top)}h{number((last - first + 1) * pitch - 0.1)}")
            run = None
        if cell is not None:
            run = (cell, cell) if run is None else (run[0], cell)
    return "".join(out)


def dashes(pitch: float, gap: float = 1.0) -> str:
    """The dashes that cut a stroke into cells."""
    return f"{number(pitch - gap)} {number(gap)}"


def box(x: float, y: float, width: float, height: float) -> str:
    """A rectangle as a path."""
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def key(entries: Sequence[tuple[str, str]], x: float, y: float, width: float = 420) -> tuple[str, float]:
    """The legend: a square and words for each ``(paint, words)``, in as many lines as needed; and its height."""
    out, left, top = [], x, y
    for paint, words in entries:
        wide = 17 + 6.1 * len(words)
        if left > x and left + wide > width:
            left, top = x, top + 17
        out.append(path(box(left, top - 9, 10, 10), paint) + text(left + 14, top, words))
        left += wide + 10
    return "".join(out), top - y + 17


def stepper(
    kind: str,
    title: str,
    drawing: Drawing,
    sentences: Sequence[str],
    *,
    telling: int = -1,
    listing: Listing | None = None,
) -> CellOutput:
    """A stepper as an output: the drawing, its controls, and the sentences, one for each step.

    ``telling`` is the step to show where nothing can be stepped. Raises ValueError when there is no step, or when a
    part of the drawing has another number of steps than there are sentences.
    """
    steps = len(sentences)
    if not steps:
        raise ValueError(f"the stepper '{title}' has no step")
    moving = [part for part in drawing.parts if not isinstance(part, str)]
    states = [part.shapes if isinstance(part, Layer) else part.texts for part in moving]
    for part in (*states, *([listing.marked] if listing else [])):
        if len(part) != steps:
            raise ValueError(f"the stepper '{title}' has {steps} sentences, but a part of it has {len(part)} steps")
    shown = range(steps)[telling]
    data = json.dumps(
        {
            "at": shown,
            "parts": [_changes(part) for part in states],
            **({"lines": [list(marked) for marked in listing.marked]} if listing else {}),
        },
        separators=(",", ":"),
    )
    inner = "".join(part if isinstance(part, str) else _moving(part, shown) for part in drawing.parts)
    alt = f"{title}. Step {shown + 1} of {steps}: {sentences[shown]}"
    html = [
        f'<div class="rl-stepper rl-stepper-{kind}" role="group" aria-label="{escape(title)}" '
        f"data-stepper='{data.replace('&', '&amp;').replace(chr(39), '&#39;').replace('<', '&lt;')}'>",
        f'<div class="s-title">{escape(title)}</div>',
        _listing(listing, shown) if listing else "",
        f'<svg viewBox="0 0 {number(drawing.width)} {number(drawing.height)}" role="img" aria-label="{escape(alt)}" '
        f'style="width:100%;max-width:{number(drawing.width * 1.5)}px;height:auto" '
        f'font-family="system-ui,sans-serif">{inner}</svg>',
        '<div class="s-controls" hidden>'
        '<button type="button" class="s-back" aria-label="Previous step">◀</button>'
        '<button type="button" class="s-play" aria-label="Play">▶ Play</button>'
        '<button type="button" class="s-next" aria-label="Next step">▶</button>'
        f'<input type="range" min="1" max="{steps}" value="{shown + 1}" aria-label="Step">'
        f'<output>{shown + 1} / {steps}</output></div>',
        f'<p class="s-sentence" aria-live="polite">{escape(sentences[shown])}</p>',
        "<details><summary>All steps in words</summary><ol>",
        "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences),
        "</ol></details></div>",
    ]
    plain = [title, *(f"{n + 1}. {sentence}" for n, sentence in enumerate(sentences))]
    return CellOutput("\n".join(part for part in html if part), "\n".join(plain))


def listed(items: Sequence[int], noun: str) -> str:
    """Numbers in words, runs shortened: ``lane 4``, ``lanes 0, 4, 8 and 12``, ``lanes 0 to 15``, ``13 lanes``."""
    items = sorted(set(items))
    if len(items) == 1:
        return f"{noun} {items[0]}"
    if len(items) > 2 and items[-1] - items[0] == len(items) - 1:
        return f"{noun}s {items[0]} to {items[-1]}"
    if len(items) > 4:
        return f"{len(items)} {noun}s"
    return f"{noun}s {', '.join(map(str, items[:-1]))} and {items[-1]}"


def _painted(paint: str, width: float | None, dash: str) -> str:
    if width is None:
        return f' class="s-{paint}" fill="{PAINT[paint]}"'
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f' class="s-{paint} s-stroke" fill="none" stroke="{PAINT[paint]}" stroke-width="{number(width)}"{dashed}'


def _moving(part: Layer | Label, step: int) -> str:
    if isinstance(part, Layer):
        return path(part.shapes[step], part.paint, part.width, part.dash, " data-part")
    drawn = text(part.x, part.y, part.texts[step], part.paint, part.anchor, part.size)
    return drawn.replace("<text ", "<text data-part ", 1)


def _changes(states: Sequence[str]) -> list[str | int]:
    """The states, with 0 for one that is the same as the state before it."""
    return [0 if n and state == states[n - 1] else state for n, state in enumerate(states)]


def _listing(listing: Listing, step: int) -> str:
    marked = set(listing.marked[step])
    least = min((len(line) - len(line.lstrip()) for _, line in listing.lines if line.strip()), default=0)
    lines = (
        f'<span data-line="{n}"{" class=s-now" if n in marked else ""}><i>{n}</i>{escape(line[least:])}\n</span>'
        for n, line in listing.lines
    )
    return f'<pre class="s-listing" tabindex="0" aria-label="Source">{"".join(lines)}</pre>'
