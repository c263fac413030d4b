"""A picture of the reasons why warps wait: one bar per launch, divided by Nsight Compute's stall reasons."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from climb.bench.sections import reasons_by_share
from climb.display import style
from climb.display.label_layout import settle
from climb.display.profile_table import Profiled, launch_counts

#: A reason with this percentage of some launch's cycles has its own colour; all others are "other reasons".
LEAST = 15


@style.styled
def stalls_figure(launches: Mapping[str, Profiled]) -> Figure:
    """Draw a bar for each launch: the share of its warps' cycles by reason, largest first, then issuing and the rest.

    A reason's name is below its part of a bar. Raises LookupError if a launch has no stall reasons in the records, and
    ValueError for no launch or more reasons than there are colours.
    """
    if not launches:
        raise ValueError("the picture needs at least one launch")
    shares = {label: reasons_by_share(launch_counts(launch)) for label, launch in launches.items()}
    named = list(dict.fromkeys(r for found in shares.values() for r, share in found if share >= LEAST))
    if len(named) > len(style.SERIES):
        raise ValueError(f"{len(named)} reasons, but {len(style.SERIES)} colours: {', '.join(named)}")
    colour = dict(zip(named, style.SERIES, strict=False))
    figure = style.new_figure(height=0.6 + 0.85 * len(launches))
    axes = figure.subplots()
    said = []
    for row, (label, found) in enumerate(shares.items()):
        start = 0.0
        for reason, share in found:
            if reason not in colour:
                continue
            axes.barh(row, share, left=start, height=0.42, color=colour[reason], edgecolor=style.GROUND)
            if share >= LEAST:
                axes.annotate(
                    reason, (start, row + 0.24), (1, -2), textcoords="offset points", va="top", color=colour[reason]
                )
            start += share
        axes.barh(row, 100 - start, left=start, height=0.42, color=style.FAINT, edgecolor=style.GROUND)
        largest = ", ".join(f"{reason} {share:.0f} percent" for reason, share in found if share >= LEAST)
        said.append(f"{label}: {largest or 'no large reason'}")
    axes.set_ylim(len(launches) - 0.35, -0.45)
    axes.set_yticks(range(len(launches)), list(launches))
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of the cycles of warps; pale: issuing, and other reasons")
    axes.tick_params(length=0)
    axes.spines["left"].set_visible(False)
    settle(figure)
    return style.set_alt(figure, "What warps wait for. " + "; ".join(said) + ".")
