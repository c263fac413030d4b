"""The ladder: the time of each rung, above the peers and the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from climb.bench.problem import Size
from climb.bench.units import percent_text, time_text
from climb.display import style
from climb.display.label_layout import quiet_line, settle, text_width, tick_labels_fit
from climb.display.selection import Selected, has_mine, select

#: The time axis is logarithmic when the slowest mark takes more than this many times the fastest.
LOG_SPREAD = 20
# Inches of height: a row, a row with two marks, the space before the peers, axis and margins.
_ROW, _ROW_OF_TWO, _SPACE, _AXIS = 0.27, 0.36, 0.4, 0.75


@dataclass(frozen=True)
class _Row:
    """A row of the chart. ``seconds`` is None for a pending rung; ``reference`` is the record's time beside it."""

    name: str
    seconds: float | None
    colour: str
    marker: str
    y: float
    bold: bool = False
    line: Any = None
    reference: float | None = None


@style.styled
def ladder_figure(timings: Any, size: Size | None = None, upto: str | None = None) -> Figure:
    """Draw the time of each rung, and below them the peers and the limit, each with a vertical line up the ladder.

    ``timings`` is the result of ``timings(ladder)``, or a record; ``size`` defaults to the first headline size;
    ``upto`` ends the ladder at that rung. The best rung is blue, or with ``upto`` that rung. A linear axis has bars, a
    logarithmic one dots, because a bar has no length there. If the reader's own GPU was measured, its marks are pink
    and the record's are beside them. A pending rung has the word in place of its time. A rung that declares its own
    work, a shortcut say, has the limit of that work in a separate row. Raises ValueError when there is nothing to draw
    at this size.

    >>> ladder_figure(timings("transpose"), upto="padded")                                 # doctest: +SKIP
    """
    mine = has_mine(timings, size, upto)
    chosen = select(timings, size, upto, mine=mine)
    beside = {p.name: p.median_s for p in select(timings, size, upto).rungs} if mine else {}
    shown = _emphasised(chosen, upto)
    rows = _rows(chosen, beside, shown.name if shown else "")
    everything = [s for row in rows for s in (row.seconds, row.reference) if s is not None] or [1.0]
    log = max(everything) > LOG_SPREAD * min(everything)

    height = _ROW_OF_TWO if beside else _ROW
    figure = style.new_figure(height=_AXIS + height * (rows[-1].y + 1) + (0.2 if beside else 0))
    axes = figure.add_subplot()
    if log:
        axes.set_xscale("log")
        axes.set_xlim(min(everything) / 1.5, max(everything) * 1.5)
    else:
        axes.set_xlim(0, max(everything) * 1.06)
    for row in rows:
        _draw_row(axes, row, log)
    axes.set_yticks([row.y for row in rows], [row.name for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(row.colour if row.line or row.bold or row.colour == style.LIMIT else style.TEXT)
        label.set_weight("bold" if row.bold else "normal")
    axes.set_ylim(rows[-1].y + 0.6, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(not log)
    _write_values(axes, rows, bool(beside))
    axes.set_xlabel(f"time, {'logarithmic; left' if log else 'shorter'} is faster" if shown else "time")
    _time_axis(figure, axes, log, bool(shown))
    return style.set_alt(figure, _said(chosen, shown, log))


def _emphasised(chosen: Selected, upto: str | None) -> Any | None:
    """Return the rung to draw in blue: the last of a ladder that ends at ``upto``, else the best; None if none has a
    time."""
    if not chosen.rungs:
        return None
    return chosen.best if upto is None else chosen.rungs[-1]


def _rows(chosen: Selected, beside: dict[str, float], shown: str) -> list[_Row]:
    times = {p.name: p.median_s for p in chosen.rungs}
    rows = []
    for y, name in enumerate(chosen.names):
        colour = style.YOURS if beside else style.BEST if name == shown else style.MUTED
        rows.append(_Row(name, times.get(name), colour, "o", y, name == shown, None, beside.get(name)))
    y = len(rows) + _SPACE
    for peer in reversed(chosen.drawn_peers):
        rows.append(_Row(peer.name, peer.median_s, style.PEER, "D", y, line=(0, (4, 2))))
        y += 1
    if chosen.limit is not None:
        rows.append(_Row("limit", chosen.limit.seconds, style.LIMIT, "s", y, line="-"))
    for point in chosen.rungs:
        if (own := chosen.own_limit(point)) is not None:
            y += 1
            rows.append(_Row(f"limit of {point.name}", own.seconds, style.LIMIT, "s", y))
    return rows


def _draw_row(axes: Axes, row: _Row, log: bool) -> None:
    """Draw the mark or marks of a row, and for a peer and the limit the line up through the ladder."""
    if row.seconds is None:
        return
    left = axes.get_xlim()[0]
    if row.line:
        axes.plot([row.seconds] * 2, [-0.6, row.y], color=row.colour, linewidth=1.4, zorder=4, linestyle=row.line)
    marks = [(row.seconds, row.y, row.colour, True)]
    if row.reference is not None:
        marks = [(row.seconds, row.y - 0.2, row.colour, True), (row.reference, row.y + 0.2, style.MUTED, False)]
    for seconds, y, colour, filled in marks:
        if log:
            quiet_line(axes, [left, seconds], [y, y])
            axes.plot(
                [seconds], [y], marker=row.marker, color=colour, markersize=8 if row.bold else 6.5, zorder=6,
                markerfacecolor=colour if filled else style.GROUND, markeredgewidth=1.4, linestyle="none",
            )  # fmt: skip
        else:
            height = 0.62 if row.reference is None else 0.34
            axes.barh(y, seconds, height=height, facecolor=colour if filled else style.GROUND, edgecolor=colour)


def _write_values(axes: Axes, rows: list[_Row], two: bool) -> None:
    """Write the times in a column at the right, clear of lines and marks; with two columns, a heading for each."""
    columns = [[("pending" if row.seconds is None else time_text(row.seconds)) for row in rows]]
    if two:
        columns.append([time_text(row.reference) if row.reference is not None else "" for row in rows])
    right = 0.0
    for column, heading in zip(columns, ("here", "record") if two else ("",), strict=True):
        widths = [text_width(text, row.bold) for text, row in zip(column, rows, strict=True)]
        right += 10 + max(text_width(heading, bold=True), *widths)
        for text, row in zip(column, rows, strict=True):
            own = bool(row.line or row.bold or row.colour == style.LIMIT) and heading != "record"
            _write(
                axes, text, row.y, right, color=row.colour if own else style.TEXT,
                weight="bold" if row.bold and own else "normal", style="italic" if row.seconds is None else "normal",
            )  # fmt: skip
        if heading:
            _write(axes, heading, -1.0, right, color=style.YOURS if heading == "here" else style.QUIET, weight="bold")


def _write(axes: Axes, text: str, y: float, right: float, **look: Any) -> None:
    """Write a text at a row's height, so that it ends ``right`` points beyond the right edge of the plot."""
    if text:
        axes.annotate(
            text, (1.0, y), (right, 0), xycoords=("axes fraction", "data"), textcoords="offset points", ha="right",
            va="center", annotation_clip=False, **look,
        )  # fmt: skip


def _said(chosen: Selected, shown: Any | None, log: bool) -> str:
    said = []
    if shown is not None:
        first, last, best = chosen.rungs[0], chosen.rungs[-1], chosen.best
        said.append(
            f"{'Dots' if log else 'Bars'} of the time of {len(chosen.rungs)} rungs of {chosen.ladder.name}, from "
            f"{first.name} ({time_text(first.median_s)}) to {last.name} ({time_text(last.median_s)})."
        )
        if best is not last:
            said.append(f"The best is {best.name} ({time_text(best.median_s)}).")
    said += [f"{name} is pending: it has no time yet." for name in chosen.pending]
    said += [f"{peer.name} takes {time_text(peer.median_s)}." for peer in chosen.drawn_peers]
    if chosen.limit is not None and shown is not None:
        best = chosen.best
        reached = f"{best.name} reaches {percent_text(chosen.share(best) or 0.0)} of it"
        own = chosen.own_share(best)
        reached += "" if own is None else f", and {percent_text(own)} of the limit of its own operations"
        said.append(f"The limit is {time_text(chosen.limit.seconds)}; {reached}.")
    return " ".join(said)


def _time_axis(figure: Figure, axes: Axes, log: bool, measured: bool) -> None:
    """Number the time axis: as many numbers as fit; on a logarithmic axis 1, 2 and 5, or 1 and 3, or 1."""
    axis = axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda v, _: _time_tick(v)))
    axis.set_minor_formatter(NullFormatter())
    if not measured:
        axis.set_major_locator(NullLocator())
        axis.set_minor_locator(NullLocator())
    elif not log:
        axes.locator_params(axis="x", nbins=4)
    else:
        axis.set_major_locator(LogLocator(subs=(1.0,)))
    settle(figure)
    if log and measured:
        low, high = axes.get_xlim()
        for subs in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            at = [float(v) for v in LogLocator(subs=subs, numticks=99).tick_values(low, high) if low <= v <= high]
            if tick_labels_fit(axes, [_time_tick(v) for v in at], at):
                axis.set_major_locator(FixedLocator(at))
                break


def _time_tick(seconds: float) -> str:
    if seconds <= 0:
        return "0"
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale * 0.9999:
            return f"{seconds / scale:g} {unit}"
    return f"{seconds / 1e-9:g} ns"
