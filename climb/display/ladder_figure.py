"""The ladder: the time of each rung, beside the peers and the limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from climb.bench.problem import Size
from climb.bench.units import percent_text, time_text
from climb.display import style
from climb.display.selection import has_mine, select

#: The time axis is logarithmic when the slowest bar or mark takes more than this many times the fastest.
LOG_SPREAD = 20


@style.styled
def ladder_figure(timings: Any, size: Size | None = None, upto: str | None = None) -> Figure:
    """Draw a bar for the time of each rung, the newest in colour; peers and the limit are vertical lines.

    ``timings`` is what ``timings(ladder)`` returns, or a record; ``size`` defaults to the first headline size; ``upto``
    ends the ladder at that rung. Where the reader's own GPU was measured, its bars and lines are drawn, with thin bars
    of the record below. A pending rung has the word in place of its bar. Raises ValueError when there is nothing to
    draw at this size.

    >>> ladder_figure(timings("transpose"), upto="padded")                                 # doctest: +SKIP
    """
    mine = has_mine(timings)
    chosen = select(timings, size, upto, mine=mine)
    beside = {p.name: p for p in select(timings, size, upto).rungs} if mine else {}
    marks = [(p.name, p.median_s, style.PEER) for p in chosen.peers]
    if chosen.limit is not None:
        marks.append(("limit", chosen.limit.seconds, style.LIMIT))
    everything = [p.median_s for p in (*chosen.rungs, *beside.values())] + [seconds for _, seconds, _ in marks]
    everything = everything or [1.0]  # every rung is pending: there are words and no bars
    log = max(everything) > LOG_SPREAD * min(everything)

    rows = len(chosen.names)
    figure = style.new_figure(height=0.85 + (0.5 if beside else 0.38) * (rows + _FLAG * len(marks)))
    axes = figure.add_subplot()
    newest = chosen.rungs[-1] if chosen.rungs else None
    low = min(everything) / 3 if log else 0.0
    high = max(everything) * ((6.0 if beside else 4.0) if log else (1.5 if beside else 1.25))
    for name in chosen.pending:
        _note_pending(axes, low or 0.0, chosen.names.index(name))
    for point in chosen.rungs:
        i, new = chosen.names.index(point.name), point is newest
        y = i - 0.16 if beside else i
        axes.barh(
            y,
            point.median_s - low,
            left=low,
            height=0.42 if beside else 0.62,
            color=style.NEWEST if new else style.MUTED,
        )
        label = time_text(point.median_s) + (" here" if beside else "")
        axes.annotate(
            label,
            (point.median_s, y),
            (5, 0),
            textcoords="offset points",
            va="center",
            weight="bold" if new else "normal",
            bbox=style.HALO,
            zorder=5,
        )
        if point.name in beside:
            other = beside[point.name]
            axes.barh(
                i + 0.24,
                other.median_s - low,
                left=low,
                height=0.22,
                color="white",
                edgecolor=style.QUIET,
                hatch="////",
            )
            axes.annotate(
                f"{time_text(other.median_s)} reference",
                (other.median_s, i + 0.26),
                (5, 0),
                textcoords="offset points",
                va="center",
                bbox=style.HALO,
                zorder=5,
            )
    axes.set_yticks(range(rows), chosen.names)
    axes.set_ylim(rows - 0.4, -0.5 - _FLAG * len(marks))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if log:
        axes.set_xscale("log")
    axes.set_xlim(low, high)
    _draw_marks(axes, marks, rows)
    _time_axis(axes, "x")
    if newest is None:
        axes.set_xticks([])
    axes.set_xlabel(f"time, {'logarithmic, ' if log else ''}shorter is better")
    said = []
    if newest is not None:
        said.append(
            f"Bars of the time of {len(chosen.rungs)} rungs of {chosen.ladder.name}, from {chosen.rungs[0].name} "
            f"({time_text(chosen.rungs[0].median_s)}) to {newest.name} ({time_text(newest.median_s)})."
        )
    said += [f"{name} is pending: it has no time yet." for name in chosen.pending]
    said += [f"{name} takes {time_text(seconds)}." for name, seconds, colour in marks if colour == style.PEER]
    if chosen.limit is not None and newest is not None:
        best = chosen.best
        share = percent_text(chosen.limit.seconds / best.median_s)
        said.append(f"The limit is {time_text(chosen.limit.seconds)}; {best.name} reaches {share} of it.")
    return style.set_alt(figure, " ".join(said))


# Distance between the labels of the vertical lines, in rows of the chart.
_FLAG = 0.62


def _note_pending(axes: Axes, left: float, row: int) -> None:
    """The word at the place where the bar of a pending rung would begin."""
    axes.annotate(
        "pending",
        (left, row),
        (5, 0),
        textcoords="offset points",
        va="center",
        style="italic",
        bbox=style.HALO,
        zorder=5,
    )


def _draw_marks(axes: Axes, marks: Sequence[tuple[str, float, str]], rows: int) -> None:
    """Draw a vertical line across the bars for each mark, with its label above them, on the side where there is room.

    The leftmost line is the highest, so that labels to the right of a line cross no other line.
    """
    to_axes = axes.transData + axes.transAxes.inverted()
    for level, (name, seconds, colour) in enumerate(sorted(marks, key=lambda mark: -mark[1])):
        top = -0.75 - _FLAG * level
        dashes = "-" if name == "limit" else (0, (4, 2))
        axes.plot([seconds, seconds], [rows - 0.4, top - 0.3], color=colour, linewidth=1.6, zorder=4, linestyle=dashes)
        right = float(to_axes.transform((seconds, 0.0))[0]) < 0.6
        axes.annotate(
            f"{name}  {time_text(seconds)}",
            (seconds, top),
            (5 if right else -5, 0),
            textcoords="offset points",
            ha="left" if right else "right",
            color=colour,
            va="center",
            weight="bold",
            bbox=style.HALO,
            zorder=6,
        )


def _time_axis(axes: Axes, which: str) -> None:
    axis = getattr(axes, f"{which}axis")
    axis.set_major_formatter(FuncFormatter(lambda v, _: _time_tick(v)))
    axis.set_minor_formatter(NullFormatter())
    if axes.get_xscale() == "linear":
        axes.locator_params(axis=which, nbins=4)


def _time_tick(seconds: float) -> str:
    if seconds <= 0:
        return "0"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * 0.9999:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
