"""The roofline: the rate of each rung at its arithmetic intensity, below the measured ceilings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atan2, degrees, log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from climb.bench.problem import Size
from climb.bench.roofline import unit
from climb.bench.units import rate_text, significant
from climb.bench.work import ceiling_of, pipe_name
from climb.display import style
from climb.display.label_layout import LabelColumn, settle
from climb.display.selection import Selected, select


@style.styled
def roofline_figure(
    timings: Any,
    size: Size | None = None,
    upto: str | None = None,
    *,
    also: Sequence[Any] = (),
    pipes: Sequence[str] = (),
) -> Figure:
    """Draw the roofline of the record's GPU, with a dot for each rung at its arithmetic intensity.

    The best rung is blue, or with ``upto`` that rung; names are at the right, with leader lines to their dots. The roof
    is made of the ceilings ``copy_gb_s`` and ``fma_tflop_s``, and the ridge, where they meet, is marked. ``also`` adds
    the best rung of other timings, each at its first headline size. ``pipes`` adds roofs of other pipes: "single"
    (additions or multiplications alone on the FMA pipe), "int32", "issue" (multiply-adds as fast as warps can issue),
    "tensor_tf32" and so on. Raises ValueError for a problem without FLOPs or without bytes, and if a ceiling was not
    measured.

    >>> roofline_figure(timings("matmul"), upto="coalesced", also=[timings("fma")])        # doctest: +SKIP
    """
    chosen = select(timings, size, upto)
    others = [select(t) for t in also]
    ceilings = chosen.record.ceilings
    for name in ("copy_gb_s", "fma_tflop_s"):
        if name not in ceilings:
            known = ", ".join(ceilings) or "none"
            raise ValueError(f"a roofline needs the ceiling {name}; the record has {known}")
    bandwidth, peak = ceilings["copy_gb_s"] * 1e9, ceilings["fma_tflop_s"] * 1e12
    ridge = peak / bandwidth
    roofs = {_roof_name(pipe): _roof(pipe, ceilings) for pipe in pipes}
    dots = [(chosen.rungs, _intensity(chosen))] + [((o.best,), _intensity(o)) for o in others]
    xs = [x for _, x in dots]
    left, right = min(0.1, *(x / 4 for x in xs), ridge / 30), max(ridge * 12, *(x * 6 for x in xs))
    slowest = min(p.flops / p.median_s for points, _ in dots for p in points)
    bottom, top = min(slowest / 3, left * bandwidth), max(peak, *roofs.values(), 0.0) * 2.6

    figure = style.new_figure(height=max(3.6, 1.7 + 0.2 * len(chosen.rungs)))
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
        f"{significant(peak / 1e12)} TFLOP/s", (right, peak), (-2, 5), textcoords="offset points", ha="right",
        color=style.LIMIT, weight="bold",
    )  # fmt: skip
    for rate in roofs.values():
        axes.plot([rate / bandwidth, right], [rate, rate], color=style.LIMIT, linewidth=1, linestyle=(0, (5, 3)))
    axes.annotate(
        f"ridge {significant(ridge, 2)}", (ridge, bottom), (-4, 5), textcoords="offset points", ha="right",
        color=style.LIMIT,
    )  # fmt: skip
    column = LabelColumn(axes, highest=peak)
    for name, rate in roofs.items():
        column.add(f"{name}, {significant(rate / 1e12)} T", right, rate, style.LIMIT)
    shown = chosen.best if upto is None else chosen.rungs[-1]
    _draw_climb(axes, column, chosen, shown)
    for other in others:
        _draw_other(axes, column, other)
    axes.set_xlabel("arithmetic intensity, FLOP per byte")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 1e12:g} T" if v >= 1e12 else f"{v / 1e9:g} G"))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_ylabel("achieved, FLOP/s")
    settle(figure, column)
    _name_slope(axes, f"{significant(bandwidth / 1e9)} GB/s", left, ridge, bandwidth)
    first, last = chosen.rungs[0], chosen.rungs[-1]
    return style.set_alt(
        figure,
        f"Roofline: a slope of {significant(bandwidth / 1e9)} GB/s up to the ridge at {significant(ridge, 2)} FLOP per "
        f"byte, then flat at {significant(peak / 1e12)} TFLOP/s. At {significant(_intensity(chosen))} FLOP per byte "
        f"{chosen.ladder.name} climbs from {first.name} ({rate_text(first.flops, first.median_s, 'flops')}) to "
        f"{last.name} ({rate_text(last.flops, last.median_s, 'flops')})."
        + "".join(f" Another roof: {name}, {significant(rate / 1e12)} TFLOP/s." for name, rate in roofs.items()),
    )


#: FLOPs, or operations, of a warp's instruction: two per lane.
_OF_WARP = 64


def _roof(pipe: str, ceilings: Mapping[str, float]) -> float:
    """Return the most operations per second that a pipe allows. Raises ValueError if its ceiling was not measured."""
    ceiling = "fma_tflop_s" if pipe == "single" else ceiling_of(pipe)
    if ceiling not in ceilings:
        raise ValueError(f"the roof of '{pipe}' needs the ceiling {ceiling}; the record has {', '.join(ceilings)}")
    rate = ceilings[ceiling] * unit(ceiling)
    return rate / 2 if pipe == "single" else _OF_WARP * rate if pipe == "issue" else rate


def _roof_name(pipe: str) -> str:
    return {"single": "single operations", "issue": "issue slots"}.get(pipe) or pipe_name(pipe)


def _draw_climb(axes: Axes, column: LabelColumn, climb: Selected, shown: Any) -> None:
    """Draw the dots of the ladder above each other, with their names in a column at the right."""
    x = _intensity(climb)
    heights = [p.flops / p.median_s for p in climb.rungs]
    if len(heights) > 1:
        axes.plot([x] * len(heights), heights, color=style.MUTED, linewidth=1.2, zorder=3)
    for point, y in zip(climb.rungs, heights, strict=True):
        blue = point is shown
        colour = style.BEST if blue else style.MUTED
        axes.plot([x], [y], marker="o", markersize=8 if blue else 6, color=colour, zorder=6 if blue else 5)
        column.add(point.name, x, y, style.BEST if blue else style.QUIET, bold=blue)


def _draw_other(axes: Axes, column: LabelColumn, other: Selected) -> None:
    """Draw the best rung of another ladder, with its name below its dot or, from the right half, in the column."""
    x, best = _intensity(other), other.best
    y = best.flops / best.median_s
    axes.plot([x], [y], marker="o", markersize=6, color=style.MUTED, zorder=5)
    names = f"{other.ladder.name}:", best.name
    low, high = axes.get_xlim()
    if log10(x / low) > 0.5 * log10(high / low):
        column.add(" ".join(names), x, y, style.QUIET)
    else:  # in two lines, so that a long name ends before the ridge
        axes.annotate(
            "\n".join(names), (x, y), (7, -7), textcoords="offset points", va="top", color=style.QUIET, linespacing=1.05
        )


def _name_slope(axes: Axes, text: str, left: float, ridge: float, bandwidth: float) -> None:
    """Write the bandwidth along the slope, above its middle."""
    low = max(left, axes.get_ylim()[0] / bandwidth)
    middle = (low * ridge) ** 0.5
    (x0, y0), (x1, y1) = (axes.transData.transform((x, x * bandwidth)) for x in (low, ridge))
    axes.annotate(
        text, (middle, middle * bandwidth), (-6, 6), textcoords="offset points", ha="center", va="center",
        rotation=degrees(atan2(y1 - y0, x1 - x0)), rotation_mode="anchor", color=style.LIMIT, weight="bold",
    )  # fmt: skip


def _intensity(chosen: Selected) -> float:
    flops, moved = chosen.rungs[0].flops, chosen.rungs[0].bytes
    if not flops or not moved:
        what = "FLOPs" if not flops else "bytes"
        raise ValueError(f"{chosen.ladder.name} counts no {what}, so it has no arithmetic intensity to draw it at")
    return flops / moved
