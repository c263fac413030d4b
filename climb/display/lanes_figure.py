"""The lanes picture: the time that each lane of a warp works, and the time that it waits for the slowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from climb.display import style
from climb.display.label_layout import settle, wrapped

LANES = 32
#: The width, in points, at which the title of a panel breaks into lines.
_PANEL = 150.0


@style.styled
def lanes_figure(warps: Mapping[str, Sequence[int]], *, xlabel: str = "steps of the loop") -> Figure:
    """Draw one panel per warp, with a bar for the work of each lane and a pale bar for its wait.

    ``warps`` maps a title to the work of lanes 0 to 31, in whole steps. Raises ValueError when there is no warp, when
    a warp does not have 32 lanes, or when a lane's work is negative.

    >>> lanes_figure({"neighbours": counts[:32], "strangers": shuffled[:32]})                 # doctest: +SKIP
    """
    if not warps:
        raise ValueError("the lanes picture needs at least one warp")
    for name, work in warps.items():
        if len(work) != LANES or min(work) < 0:
            raise ValueError(f"'{name}' needs the work of {LANES} lanes, none of it negative; got {list(work)!r}")
    figure = style.new_figure(height=3.3)
    panels = figure.subplots(1, len(warps), sharex=True, sharey=True, squeeze=False)[0]
    said = []
    for axes, (name, work) in zip(panels, warps.items(), strict=True):
        steps = [int(w) for w in work]
        longest, lanes = max(steps), range(LANES)
        axes.barh(lanes, [longest] * LANES, height=0.8, color=style.WASTE)
        axes.barh(lanes, steps, height=0.8, color=style.BEST)
        axes.set_title(f"{wrapped(name, _PANEL)}\n{sum(steps)} of {LANES * longest} lane-steps", fontsize=11)
        axes.set_xlabel(xlabel)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=4)
        said.append(f"{name}: the 32 lanes work {sum(steps)} of the {LANES * longest} steps that the warp takes.")
    panels[0].set_ylim(LANES - 0.4, -0.6)
    panels[0].set_yticks((0, 8, 16, 24, 31))
    panels[0].set_ylabel("lane")
    settle(figure)
    return style.set_alt(figure, "Bars of the work of each lane of a warp. " + " ".join(said))
