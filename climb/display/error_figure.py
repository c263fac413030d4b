"""Time against error: the cost of a result, and its accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from climb.bench.units import time_text
from climb.display import style
from climb.display.label_layout import LabelColumn, settle

#: Exponents as plain text: a formula would need its own fonts.
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@style.styled
def error_figure(
    points: Mapping[str, tuple[float, float]],
    *,
    best: str,
    error: str = "largest error, relative to the largest result",
) -> Figure:
    """Draw each implementation as a mark at its time in seconds and its error, on logarithmic axes.

    ``points`` gives (time, error) by name. Low and left is better. ``best`` is blue, peers have their colour, the
    rest in grey. Raises ValueError for a time or an error that is not positive, and for a ``best`` that is not among
    the points.
    """
    if best not in points:
        raise ValueError(f"best is {best!r}; expected one of {', '.join(points)}")
    for name, values in points.items():
        if not min(values) > 0:
            raise ValueError(f"{name} has time and error {values}; expected positive numbers")
    figure = style.new_figure(height=3.8)
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="time, µs", title=error)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{1e6 * v:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: "10" + f"{round(math.log10(v))}".translate(_RAISED)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(axis="both")
    column = LabelColumn(axes)
    for name, (seconds, size) in points.items():
        colour = style.BEST if name == best else style.PEER if style.is_peer(name) else style.MUTED
        marker = "s" if style.is_peer(name) else "o"
        axes.plot([seconds], [size], marker=marker, color=colour, markersize=7, linestyle="", zorder=3)
        column.add(name, seconds, size, style.QUIET if colour == style.MUTED else colour, bold=name == best)
    times = [seconds for seconds, _ in points.values()]
    axes.set_xlim(0.7 * min(times), 1.4 * max(times))
    low, high = axes.get_xlim()
    ticks = [each * 10.0**power for power in range(-7, 1) for each in (1, 2, 5)]
    axes.set_xticks([tick for tick in ticks if low <= tick <= high])
    settle(figure, column)
    said = [f"{name}: {time_text(seconds)}, {size:.1e}." for name, (seconds, size) in points.items()]
    return style.set_alt(figure, f"Marks by time and error. {error}: " + " ".join(said))
