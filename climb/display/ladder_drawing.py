"""The ladder: time per rung beside the peers and the limit; and the overview of all ladders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from climb.bench.problem import Size
from climb.bench.units import percent_text, time_text
from climb.display import style
from climb.display.selecting import has_mine, select

#: Bars are drawn on a logarithmic axis when the slowest takes more than this many times the fastest.
LOG_SPREAD = 20


@style.styled
def ladder_figure(timings: Any, size: Size | None = None, upto: str | None = None) -> Figure:
    """Bars of time per rung, first to last, the newest in colour; the peers and the limit as vertical lines.

    ``timings`` is what ``timings(ladder)`` returns, or a record; ``size`` is the first headline size if None; ``upto``
    ends the ladder at that rung. Where the reader's own GPU was measured, its bars and lines are drawn, and those of
    the record thin below them. A pending rung has the word in place of its bar. Raises ValueError when there is nothing
    to draw at this size.

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


# How far the labels of the vertical lines stand apart, in rows of the chart.
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
    """A flag for each mark: its pole crosses the bars, its cloth flies above them, to the side where there is room.

    The leftmost pole is the highest, so that cloths which fly to the right meet no other pole.
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


@style.styled
def overview_figure(ladders: Sequence[Any]) -> Figure:
    """All ladders at a glance: a row each, from the first rung to the best, beside the peers, as a share of the limit.

    ``ladders`` holds the timings (or the record) of each ladder, drawn at its first headline size; what is drawn is the
    record, never the reader's own times. Raises ValueError when it is empty or a limit is unknown.

    >>> overview_figure([timings(name) for name in ladder_names()])                         # doctest: +SKIP
    """
    if not ladders:
        raise ValueError("the overview needs at least one ladder")
    chosen = [select(t) for t in ladders]
    for c in chosen:
        if c.limit is None:
            raise ValueError(f"the limit of {c.ladder.name} is not known: its record lacks the ceiling that it needs")
    figure = style.new_figure(height=1.1 + 0.52 * len(chosen))
    axes = figure.add_subplot()
    said = []
    lowest = 1.0
    for row, c in enumerate(chosen):
        least = c.limit.seconds
        best = least / c.best.median_s
        first = least / c.rungs[0].median_s
        axes.plot([first, best], [row, row], color=style.MUTED, linewidth=3, zorder=2, solid_capstyle="round")
        axes.plot([first], [row], marker="o", color="white", markeredgecolor=style.QUIET, markersize=7, zorder=4)
        axes.plot([best], [row], marker="o", color=style.NEWEST, markersize=9, zorder=5)
        axes.annotate(
            percent_text(best),
            (1.0, row),
            (8, 0),
            textcoords="offset points",
            va="center",
            color=style.NEWEST,
            weight="bold",
            annotation_clip=False,
        )
        lowest = min(lowest, first)
        text = f"{c.ladder.name}: first rung {percent_text(first)}, best {percent_text(best)}"
        if c.peer is not None:
            share = least / c.peer.median_s
            axes.plot([share], [row], marker="D", color=style.PEER, markersize=7, zorder=6)
            lowest = min(lowest, share)
            text += f", {c.peer.name} {percent_text(share)}"
        said.append(text)
    axes.axvline(1.0, color=style.LIMIT, linewidth=1.6)
    axes.set_xscale("log")
    axes.set_xlim(lowest / 1.6, (1.6 / lowest) ** 0.2)
    axes.set_ylim(len(chosen) - 0.5, -0.8)
    axes.set_yticks(range(len(chosen)), [c.ladder.name for c in chosen])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("share of the limit, logarithmic")
    _overview_key(axes, any(c.peer is not None for c in chosen))
    return style.set_alt(figure, "Share of the limit that each ladder reaches. " + "; ".join(said) + ".")


def _overview_key(axes: Axes, peers: bool) -> None:
    entries = [("o", "white", style.QUIET, "first rung"), ("o", style.NEWEST, style.NEWEST, "best rung")]
    if peers:
        entries.append(("D", style.PEER, style.PEER, "vendor's library"))
    x = 0.0
    for marker, face, edge, label in entries:
        axes.plot(
            [x + 0.01],
            [1.04],
            marker=marker,
            color=face,
            markeredgecolor=edge,
            transform=axes.transAxes,
            clip_on=False,
            linestyle="none",
        )
        axes.annotate(label, (x + 0.035, 1.04), xycoords="axes fraction", va="center", annotation_clip=False)
        x += 0.06 + 0.019 * len(label)
    axes.annotate(
        "limit",
        (1.0, 1.04),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="center",
        color=style.LIMIT,
        weight="bold",
        annotation_clip=False,
    )
