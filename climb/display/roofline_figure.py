"""The roofline: the rate of each rung at its arithmetic intensity, below the measured ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from climb.bench.problem import Size
from climb.bench.units import rate_text, significant, spread
from climb.display import style
from climb.display.selection import Selected, select


@style.styled
def roofline_figure(
    timings: Any, size: Size | None = None, upto: str | None = None, *, also: Sequence[Any] = ()
) -> Figure:
    """Draw the roofline of the record's GPU, with a dot for each rung at its arithmetic intensity.

    The roof is made of the ceilings ``copy_gb_s`` and ``fp32_tflop_s``, and the ridge, where they meet, is marked.
    ``also`` adds the best rung of other timings, each at its first headline size. Raises ValueError for a problem
    without FLOPs or without bytes, and when the record lacks a ceiling.

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
    _draw_climb(axes, chosen, chosen.rungs, chosen.rungs[-1], peak, gap)
    for other in others:
        _draw_climb(axes, other, [other.best], None, peak, gap)
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


def _draw_climb(axes: Axes, climb: Selected, points: Sequence[Any], newest: Any, peak: float, gap: float) -> None:
    """Draw the dots of one ladder, with their names beside them, below the roof and apart from each other."""
    x = _intensity(climb)
    heights = [p.flops / p.median_s for p in points]
    if len(points) > 1:
        axes.plot([x] * len(points), heights, color=style.MUTED, linewidth=1.2, zorder=3)
    shown = spread([log10(h) for h in heights], gap)
    too_high = max(0.0, max(shown) - (log10(peak) - 0.8 * gap))
    side = -1 if x > axes.get_xlim()[1] / 12 else 1
    where = x * 10 ** (side * 0.035 * _decades(*axes.get_xlim()))
    for point, y, at in zip(points, heights, shown, strict=True):
        new = point is newest
        axes.plot(
            [x], [y], marker="o", markersize=8 if new else 6, color=style.NEWEST if new else style.QUIET, zorder=5
        )
        axes.annotate(
            point.name if newest is not None else f"{climb.ladder.name}: {point.name}",
            (x, y),
            (where, 10 ** (at - too_high)),
            ha="left" if side > 0 else "right",
            va="center",
            weight="bold" if new else "normal",
            color=style.NEWEST if new else style.TEXT,
            bbox=style.HALO,
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
