"""The picture that other sites show beside a link to the book: a ladder climbing to its limit, 1200 by 630 pixels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from climb.bench.units import percent_text
from climb.display.selection import select

#: The colours of the logo: its ground, its line, its dots.
_GROUND, _LINE, _DOTS = "#14304a", "#f2b134", "#ffffff"
_TITLE = "Climb to the Roofline"
_IS = "CUDA kernels, one idea at a time, to the speed of light.\nRuns with or without a GPU."


def social_shares(ladder: Any) -> list[tuple[str, float]]:
    """Return each rung's name and its share of the limit. Raises ValueError if the limit is unknown."""
    chosen = select(ladder)
    if chosen.limit is None:
        raise ValueError("the social picture needs a ladder whose limit is known")
    return [(point.name, chosen.limit.seconds / point.median_s) for point in chosen.rungs]


def social_text(shares: Sequence[tuple[str, float]]) -> str:
    """Return what the picture shows; the file carries it, so that a test can tell an old picture."""
    return f"{_TITLE}: " + ", ".join(f"{name} {percent_text(share)}" for name, share in shares)


def draw_social_picture(ladder: Any, path: Path) -> Path:
    """Draw the picture of a ladder from its record into a PNG file, and return the file."""
    shares = social_shares(ladder)
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor=_GROUND)
    figure.text(0.06, 0.83, _TITLE, color=_DOTS, fontsize=50, weight="bold", va="center")
    figure.text(0.062, 0.675, _IS, color="#cfdbe6", fontsize=23, va="center", linespacing=1.5)
    axes = figure.add_axes((0.06, 0.1, 0.82, 0.45), facecolor=_GROUND)
    places = range(len(shares))
    axes.axhline(1.0, color=_LINE, linewidth=5)
    axes.step(places, [share for _, share in shares], where="mid", color="#5d7d99", linewidth=3)
    axes.plot(places, [share for _, share in shares], "o", color=_DOTS, markersize=15)
    for place, (name, share) in zip(places, shares, strict=True):
        below = share > 0.6
        axes.annotate(f"{name}\n{percent_text(share)}", (place, share), (0, -16 if below else 16),
                      textcoords="offset points", ha="center", va="top" if below else "bottom", color="#e6eef5",
                      fontsize=17)  # fmt: skip
    axes.annotate("limit", (1.0, 1.0), (10, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                  va="center", color=_LINE, fontsize=21, weight="bold")  # fmt: skip
    axes.set(xlim=(-0.5, len(shares) - 0.5), ylim=(0, 1.08))
    axes.axis("off")
    figure.savefig(path, dpi=100, metadata={"Description": social_text(shares), "Software": None})
    return path
