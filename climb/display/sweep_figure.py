"""The sweep: a measured quantity against a size or a parameter, with a second panel for what explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from climb.bench.units import significant, spread
from climb.display import style


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
    """Draw one line per series against a size or a parameter, on a logarithmic axis of base 2.

    ``below`` adds a second panel on the same x for a quantity that explains the first (such as sectors per request).
    ``lines`` draws labelled horizontal lines (a ceiling). ``newest`` names the series to colour, and the others are
    muted; without it each series has its own colour and marker. NaN marks an x at which a series has no value. Raises
    ValueError when a series and x differ in length, when x is not positive, or when there is nothing to draw.

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
                *zip(*_known(xs, values), strict=True),  # a line continues across an x without a value
                color=colour,
                marker=marker,
                zorder=4,
                linestyle="--" if newest not in (None, name) else "-",
            )
        for value in (lines or {}).values() if row == 0 else ():
            axes.axhline(value, color=style.LIMIT, linewidth=1.6)
        if not (logy and row == 0):
            heights = [y for values in panel.values() for _, y in _known(xs, values)]
            axes.set_ylim(0, 1.15 * max([*heights, *((lines or {}).values() if row == 0 else ())]))
        for name, value in (lines or {}).items() if row == 0 else ():
            _label_line(axes, xs, panel, name, value)
        axes.set_title(label, fontsize=11, weight="normal")
        axes.grid(axis="y")
        if len(panel) > 1:
            _label_ends(axes, xs, panel, newest)
    bottom = grid[-1, 0]
    bottom.xaxis.set_major_locator(FixedLocator(_ticks(xs)))
    bottom.xaxis.set_minor_locator(NullLocator())
    bottom.xaxis.set_major_formatter(FuncFormatter(lambda v, _: size_text(v)))
    bottom.set_xlabel(xlabel)
    said = []
    for panel, label in zip(panels, (ylabel, below_label), strict=False):
        for name, values in panel.items():
            known = _known(xs, values)
            first, last = (f"{significant(y)} at {size_text(at)}" for at, y in (known[0], known[-1]))
            said.append(f"{name} goes from {first} to {last} ({label}).")
    return style.set_alt(figure, f"Lines against {xlabel}. " + " ".join(said))


def size_text(value: float) -> str:
    """A size as text for an axis: ``4096`` is ``4 Ki``, ``1048576`` is ``1 Mi``; other numbers stay as they are."""
    for unit, scale in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value >= scale and value % scale == 0:
            return f"{value / scale:g} {unit}"
    return f"{value:g}"


def _known(xs: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """The points of a line at which it has a value, that is, not NaN."""
    return [(x, float(y)) for x, y in zip(xs, values, strict=True) if not math.isnan(y)]


def _ticks(xs: list[float]) -> list[float]:
    """The x that get a number: from the last to the left, each that has room beside its right neighbour."""
    room = (math.log2(max(xs)) - math.log2(min(xs))) / 8 - 1e-9
    kept: list[float] = []
    for x in sorted(set(xs), reverse=True):
        if not kept or math.log2(kept[-1]) - math.log2(x) >= room:
            kept.append(x)
    return kept[::-1]


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
            if not _known(xs, values):
                raise ValueError(f"series '{name}' has no value at all")
    if newest is not None and newest not in panels[0]:
        raise ValueError(f"newest is '{newest}'; the series are {', '.join(panels[0])}")


def _label_line(axes: Axes, xs: list[float], panel: Mapping[str, Sequence[float]], name: str, value: float) -> None:
    """Write the name of a horizontal line at its left end: above it, or below where a series runs just above."""
    axes.get_xlim(), axes.get_ylim()  # a logarithmic axis has no limits before it is asked for them
    to_axes = axes.transData + axes.transAxes.inverted()
    level = to_axes.transform((xs[0], value))[1]
    starts = [to_axes.transform(_known(xs, values)[0]) for values in panel.values()]
    crowded = any(x < 0.2 and 0 < y - level < 0.1 for x, y in starts)
    axes.annotate(
        name,
        (0, value),
        (2, -4 if crowded else 4),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        va="top" if crowded else "baseline",
        color=style.LIMIT,
        weight="bold",
    )


def _label_ends(axes: Axes, xs: list[float], panel: Mapping[str, Sequence[float]], newest: str | None) -> None:
    """Write the names of the lines at their right ends, moved apart where they would touch."""
    axes.get_ylim()  # a logarithmic axis has no limits before it is asked for them
    to_axes = axes.transData + axes.transAxes.inverted()
    ends = [float(to_axes.transform(max(_known(xs, values)))[1]) for values in panel.values()]
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
