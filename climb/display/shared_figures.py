"""Pictures of several GPUs at work: the messages between them, and the times at which the steps of a plan ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from climb.bench.problem import Size
from climb.bench.units import time_text
from climb.display import style
from climb.display.label_layout import settle
from climb.distributed.plan import STREAMS

if TYPE_CHECKING:  # every chapter with a figure imports this module
    from climb.distributed.ladder import SharedLadder
    from climb.distributed.timelines import Timeline

#: With more messages than this, their sizes are left out of the picture.
MOST_LABELLED = 5


@style.styled
def messages_figure(ladder: SharedLadder, name: str, size: Size, ranks: int = 2) -> Figure:
    """Draw the messages of a rung: a line for each rank, and an arrow for each message, in rounds from left to right.

    Messages of one round travel together. Raises the errors of ``SharedLadder.plans``, and ValueError if nothing is
    sent.
    """
    messages = ladder.messages(name, ranks, size)
    if not messages:
        raise ValueError(f"{ladder.name} '{name}' sends no message on {ranks} ranks")
    figure = style.new_figure(height=1.0 + 0.7 * ranks)
    axes = figure.subplots()
    x, before, labels = 0.0, None, {}
    for one in messages:
        if one.step != before:
            x, before = x + 0.6 * (before is not None), one.step
            labels[x] = one.label
        arrow = {"arrowstyle": "-|>", "color": style.BEST, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", xy=(x, one.target), xytext=(x, one.source), arrowprops=arrow, zorder=2)
        if len(messages) <= MOST_LABELLED:
            middle = (one.source + one.target) / 2
            axes.text(x + 0.06, middle, _kib(one.nbytes), fontsize=11, va="center", color=style.TEXT)
        x += 1
    axes.hlines(range(ranks), -0.3, x, color=style.MUTED, linewidth=1.2, zorder=1)
    axes.set_xlim(-0.3, x)
    axes.set_ylim(ranks - 0.6, -0.4)
    axes.set_yticks(range(ranks), [f"rank {rank}" for rank in range(ranks)])
    axes.set_xticks(list(labels), list(labels.values()), fontsize=11, ha="left")
    axes.tick_params(length=0)
    for side in ("left", "bottom", "right", "top"):
        axes.spines[side].set_visible(False)
    settle(figure)
    said = "; ".join(f"rank {m.source} to rank {m.target}, {_kib(m.nbytes)}" for m in messages[:8])
    return style.set_alt(figure, f"Arrows between {ranks} ranks, from left to right in time: {said}.")


def _kib(nbytes: int) -> str:
    if nbytes >= 1 << 20:
        return f"{nbytes / (1 << 20):.3g} MiB"
    return f"{nbytes / 1024:.3g} KiB" if nbytes >= 1024 else f"{nbytes} B"


@style.styled
def timeline_figure(timelines: Mapping[str, Timeline] | Sequence[Timeline]) -> Figure:
    """Draw when the steps of some rungs ran on rank 0: two rows a rung, kernels above, messages below.

    Every timeline has the same scale. Raises ValueError if there is none.
    """
    named = dict(timelines) if isinstance(timelines, Mapping) else {one.name: one for one in timelines}
    if not named:
        raise ValueError("there is no timeline to draw")
    figure = style.new_figure(height=0.8 + 0.75 * len(named))
    axes = figure.subplots()
    said = []
    for row, (name, one) in enumerate(named.items()):
        for step in one.steps:
            lane = STREAMS.index(step.stream)
            colour = style.BEST if step.kind == "kernel" else style.PEER
            width = 1e6 * (step.end_s - step.start_s)
            axes.barh(row + 0.32 * lane - 0.16, width, left=1e6 * step.start_s, height=0.28, color=colour)
        end = max(step.end_s for step in one.steps)
        axes.text(1e6 * end, row, f"  {time_text(end)}", va="center", fontsize=11, color=style.TEXT)
        said.append(f"{name}: " + ", ".join(f"{s.name} to {time_text(s.end_s)}" for s in one.steps[:6]))
    longest = max(step.end_s for one in named.values() for step in one.steps)
    axes.set_xlim(0, 1.2e6 * longest)
    axes.set_ylim(len(named) - 0.4, -0.6)
    axes.set_yticks(range(len(named)), list(named))
    axes.set_xlabel("µs; blue: kernels, brown: messages and copies")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    settle(figure)
    return style.set_alt(figure, "When the steps of each rung ran on rank 0. " + "; ".join(said) + ".")
