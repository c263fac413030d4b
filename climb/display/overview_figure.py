"""The overview: the share of its limit that each ladder reaches."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from climb.bench.units import percent_text
from climb.display import style
from climb.display.label_layout import settle, text_width, tick_labels_fit
from climb.display.selection import select


@style.styled
def overview_figure(ladders: Sequence[Any]) -> Figure:
    """Draw a row for each ladder, from its first rung to its best, with the best peer, as shares of the limit.

    Where the best rung is a shortcut, a hollow mark shows its share of the limit of its own operations. ``ladders``
    holds the timings (or the record) of each ladder, drawn at its first headline size. The times are always the
    record's, never the reader's own. Raises ValueError if it is empty or a limit is unknown, and PendingRung if a
    ladder has no time yet.

    >>> overview_figure([timings(name) for name in ladder_names()])                         # doctest: +SKIP
    """
    if not ladders:
        raise ValueError("the overview needs at least one ladder")
    chosen = [select(t) for t in ladders]
    for c in chosen:
        if c.limit is None:
            raise ValueError(f"the limit of {c.ladder.name} is not known: its record lacks the ceiling that it needs")
    figure = style.new_figure(height=1.3 + 0.36 * len(chosen))
    axes = figure.add_subplot()
    said = []
    lowest = highest = 1.0
    widest = max(text_width(percent_text(c.share(c.best)), bold=True) for c in chosen)
    for row, c in enumerate(chosen):
        best, first, own = c.share(c.best), c.share(c.rungs[0]), c.own_share(c.best)
        axes.plot([first, best], [row, row], color=style.MUTED, linewidth=2.5, zorder=2, solid_capstyle="round")
        axes.plot([first], [row], marker="o", color=style.GROUND, markeredgecolor=style.QUIET, markersize=7, zorder=4)
        axes.plot([best], [row], marker="o", color=style.BEST, markersize=9, zorder=5)
        axes.annotate(
            percent_text(best),
            (1.0, row),
            (8 + widest, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            color=style.BEST,
            weight="bold",
            annotation_clip=False,
        )
        lowest, highest = min(lowest, first), max(highest, best)
        text = f"{c.ladder.name}: first rung {percent_text(first)}, best {percent_text(best)}"
        if c.peer is not None:
            share = c.share(c.peer)
            axes.plot([share], [row], marker="D", color=style.PEER, markersize=7, zorder=6)
            lowest = min(lowest, share)
            text += f", {c.peer.name} {percent_text(share)}"
        if own is not None:
            axes.plot([own], [row], marker="o", color=style.GROUND, markeredgecolor=style.BEST, markersize=7, zorder=7)
            text += f", which is {percent_text(own)} of the limit of its own operations"
        said.append(text)
    axes.set_title(" ", fontsize=12)  # room for the key
    axes.axvline(1.0, color=style.LIMIT, linewidth=1.6)
    axes.set_xscale("log")
    axes.set_xlim(lowest / 1.6, max(1.6, 1.3 * highest))
    axes.set_ylim(len(chosen) - 0.4, -0.7)
    axes.set_yticks(range(len(chosen)), [c.ladder.name for c in chosen])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("share of the limit, logarithmic")
    settle(figure)
    _tick_shares(axes)
    _overview_key(axes, any(c.peer is not None for c in chosen), any(c.own_share(c.best) is not None for c in chosen))
    return style.set_alt(figure, "Share of the limit that each ladder reaches. " + "; ".join(said) + ".")


def _tick_shares(axes: Axes) -> None:
    """Number every decade of shares, or every second one where they would touch."""
    low, high = axes.get_xlim()
    decades = [10.0**e for e in range(ceil(log10(low)), floor(log10(high)) + 1)]
    texts = [f"{100 * v:g} %" for v in decades]
    step = 1 if tick_labels_fit(axes, texts, decades) else 2
    axes.xaxis.set_major_locator(FixedLocator(decades[::-1][::step]))


def _overview_key(axes: Axes, peers: bool, shortcuts: bool) -> None:
    """Explain the marks above the plot, from the left edge of the figure; the limit's name is in its colour."""
    entries = [
        ("o", style.GROUND, style.QUIET, "first rung"),
        ("o", style.BEST, style.BEST, "best rung"),
        ("o", style.GROUND, style.BEST, "of own limit"),
        ("D", style.PEER, style.PEER, "library"),
        ("|", style.LIMIT, style.LIMIT, "limit"),
    ]
    points = 72.0 / axes.figure.dpi
    box = axes.get_window_extent()
    x, y = 8.0, points * box.y1 + 11  # measured from the corner of the figure
    for marker, face, edge, label in entries:
        if (marker == "D" and not peers) or (label == "of own limit" and not shortcuts):
            continue
        axes.annotate(label, (x + 9, y), xycoords="figure points", va="center", annotation_clip=False)
        axes.plot(
            [(x / points - box.x0) / box.width], [1 + 11 / points / box.height], marker=marker, color=face,
            markeredgecolor=edge, markeredgewidth=2 if marker == "|" else 1, markersize=10 if marker == "|" else 7,
            transform=axes.transAxes, clip_on=False, linestyle="none",
        )  # fmt: skip
        x += 9 + text_width(label) + 18
