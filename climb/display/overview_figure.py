"""The overview: how much of its limit each ladder reaches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from climb.bench.units import percent_text
from climb.display import style
from climb.display.selection import select


@style.styled
def overview_figure(ladders: Sequence[Any]) -> Figure:
    """Draw a row for each ladder, from its first rung to its best, with the best peer, as shares of the limit.

    ``ladders`` holds the timings (or the record) of each ladder, drawn at its first headline size. The times are always
    the record's, never the reader's own. Raises ValueError when it is empty or a limit is unknown, and
    PendingRung where a ladder has no time yet.

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
