"""The frame of all steppers: one drawing, what changes in it from step to step, controls, and a sentence for each step.

A drawing is a list of parts in the order in which they are painted: fixed SVG, :class:`Layer` (a path whose shape
changes) and :class:`Label` (a text that changes). The page's ``stepper.js`` puts the parts of a step in place. If it
does not run, the reader sees the most telling step and the list of all sentences.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from climb.display.cell_output import CellOutput
from climb.display.palette import PALETTE

#: The meanings of colours, by class, with the attributes used if no style sheet is loaded. ``stepper.css`` has the same
#: names for light and dark.
PAINT = {
    "on": PALETTE["best"].light,  # at work in this step
    "soon": PALETTE["lane-3"].light,  # under way: in flight, or waiting for its turn
    "done": "#c3d3df",  # done before this step
    "rest": PALETTE["faint"].light,  # empty, or has nothing to do
    "waste": PALETTE["waste"].light,  # idle or moved for nothing, at a cost
    "other": PALETTE["violet"].light,  # read by lanes at work
    "line": PALETTE["quiet"].light,
    "panel": PALETTE["ground"].light,  # the ground, to cover parts that come later
    "text": PALETTE["text"].light,
    "quiet": PALETTE["quiet"].light,
}


@dataclass
class Layer:
    """A path of one class; ``shapes`` has its ``d`` for each step. ``width``: of the stroke, None fills the shape."""

    paint: str
    shapes: Sequence[str]
    width: float | None = None
    dash: str = ""


@dataclass
class Grid:
    """Cells in rows: cell c is in row ``c // columns``. ``down`` is the distance of the rows, ``height`` a cell's."""

    columns: int
    x: float
    y: float
    pitch: float
    down: float
    height: float
    gap: float = 1.0

    def shape(self, cells: Iterable[int]) -> str:
        """Return the cells as strokes along the rows: a move and a line for each run of neighbours."""
        out = []
        for first, count in _runs(sorted(cells), self.columns):
            x, y = self.x + first % self.columns * self.pitch, self.y + first // self.columns * self.down
            out.append(f"M{number(x)} {number(y)}h{number(count * self.pitch - 0.1)}")
        return "".join(out)

    def drawn(self, cells: Iterable[int], paint: str) -> str:
        """Return the cells as fixed SVG."""
        return path(self.shape(cells), paint, self.height, self.dash)

    @property
    def dash(self) -> str:
        """The dashes that cut a stroke into cells."""
        return dashes(self.pitch, self.gap)


@dataclass
class Cells:
    """Cells of a grid in one paint; ``cells`` has those of each step."""

    paint: str
    grid: Grid
    cells: Sequence[Iterable[int]]


@dataclass
class Patch:
    """A filled shape that changes its paint; ``paints`` has the paint of each step, "" if the shape is absent."""

    shape: str
    paints: Sequence[str]


@dataclass
class Label:
    """A text at a place; ``texts`` has its words in each step."""

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
    parts: list[str | Layer | Cells | Patch | Label] = field(default_factory=list)


def number(value: float) -> str:
    """Format a coordinate with at most two digits after the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, what: str, paint: str = "quiet", anchor: str = "start", size: float = 12) -> str:
    """Make a fixed text."""
    little = " s-little" if size < 12 else ""
    return (
        f'<text x="{number(x)}" y="{number(y)}" class="s-{paint}{little}" fill="{PAINT[paint]}" text-anchor="{anchor}" '
        f'font-size="{number(size)}">{escape(what)}</text>'
    )


def path(shape: str, paint: str, width: float | None = None, dash: str = "", extra: str = "") -> str:
    """Make a fixed path, filled if ``width`` is None and stroked otherwise."""
    return f'<path d="{shape}"{_painted(paint, width, dash)}{extra}/>'


def dashes(pitch: float, gap: float = 1.0) -> str:
    """Return the dashes that cut a stroke into cells."""
    return f"{number(pitch - gap)} {number(gap)}"


def box(x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle as a path."""
    return f"M{number(x)} {number(y)}h{number(width)}v{number(height)}h{number(-width)}z"


def stepper(
    kind: str,
    title: str,
    drawing: Drawing,
    sentences: Sequence[str],
    *,
    key: Sequence[tuple[str, str]],
    telling: int = -1,
    listing: Listing | None = None,
) -> CellOutput:
    """Return a stepper as an output: the drawing, its controls, and the sentences, one for each step.

    ``key`` gives the meaning of each paint in words. ``telling`` is the step to show without controls. Raises
    ValueError if there is no step, or if a part of the drawing has a different number of steps than there are
    sentences.
    """
    steps = len(sentences)
    if not steps:
        raise ValueError(f"the stepper '{title}' has no step")
    moving = [part for part in drawing.parts if not isinstance(part, str)]
    states = [_states(part) for part in moving]
    for part in (*states, *([listing.marked] if listing else [])):
        if len(part) != steps:
            raise ValueError(f"the stepper '{title}' has {steps} sentences, but a part of it has {len(part)} steps")
    shown = range(steps)[telling]
    data = json.dumps(
        {
            "at": shown,
            "parts": [_changes(part) for part in states],
            "how": [_how(part) for part in moving],
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
        f'style="width:100%;max-width:{number(drawing.width * 1.45)}px;height:auto" '
        f'font-family="system-ui,sans-serif">{inner}</svg>',
        _key(key),
        '<div class="s-controls" hidden>'
        '<button type="button" class="s-back" aria-label="Previous step">◀</button>'
        '<button type="button" class="s-play" aria-label="Play">▶ Play</button>'
        '<button type="button" class="s-next" aria-label="Next step">▶</button>'
        f'<input type="range" min="1" max="{steps}" value="{shown + 1}" aria-label="Step">'
        f"<output>{shown + 1} / {steps}</output></div>",
        f'<p class="s-sentence" aria-live="polite">{escape(sentences[shown])}</p>',
        "<details><summary>All steps in words</summary><ol>",
        "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences),
        "</ol></details></div>",
    ]
    plain = [title, *(f"{n + 1}. {sentence}" for n, sentence in enumerate(sentences))]
    return CellOutput("\n".join(part for part in html if part), "\n".join(plain))


def listed(items: Sequence[int], noun: str) -> str:
    """Format numbers in words, runs shortened: ``lane 4``, ``lanes 0, 4, 8 and 12``, ``lanes 0 to 15``, ``13
    lanes``."""
    items = sorted(set(items))
    if len(items) == 1:
        return f"{noun} {items[0]}"
    if len(items) > 2 and items[-1] - items[0] == len(items) - 1:
        return f"{noun}s {items[0]} to {items[-1]}"
    if len(items) > 4:
        return f"{len(items)} {noun}s"
    return f"{noun}s {joined([str(item) for item in items])}"


def joined(names: Sequence[str]) -> str:
    """Join words: ``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _key(entries: Sequence[tuple[str, str]]) -> str:
    """Return the legend: a square and words for each ``(paint, words)``."""
    spans = (
        f'<span><i class="s-{paint}" style="background:{PAINT[paint]};display:inline-block;width:.75em;height:.75em">'
        f"</i> {escape(words)}</span>"
        for paint, words in entries
    )
    return f'<div class="s-key">{" ".join(spans)}</div>'


def _painted(paint: str, width: float | None, dash: str) -> str:
    if width is None:
        return f' class="s-{paint}" fill="{PAINT[paint]}"'
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f' class="s-{paint} s-stroke" fill="none" stroke="{PAINT[paint]}" stroke-width="{number(width)}"{dashed}'


def _moving(part: Layer | Cells | Patch | Label, step: int) -> str:
    if isinstance(part, Cells):
        return path(part.grid.shape(part.cells[step]), part.paint, part.grid.height, part.grid.dash, " data-part")
    if isinstance(part, Patch):
        paint = part.paints[step]
        seen = f'class="s-{paint}" fill="{PAINT[paint]}"' if paint else 'class="s-none" fill="none"'
        return f'<path d="{part.shape}" {seen} data-part/>'
    if isinstance(part, Layer):
        return path(part.shapes[step], part.paint, part.width, part.dash, " data-part")
    drawn = text(part.x, part.y, part.texts[step], part.paint, part.anchor, part.size)
    return drawn.replace("<text ", "<text data-part ", 1)


def _states(part: Layer | Cells | Patch | Label) -> Sequence[str]:
    """Return the state of a part in each step. Cells are written as runs: ``0+8`` (0 to 7), ``0+8*2`` (every second
    from 0 on)."""
    if isinstance(part, Cells):
        return [progressions(cells) for cells in part.cells]
    if isinstance(part, Patch):
        return part.paints
    return part.shapes if isinstance(part, Layer) else part.texts


def progressions(cells: Iterable[int]) -> str:
    """Write cells in few letters: ``first+count*distance``, one after another, where ``*1`` and ``+1*1`` are left
    out."""
    left, out = sorted(set(cells)), []
    while left:
        distance = left[1] - left[0] if len(left) > 1 else 1
        count = 1
        while count < len(left) and left[count] - left[count - 1] == distance:
            count += 1
        if count == 2 and distance > 1:
            count = 1
        out.append(f"{left[0]}" + (f"+{count}" if count > 1 else "") + (f"*{distance}" if count > 1 < distance else ""))
        left = left[count:]
    return " ".join(out)


def _runs(cells: Sequence[int], columns: int) -> list[tuple[int, int]]:
    """Return neighbouring cells of a row as ``(first, how many)``."""
    out: list[tuple[int, int]] = []
    for cell in cells:
        if out and cell == sum(out[-1]) and cell % columns:
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((cell, 1))
    return out


def _how(part: Layer | Cells | Patch | Label) -> list[float] | int:
    """Return how to read a part's states: the numbers of a grid for its cells, 1 for paints, 0 for shapes and texts."""
    if isinstance(part, Cells):
        return [part.grid.columns, part.grid.x, part.grid.y, part.grid.pitch, part.grid.down]
    return 1 if isinstance(part, Patch) else 0


def _changes(states: Sequence[str]) -> list[str | int]:
    """Return the states, with 0 for one that is the same as the state before it."""
    return [0 if n and state == states[n - 1] else state for n, state in enumerate(states)]


def _listing(listing: Listing, step: int) -> str:
    marked = set(listing.marked[step])
    least = min((len(line) - len(line.lstrip()) for _, line in listing.lines if line.strip()), default=0)
    lines = []
    for n, line in listing.lines:
        now = ' class="s-now"' if n in marked else ""
        lines.append(f'<span data-line="{n}"{now}><i>{n}</i>{escape(line[least:])}\n</span>')
    return f'<pre class="s-listing" role="group" tabindex="0" aria-label="Source">{"".join(lines)}</pre>'
