"""The sweep: a measured quantity against a size or a parameter, with a second panel for a quantity that explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from climb.bench.units import significant
from climb.display import style
from climb.display.label_layout import LINE, NAME_WIDTH, LabelColumn, settle, tick_labels_fit, wrapped

#: The width, in points, at which the title of a panel breaks into lines.
_TITLE = 290.0


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
    ``lines`` draws labelled horizontal lines (a ceiling). ``newest`` names the series to draw in blue, and the others
    are grey; without it each series has a colour without a meaning, and a single one is blue. A series or line with the
    name of a peer has the peers' colour. Names are at the right, with a leader line if one had to be moved. NaN marks
    an x at which a series has no value. Raises ValueError if a series and x differ in length, if x is not positive, or
    if there is nothing to draw.

    >>> sweep_figure(strides, {"copy": gb_s}, xlabel="stride, floats", ylabel="GB/s",
    ...              below={"copy": sectors}, below_label="sectors per request")            # doctest: +SKIP
    """
    xs = [float(v) for v in x]
    panels = [series] + ([below] if below else [])
    _check_sweep(xs, panels, newest)
    figure = style.new_figure(height=_height([*series, *(lines or {})], bool(below)))
    shape = {"height_ratios": [3, 2]} if below else {}
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, gridspec_kw=shape)
    columns = []
    for row, (axes, panel, label) in enumerate(zip(grid[:, 0], panels, (ylabel, below_label), strict=False)):
        axes.set_xscale("log", base=2)
        if logy and row == 0:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        column = LabelColumn(axes)
        levels = dict(lines or {}) if row == 0 else {}
        looks = _looks(panel, newest)
        for name, values in panel.items():
            known = _known(xs, values)  # a line continues across an x without a value
            axes.plot(
                *zip(*known, strict=True), color=looks[name].colour, marker=looks[name].marker,
                linestyle=looks[name].dashes, zorder=looks[name].depth,
            )  # fmt: skip
            if len(panel) + len(levels) > 1:
                column.add(name, *max(known), looks[name].colour, bold=name == newest)
        for name, value in levels.items():
            colour = style.PEER if style.is_peer(name) else style.LIMIT if _is_limit(name) else style.QUIET
            axes.axhline(value, color=colour, linewidth=1.6, linestyle="-" if _is_limit(name) else (0, (4, 2)))
            column.add(name, math.inf, value, colour, bold=True)
        if not (logy and row == 0):
            heights = [y for values in panel.values() for _, y in _known(xs, values)]
            axes.set_ylim(0, 1.15 * max([*heights, *levels.values()]))
        axes.set_title(wrapped(label, _TITLE), fontsize=11, weight="normal")
        axes.grid(axis="y")
        columns.append(column)
    bottom = grid[-1, 0]
    bottom.xaxis.set_major_locator(FixedLocator(xs))
    bottom.xaxis.set_minor_locator(NullLocator())
    bottom.xaxis.set_major_formatter(FuncFormatter(lambda v, _: size_text(v)))
    bottom.set_xlabel(xlabel)
    settle(figure, *columns)
    bottom.xaxis.set_major_locator(FixedLocator(_ticks(bottom, xs)))
    said = []
    for panel, label in zip(panels, (ylabel, below_label), strict=False):
        for name, values in panel.items():
            known = _known(xs, values)
            first, last = (f"{significant(y)} at {size_text(at)}" for at, y in (known[0], known[-1]))
            said.append(f"{name} goes from {first} to {last} ({label}).")
    return style.set_alt(figure, f"Lines against {xlabel}. " + " ".join(said))


def size_text(value: float) -> str:
    """Format a size for an axis: ``4096`` is ``4 Ki``, ``1048576`` is ``1 Mi``; other numbers stay unchanged."""
    for unit, scale in (("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value >= scale and value % scale == 0:
            return f"{value / scale:g} {unit}"
    return f"{value:g}"


def _known(xs: Sequence[float], values: Sequence[float]) -> list[tuple[float, float]]:
    """Return the points of a line at which it has a value, that is, not NaN."""
    return [(x, float(y)) for x, y in zip(xs, values, strict=True) if not math.isnan(y)]


def _ticks(axes: Axes, xs: list[float]) -> list[float]:
    """Return the x that get a number: from the last to the left, each that has room beside its right neighbour."""
    kept: list[float] = []
    for x in sorted(set(xs), reverse=True):
        if tick_labels_fit(axes, [size_text(v) for v in (x, *kept[:1])], [x, *kept[:1]]):
            kept.insert(0, x)
    return kept


def _height(names: Sequence[str], two: bool) -> float:
    """Return the height in inches: more if the column of names would be longer than the panel, which holds ten
    lines."""
    more = max(0, sum(1 + wrapped(name, NAME_WIDTH).count("\n") for name in names) - 10) * LINE / 72
    return 4.5 + 5 / 3 * more if two else 3.3 + more


def _is_limit(name: str) -> bool:
    """Return whether a horizontal line is a limit or a ceiling, which are green, and not a mark such as "equally
    fast"."""
    return any(word in name.lower() for word in ("limit", "ceiling", "ridge", "peak"))


@dataclass(frozen=True)
class _Look:
    """The look of a line."""

    colour: str
    marker: str
    dashes: Any = "-"
    depth: float = 4


def _looks(panel: Mapping[str, Sequence[float]], newest: str | None) -> dict[str, _Look]:
    """Choose the looks: blue for the line under discussion, the peers' colour for a peer, grey or a neutral colour for
    others."""
    looks: dict[str, _Look] = {}
    equal = 0
    alone = len(panel) == 1 and newest is None
    for i, name in enumerate(panel):
        marker = style.MARKERS[i % len(style.MARKERS)]
        if style.is_peer(name):
            looks[name] = _Look(style.PEER, "D", (0, (4, 2)))
        elif name == newest or alone:
            looks[name] = _Look(style.BEST, "o", depth=5)
        elif newest is not None:
            looks[name] = _Look(style.QUIET, marker, "--")
        else:
            which = equal % len(style.SERIES)
            looks[name] = _Look(style.SERIES[which], marker, style.DASHES[which])
            equal += 1
    return looks


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
