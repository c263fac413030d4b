"""Place text without collisions: the width of a text, and columns of labels beside a plot with leader lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

from climb.display import style

#: Points between the plot and its column of labels.
_GAP = 11.0
#: Height of a line of text, in points, with the space to the next.
LINE = 13.5
#: The width, in points, at which a name in a column breaks into lines.
NAME_WIDTH = 118.0
_FAMILY, _SIZE = "DejaVu Sans", 11.0


@lru_cache(maxsize=4096)
def text_width(text: str, bold: bool = False, size: float = _SIZE) -> float:
    """Return the width of a line of text in points."""
    font = FontProperties(family=_FAMILY, size=size, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, False)[0])


def wrapped(text: str, width: float, bold: bool = False) -> str:
    """Break a text at spaces into lines of at most ``width`` points and of about the same length."""
    letters = len(text)
    while letters > 1:
        lines = textwrap.wrap(text, letters, break_long_words=False, break_on_hyphens=False)
        if max(text_width(line, bold) for line in lines) <= width:
            break
        letters -= 1
    lines = textwrap.wrap(text, max(letters, 1), break_long_words=False, break_on_hyphens=False)
    shortest = letters
    while shortest > 1 and len(textwrap.wrap(text, shortest - 1, break_long_words=False)) == len(lines):
        shortest -= 1
    return "\n".join(textwrap.wrap(text, max(shortest, 1), break_long_words=False, break_on_hyphens=False))


def apart(centres: Sequence[float], heights: Sequence[float], low: float, high: float) -> list[float]:
    """Move boxes of these heights as little as needed so that none overlap, in the same order, within the bounds.

    If they do not all fit between ``low`` and ``high``, they extend below ``low``.
    """
    order = sorted(range(len(centres)), key=lambda i: centres[i])
    groups: list[tuple[float, float, list[int]]] = []  # centre, height, members
    for i in order:
        groups.append((_within(centres[i], heights[i], low, high), heights[i], [i]))
        while len(groups) > 1:
            (below, h1, first), (above, h2, second) = groups[-2], groups[-1]
            if above - below >= (h1 + h2) / 2 - 1e-9:
                break
            members, height = first + second, h1 + h2
            mean = (below * len(first) + above * len(second)) / len(members)
            groups[-2:] = [(_within(mean, height, low, high), height, members)]
    placed = [0.0] * len(centres)
    for centre, height, members in groups:
        bottom = centre - height / 2
        for member in members:
            placed[member] = bottom + heights[member] / 2
            bottom += heights[member]
    return placed


def _within(centre: float, height: float, low: float, high: float) -> float:
    return min(max(centre, low + height / 2), high - height / 2)


@dataclass
class LabelColumn:
    """Names beside the right edge of a plot, each at the height of its point, with a leader line if it had to be moved.

    Add all labels, then call :func:`settle`, which lays out the figure and moves the labels apart. ``highest`` is the
    greatest y, in data units, that a label may be centred at.
    """

    axes: Axes
    highest: float | None = None
    _labels: list[tuple[Text, float, float, str]] = field(default_factory=list)

    def add(self, text: str, x: float, y: float, colour: str, *, bold: bool = False, width: float = NAME_WIDTH) -> None:
        """Add a label for the point ``(x, y)``; an infinite x means the right edge of the plot.

        Text breaks into lines at ``width``, in points.
        """
        text = wrapped(text, width, bold)
        label = self.axes.annotate(
            text, (1.0, 0.5), (_GAP, 0), xycoords="axes fraction", textcoords="offset points", va="center",
            color=colour, weight="bold" if bold else "normal", annotation_clip=False, linespacing=1.05,
        )  # fmt: skip
        self._labels.append((label, x, y, colour))

    def place(self) -> None:
        """Move the labels apart and draw the leader lines; the plot must have its final place and limits."""
        if not self._labels:
            return
        axes, figure = self.axes, self.axes.figure
        box = axes.get_window_extent()
        point = figure.dpi / 72.0
        to_axes = axes.transData + axes.transAxes.inverted()
        edge = axes.get_xlim()[1]
        marks = [to_axes.transform((min(x, edge), y)) for _, x, y, _ in self._labels]
        heights = [LINE * point * (text.get_text().count("\n") + 1) / box.height for text, *_ in self._labels]
        high = 1.0 + 4 * point / box.height  # below the title, which may be as wide as the figure
        if self.highest is not None:
            high = float(to_axes.transform((1.0, self.highest))[1]) + 0.5 * max(heights)
        placed = apart([float(y) for _, y in marks], heights, -0.1, high)
        for (text, _, _, colour), (x, y), at in zip(self._labels, marks, placed, strict=True):
            text.xy = (1.0, at)
            away = abs(at - y) * box.height / point > 5 or (1 - x) * box.width / point > 14
            if away:
                end = 1 + (_GAP - 2.5) * point / box.width
                axes.plot(
                    [x, end], [y, at], transform=axes.transAxes, color=colour, linewidth=0.7, clip_on=False, zorder=2.5
                )


def settle(figure: Figure, *columns: LabelColumn) -> None:
    """Lay out the figure once, then place the columns of labels."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")
    for column in columns:
        column.place()


def tick_labels_fit(axes: Axes, texts: Sequence[str], at: Sequence[float]) -> bool:
    """Return whether x axis labels at these data positions leave space between each other. Needs the final layout."""
    point = axes.figure.dpi / 72.0
    where = [float(axes.transData.transform((x, 1.0))[0]) / point for x in at]
    halves = [text_width(text) / 2 for text in texts]
    return all(
        b - a >= left + right + 4 for a, b, left, right in zip(where, where[1:], halves, halves[1:], strict=False)
    )


def quiet_line(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """Draw a faint guide from a name to its mark."""
    axes.plot(x, y, color=style.GRID, linewidth=1.0, zorder=1, solid_capstyle="butt")
