"""The marks of a figure: its bars and dots."""

from __future__ import annotations

import matplotlib


def colour(artist) -> str:
    """The colour of a bar or of a dot."""
    face = artist.get_facecolor() if hasattr(artist, "get_facecolor") else artist.get_markerfacecolor()
    return matplotlib.colors.to_hex(face)


def dots(axes):
    """The dots of a chart: lines of one point."""
    return [line for line in axes.lines if len(line.get_xdata()) == 1]
