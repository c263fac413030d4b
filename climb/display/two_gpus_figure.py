"""The figure of the book's second GPU: the ratio of each kernel's times, over the share that its bytes need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from climb.bench.data_sheets import sheet_of
from climb.bench.records import BOOK_GPU
from climb.bench.same_sms import CLOSE, SECOND_GPU, Expectation
from climb.display import style

#: The place of a label beside its dot: at the left, at the right, above, below.
_PLACES = {
    "left": (-7, 0, "right", "center"),
    "right": (7, 0, "left", "center"),
    "above": (0, 7, "center", "bottom"),
    "below": (0, -7, "center", "top"),
}


@style.styled
def two_gpus_figure(found: Sequence[Expectation], labels: Mapping[tuple[str, str], str] | None = None) -> Figure:
    """Draw the time on the second GPU over the time on the book's GPU, a dot for each kernel that both have recorded.

    The horizontal axis is the share of the book's GPU's time that the kernel's bytes alone would take. The line shows
    the expected ratio of a kernel that waits for its bandwidth or for something else. ``labels`` names kernels and the
    places of their names: ``{("copy", "scalar"): "left"}``. Raises ValueError if no kernel has both times.
    """
    measured = [one for one in found if one.measured is not None]
    if not measured:
        raise ValueError(f"no kernel has a time on {SECOND_GPU}")
    here, there = sheet_of(BOOK_GPU), sheet_of(SECOND_GPU)
    ratio = here.bandwidth_gb_s / there.bandwidth_gb_s
    figure = style.new_figure(height=4.0)
    axes = figure.subplots()
    for peer in (False, True):
        chosen = [one for one in measured if style.is_peer(one.name) == peer]
        axes.plot(
            [min(1.0, one.memory_s / one.here_s) for one in chosen], [one.measured or 0.0 for one in chosen],
            linestyle="none", marker="s" if peer else "o", markersize=5, alpha=0.7, markeredgewidth=0,
            color=style.PEER if peer else style.BEST,
        )  # fmt: skip
    axes.plot([0, 1 / ratio, 1], [1, 1, ratio], color=style.LIMIT, linewidth=1.8, zorder=3)
    for one in measured:
        if (place := (labels or {}).get((one.ladder, one.name))) is not None:
            dx, dy, ha, va = _PLACES[place]
            axes.annotate(
                f"{one.ladder}: {one.name}", (min(1.0, one.memory_s / one.here_s), one.measured or 0.0), (dx, dy),
                textcoords="offset points", ha=ha, va=va, color=style.TEXT, fontsize=11,
            )  # fmt: skip
    names = [gpu.name.split()[0] for gpu in (there, here)]
    axes.set_title(f"time on the {names[0]} over time on the {names[1]}", fontsize=11, weight="normal")
    axes.set_xlabel(f"share of the {names[1]}'s time that the bytes alone would take")
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    axes.grid(axis="y")
    kept = sum(abs(one.off or 0.0) < CLOSE for one in measured)
    return style.set_alt(
        figure,
        f"{len(measured)} dots, squares for libraries, along a line that is flat at 1 and rises to {ratio:.2f} where "
        f"bytes take all of the time. {kept} dots are within {100 * CLOSE:.0f} % of what was expected of their kernel.",
    )
