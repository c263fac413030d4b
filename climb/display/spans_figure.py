"""The picture of the times at which the launches of some rungs ran on a GPU, and their blocks waited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from climb.bench.units import time_text
from climb.display import style
from climb.display.label_layout import settle

if TYPE_CHECKING:
    from climb.bench.records.kinds import Span, SpansPoint

#: Launches alternate between this many lines, so that those that overlap can be told apart.
LINES = 2
#: Height of a bar and distance of two lines, in units of a rung's room.
_BAR, _APART = 0.24, 0.28
#: More barriers than this are the steps of a kernel whose blocks stay, and get a tick each.
MANY = 8


@style.styled
def spans_figure(points: Mapping[str, SpansPoint], upto: float | None = None) -> Figure:
    """Draw a bar for each launch of some rungs, by name: from its first block's start to its last block's end.

    The time that a launch waits for the one before it is pale. Ticks on a bar are the barriers of its blocks, where it
    has many. All rungs have one axis of time, from the first block of a run on; ``upto`` ends it, in seconds. Raises
    ValueError if there is nothing to draw.
    """
    if not points:
        raise ValueError("there are no spans to draw")
    figure = style.new_figure(height=0.8 + 0.75 * len(points))
    axes = figure.subplots()
    ends = {name: max(span.ended[1] for span in point.launches) for name, point in points.items()}
    end = min(upto, max(ends.values())) if upto else max(ends.values())
    for row, (name, point) in enumerate(points.items()):
        for number, span in enumerate(point.launches):
            if span.began[0] < end:
                _draw(axes, row + _APART * (number % LINES - (LINES - 1) / 2), span, end)
        if ends[name] <= end:
            axes.text(1e6 * ends[name], row, f"  {time_text(ends[name])}", va="center", fontsize=11, color=style.TEXT)
    axes.set_xlim(0, 1e6 * end * (1.16 if end >= max(ends.values()) else 1.0))
    axes.set_ylim(len(points) - 0.4, -0.6)
    axes.set_yticks(range(len(points)), list(points))
    axes.set_xlabel("µs since the first block began")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    settle(figure)
    said = (f"{name}: {_counted(len(point.launches))} in {time_text(ends[name])}" for name, point in points.items())
    return style.set_alt(figure, "When the launches of each rung ran. " + "; ".join(said) + ".")


def _counted(launches: int) -> str:
    return f"{launches} launch" + "es" * (launches != 1)


def _draw(axes: Axes, y: float, span: Span, end: float) -> None:
    """Draw a launch's bar: pale until its first block has passed its wait, and a tick for each barrier."""
    begins, goes_on, ends = span.began[0], (span.went_on or span.began)[0], min(span.ended[1], end)
    if goes_on > begins:
        axes.barh(y, 1e6 * (min(goes_on, end) - begins), left=1e6 * begins, height=_BAR, color=style.MUTED)
    if goes_on < ends:
        axes.barh(y, 1e6 * (ends - goes_on), left=1e6 * goes_on, height=_BAR, color=style.BEST)
    if len(span.barriers) > MANY:
        inner = [1e6 * first for first, _ in span.barriers if first < end]
        axes.vlines(inner, y - _BAR / 2, y + _BAR / 2, color=style.GROUND, linewidth=0.8)
