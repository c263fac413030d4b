"""The figures of the book: ladder, roofline, sweep and overview; the access picture stands in ``access_drawing.py``.

Each function returns a matplotlib figure in the book's style, which a notebook shows as SVG. ``alt_text(figure)`` says
in words what it shows. ``python -m kernels.lab.figures [folder]`` draws the pictures of the README and the front page.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import log10
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from . import style
from .access_drawing import access_figure
from .problem import Size
from .selecting import Selected, has_mine, select
from .style import alt_text, save
from .units import percent_text, rate_text, significant, spread, time_text

__all__ = [
    "access_figure",
    "alt_text",
    "ladder_figure",
    "overview_figure",
    "roofline_figure",
    "save",
    "sweep_figure",
]

#: Bars are drawn on a logarithmic axis when the slowest takes more than this many times the fastest.
LOG_SPREAD = 20


@style.styled
def ladder_figure(timings: Any, size: Size | None = None, upto: str | None = None) -> Figure:
    """Bars of time per rung, first to last, the newest in colour; the peers and the limit as vertical lines.

    ``timings`` is what ``timings(ladder)`` returns, or a record; ``size`` is the first headline size if None; ``upto``
    ends the ladder at that rung. Where the reader's own GPU was measured, its bars and lines are drawn, and those of
    the record thin below them. Raises ValueError when there is nothing to draw at this size.

    >>> ladder_figure(timings("transpose"), upto="padded")                                 # doctest: +SKIP
    """
    mine = has_mine(timings)
    chosen = select(timings, size, upto, mine=mine)
    beside = {p.name: p for p in select(timings, size, upto).rungs} if mine else {}
    marks = [(p.name, p.median_s, style.PEER) for p in chosen.peers]
    if chosen.limit is not None:
        marks.append(("limit", chosen.limit.seconds, style.LIMIT))
    everything = [p.median_s for p in (*chosen.rungs, *beside.values())] + [seconds for _, seconds, _ in marks]
    log = max(everything) > LOG_SPREAD * min(everything)

    rows = len(chosen.rungs)
    figure = style.new_figure(height=0.85 + (0.5 if beside else 0.38) * (rows + _FLAG * len(marks)))
    axes = figure.add_subplot()
    newest = chosen.rungs[-1]
    low = min(everything) / 3 if log else 0.0
    high = max(everything) * ((6.0 if beside else 4.0) if log else (1.5 if beside else 1.25))
    for i, point in enumerate(chosen.rungs):
        new = point is newest
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
            bbox=_HALO,
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
                bbox=_HALO,
                zorder=5,
            )
    axes.set_yticks(range(rows), [p.name for p in chosen.rungs])
    axes.set_ylim(rows - 0.4, -0.5 - _FLAG * len(marks))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if log:
        axes.set_xscale("log")
    axes.set_xlim(low, high)
    _draw_marks(axes, marks, rows)
    _time_axis(axes, "x")
    axes.set_xlabel(f"time, {'logarithmic, ' if log else ''}shorter is better")
    best = chosen.best
    said = [
        f"Bars of the time of {rows} rungs of {chosen.ladder.name}, from {chosen.rungs[0].name} "
        f"({time_text(chosen.rungs[0].median_s)}) to {newest.name} ({time_text(newest.median_s)})."
    ]
    said += [f"{name} takes {time_text(seconds)}." for name, seconds, colour in marks if colour == style.PEER]
    if chosen.limit is not None:
        share = percent_text(chosen.limit.seconds / best.median_s)
        said.append(f"The limit is {time_text(chosen.limit.seconds)}; {best.name} reaches {share} of it.")
    return style.set_alt(figure, " ".join(said))


# How far the labels of the vertical lines stand apart, in rows of the chart.
_FLAG = 0.62
_HALO = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}


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
            bbox=_HALO,
            zorder=6,
        )


@style.styled
def roofline_figure(
    timings: Any, size: Size | None = None, upto: str | None = None, *, also: Sequence[Any] = ()
) -> Figure:
    """The roofline of the GPU of the record, with the rungs as dots that climb at their arithmetic intensity.

    The roof is the ceilings ``copy_gb_s`` and ``fp32_tflop_s``; the ridge, where they meet, is marked. ``also`` adds
    other timings, of each the best rung at its first headline size. Raises ValueError for a problem without FLOPs or
    without bytes, which has no place on this plot, and when the record lacks a ceiling.

    >>> roofline_figure(timings("matmul"), upto="coalesced", also=[timings("fma")])        # doctest: +SKIP
    """
    chosen = select(timings, size, upto)
    others = [select(t) for t in also]
    ceilings = chosen.record.ceilings
    for name in ("copy_gb_s", "fp32_tflop_s"):
        if name not in ceilings:
            known = ", ".join(ceilings) or "none"
            raise ValueError(f"a roofline needs the ceiling {name}; the record has {known}")
    bandwidth, peak = ceilings["copy_gb_s"] * 1e9, ceilings["fp32_tflop_s"] * 1e12
    ridge = peak / bandwidth
    dots = [(chosen.rungs, _intensity(chosen))] + [((o.best,), _intensity(o)) for o in others]
    xs = [x for _, x in dots]
    left, right = min(0.1, *(x / 4 for x in xs), ridge / 30), max(ridge * 12, *(x * 6 for x in xs))
    slowest = min(p.flops / p.median_s for points, _ in dots for p in points)
    bottom, top = min(slowest / 3, left * bandwidth), peak * 2.6

    figure = style.new_figure(height=4.0)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.fill_between([left, ridge, right], [left * bandwidth, peak, peak], bottom, color=style.FAINT, linewidth=0)
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color=style.LIMIT)
    axes.plot([ridge, ridge], [bottom, peak], color=style.LIMIT, linewidth=1, linestyle=(0, (2, 3)))
    axes.plot([ridge], [peak], marker="o", color=style.LIMIT)
    axes.annotate(
        f"{significant(peak / 1e12)} TFLOP/s",
        (right, peak),
        (-2, 5),
        textcoords="offset points",
        ha="right",
        color=style.LIMIT,
        weight="bold",
    )
    middle = (left * ridge) ** 0.5
    axes.annotate(
        f"{significant(bandwidth / 1e9)} GB/s",
        (middle, middle * bandwidth),
        (-6, 6),
        textcoords="offset points",
        ha="right",
        color=style.LIMIT,
        weight="bold",
    )
    axes.annotate(
        f"ridge {significant(ridge, 2)}",
        (ridge, bottom),
        (-4, 5),
        textcoords="offset points",
        ha="right",
        color=style.LIMIT,
    )
    gap = 0.062 * _decades(bottom, top)
    for points, x in dots:
        _draw_climb(axes, points, x, gap, points[-1] if points is chosen.rungs else None)
    axes.set_xlabel("arithmetic intensity, FLOP per byte")
    axes.set_ylabel("achieved")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1e12:g} T" if v >= 1e12 else f"{v / 1e9:g} G"))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_ylabel("achieved, FLOP/s")
    first, last = chosen.rungs[0], chosen.rungs[-1]
    return style.set_alt(
        figure,
        f"Roofline: a slope of {significant(bandwidth / 1e9)} GB/s up to the ridge at {significant(ridge, 2)} FLOP per "
        f"byte, then flat at {significant(peak / 1e12)} TFLOP/s. At {significant(_intensity(chosen))} FLOP per byte "
        f"{chosen.ladder.name} climbs from {first.name} ({rate_text(first.flops, first.median_s, 'flops')}) to "
        f"{last.name} ({rate_text(last.flops, last.median_s, 'flops')}).",
    )


def _draw_climb(axes: Axes, points: Sequence[Any], x: float, gap: float, newest: Any) -> None:
    heights = [p.flops / p.median_s for p in points]
    if len(points) > 1:
        axes.plot([x] * len(points), heights, color=style.MUTED, linewidth=1.2, zorder=3)
    for point, y, shown in zip(points, heights, spread([log10(h) for h in heights], gap), strict=True):
        new = point is newest
        axes.plot(
            [x],
            [y],
            marker="o",
            markersize=8 if new else 6,
            color=style.NEWEST if new else style.QUIET,
            zorder=5,
        )
        side = -1 if x > axes.get_xlim()[1] / 12 else 1
        where = x * 10 ** (side * 0.035 * _decades(*axes.get_xlim()))
        axes.annotate(
            point.name,
            (x, y),
            (where, 10**shown),
            ha="left" if side > 0 else "right",
            va="center",
            weight="bold" if new else "normal",
            color=style.NEWEST if new else style.TEXT,
            bbox=_HALO,
            zorder=4,
        )


def _intensity(chosen: Selected) -> float:
    flops, moved = chosen.rungs[0].flops, chosen.rungs[0].bytes
    if not flops or not moved:
        what = "FLOPs" if not flops else "bytes"
        raise ValueError(f"{chosen.ladder.name} counts no {what}, so it has no arithmetic intensity to draw it at")
    return flops / moved


def _decades(low: float, high: float) -> float:
    return log10(high / low)


@style.styled
def sweep_figure(
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    xlabel: str,
    ylabel: str,
    below: Mapping[str, Sequence[float]] | None = None,
    below_label: str = "",
    lines: Mapping[str, float] | None = None,
    newest: str | None = None,
    logy: bool = False,
) -> Figure:
    """A size or a parameter on a logarithmic axis of base 2 against what was achieved, one line per series.

    ``below`` adds a second panel on the same x, for what explains the first (sectors per request, say); there is no
    second y axis. ``lines`` draws labelled horizontal lines (a ceiling). ``newest`` names the series in colour, the
    others are muted; without it each has its own colour and marker. Raises ValueError when a series and x differ in
    length, when x is not positive, or when there is nothing to draw.

    >>> sweep_figure(strides, {"copy": gb_s}, xlabel="stride, floats", ylabel="GB/s",
    ...              below={"copy": sectors}, below_label="sectors per request")            # doctest: +SKIP
    """
    xs = [float(v) for v in x]
    panels = [series] + ([below] if below else [])
    _check_sweep(xs, panels, newest)
    figure = style.new_figure(height=3.5 if not below else 4.6)
    shape = {"height_ratios": [3, 2]} if below else {}
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw=shape)
    for row, (axes, panel, label) in enumerate(zip(grid[:, 0], panels, (ylabel, below_label), strict=False)):
        axes.set_xscale("log", base=2)
        if logy and row == 0:
            axes.set_yscale("log")
        for i, (name, values) in enumerate(panel.items()):
            colour, marker = style.SERIES[i % len(style.SERIES)], style.MARKERS[i % len(style.MARKERS)]
            if newest is not None:
                colour = style.NEWEST if name == newest else style.QUIET
            axes.plot(
                xs,
                values,
                color=colour,
                marker=marker,
                zorder=4,
                linestyle="--" if newest not in (None, name) else "-",
            )
        for name, value in (lines or {}).items() if row == 0 else ():
            axes.axhline(value, color=style.LIMIT, linewidth=1.6)
            axes.annotate(
                name,
                (0, value),
                (2, 4),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                color=style.LIMIT,
                weight="bold",
            )
        if not (logy and row == 0):
            highest = max([*(max(v) for v in panel.values()), *((lines or {}).values() if row == 0 else ())])
            axes.set_ylim(0, highest * 1.15)
        axes.set_title(label, fontsize=11, weight="normal")
        axes.grid(axis="y")
        if len(panel) > 1:
            _label_ends(axes, xs, panel, newest)
    bottom = grid[-1, 0]
    ticks = xs if len(xs) <= 9 else xs[:: -(-len(xs) // 8)]
    bottom.xaxis.set_major_locator(FixedLocator(ticks))
    bottom.xaxis.set_minor_locator(NullLocator())
    bottom.xaxis.set_major_formatter(FuncFormatter(lambda v, _: size_text(v)))
    bottom.set_xlabel(xlabel)
    said = [
        f"{name} goes from {significant(values[0])} at {size_text(xs[0])} to {significant(values[-1])} at "
        f"{size_text(xs[-1])} ({label})."
        for panel, label in zip(panels, (ylabel, below_label), strict=False)
        for name, values in panel.items()
    ]
    return style.set_alt(figure, f"Lines against {xlabel}. " + " ".join(said))


def size_text(value: float) -> str:
    """A size on an axis: ``4096`` is ``4 Ki``, ``1048576`` is ``1 Mi``; small and odd numbers stay as they are."""
    for unit, scale in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value >= scale and value % scale == 0:
            return f"{value / scale:g} {unit}"
    return f"{value:g}"


def _check_sweep(xs: list[float], panels: Sequence[Mapping[str, Sequence[float]]], newest: str | None) -> None:
    if not xs:
        raise ValueError("a sweep needs at least one x")
    if any(v <= 0 for v in xs):
        raise ValueError(f"x is drawn on a logarithmic axis and must be positive; got {min(xs):g}")
    for panel in panels:
        if not panel:
            raise ValueError("a sweep needs at least one series")
        for name, values in panel.items():
            if len(values) != len(xs):
                raise ValueError(f"series '{name}' has {len(values)} values for {len(xs)} x")
    if newest is not None and newest not in panels[0]:
        raise ValueError(f"newest is '{newest}'; the series are {', '.join(panels[0])}")


def _label_ends(axes: Axes, xs: list[float], panel: Mapping[str, Sequence[float]], newest: str | None) -> None:
    """Names at the right ends of the lines, moved apart where they would touch."""
    last = max(range(len(xs)), key=xs.__getitem__)
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(to_axes.transform((xs[last], values[last]))[1]) for values in panel.values()]
    for i, (name, y) in enumerate(zip(panel, spread(ends, 0.11), strict=True)):
        colour = style.SERIES[i % len(style.SERIES)]
        if newest is not None:
            colour = style.NEWEST if name == newest else style.QUIET
        axes.annotate(
            name,
            (1.01, y),
            xycoords="axes fraction",
            color=colour,
            va="center",
            weight="bold" if name == newest else "normal",
            annotation_clip=False,
        )


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
        first, best = least / c.rungs[0].median_s, least / c.best.median_s
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
        for peer in _same_race(c):
            share = least / peer.median_s
            axes.plot([share], [row], marker="D", color=style.PEER, markersize=7, zorder=6)
            lowest = min(lowest, share)
            text += f", {peer.name} {percent_text(share)}"
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
    _overview_key(axes, any(_same_race(c) for c in chosen))
    return style.set_alt(figure, "Share of the limit that each ladder reaches. " + "; ".join(said) + ".")


def _same_race(chosen: Selected) -> list[Any]:
    """The fastest peer that keeps to the limit; one in a lower precision may pass it and belongs on another chart."""
    held = [p for p in chosen.peers if chosen.limit is not None and p.median_s >= 0.98 * chosen.limit.seconds]
    return held[:1]


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


def draw_readme_pictures(folder: Path) -> list[Path]:
    """Draw the transpose ladder and the overview from the committed records into ``folder``. Returns the files."""
    from .records import MissingRecord, load_record
    from .registry import ladder_names

    transpose = save(ladder_figure(load_record("transpose")), folder / "ladder-transpose.svg")
    found = []
    for name in ladder_names():
        try:
            found.append(load_record(name))
        except MissingRecord as missing:
            print(f"left out: {missing}", file=sys.stderr)
    return [transpose, save(overview_figure(found), folder / "overview.svg")]


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2] / "book" / "_static"
    for written in draw_readme_pictures(target):
        print(written)
