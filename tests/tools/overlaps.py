"""Find what collides in a figure: text on text, text on a line or mark, and text that is cut off.

Boxes and lines are those that the Agg renderer draws, in points. Lines are lines and the outlines of bars and boxes; an
area (a fill without an outline, in a pale colour) may carry text.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.text import Text
from matplotlib.transforms import Affine2D, Bbox

#: Points by which a box may be entered: what the renderer adds around letters.
SLACK = 1.0
#: Points that a text may reach beyond the figure: a letter's overhang.
MARGIN = 0.5


def overlaps(figure: Figure) -> list[str]:
    """The collisions, in words; an empty list for a figure in which everything is clear."""
    if figure.get_layout_engine() is not None:
        figure.get_layout_engine().execute(figure)
    renderer = FigureCanvasAgg(figure).get_renderer()
    scale = 72.0 / figure.dpi
    texts = [(t, _box(t, renderer, scale)) for t in _texts(figure)]
    canvas = figure.bbox.bounds
    width, height = canvas[2] * scale, canvas[3] * scale
    found = []
    for text, box in texts:
        if box.x0 < -MARGIN or box.y0 < -MARGIN or box.x1 > width + MARGIN or box.y1 > height + MARGIN:
            found.append(f"'{_name(text)}' is cut off at the edge of the figure")
    for (one, a), (other, b) in combinations(texts, 2):
        if min(a.x1, b.x1) - max(a.x0, b.x0) > SLACK and min(a.y1, b.y1) - max(a.y0, b.y0) > SLACK:
            found.append(f"'{_name(one)}' lies on '{_name(other)}'")
    lines = list(_lines(figure))
    for text, box in texts:
        inner = Bbox.from_extents(box.x0 + SLACK, box.y0 + SLACK, box.x1 - SLACK, box.y1 - SLACK)
        turn = _turn(text, renderer)
        found += [
            f"'{_name(text)}' is struck by {what}"
            for what, points in lines
            if _strikes(turn.transform(points) * scale, inner)
        ]
    return found


def _name(text: Text) -> str:
    return text.get_text().replace("\n", " ")


def _texts(figure: Figure) -> list[Text]:
    """The texts that are drawn: of the labels of an axis those of the ticks within its limits."""
    hidden: set[int] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            drawn = {id(tick) for tick in axis._update_ticks()} if axes.axison and axis.get_visible() else set()
            for tick in (*axis.majorTicks, *axis.minorTicks):
                for label in (tick.label1, tick.label2):
                    if id(tick) not in drawn or not label.get_visible():
                        hidden.add(id(label))
            if not axes.axison:
                hidden |= {id(axis.label), id(axis.offsetText)}
    return [t for t in figure.findobj(Text) if t.get_visible() and t.get_text().strip() and id(t) not in hidden]


def _turn(text: Text, renderer: object) -> Affine2D:
    """The transform that turns a rotated text level, about its anchor."""
    if not text.get_rotation() % 90:
        return Affine2D()
    text.get_window_extent(renderer)  # places an annotation
    x, y = text.get_transform().transform(text.get_unitless_position())
    return Affine2D().rotate_deg_around(x, y, -text.get_rotation())


def _box(text: Text, renderer: object, scale: float) -> Bbox:
    """The box of the letters in points; of rotated text, as it would be if it were level."""
    rotation = text.get_rotation()
    if rotation % 90:
        text.set_rotation(0)
    box = text.get_window_extent(renderer)
    text.set_rotation(rotation)
    return Bbox.from_extents(box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale)


def _lines(figure: Figure) -> Iterator[tuple[str, np.ndarray]]:
    """Polylines in pixels, with a name: lines with their markers, outlines, spines of the plot."""
    for axes in figure.axes:
        grid = {id(line) for axis in (axes.xaxis, axes.yaxis) for line in axis.get_gridlines()}
        ticks = {id(line) for axis in (axes.xaxis, axes.yaxis) for line in axis.get_ticklines(minor=True)}
        ticks |= {id(line) for axis in (axes.xaxis, axes.yaxis) for line in axis.get_ticklines()}
        for line in axes.findobj(Line2D):
            if id(line) in grid | ticks or not line.get_visible():
                continue
            points = line.get_transform().transform(np.column_stack(line.get_data(orig=False)).astype(float))
            if line.get_linestyle() not in ("None", "none", ""):
                yield f"a line from {points[0].round()} to {points[-1].round()}", points
            if line.get_marker() not in ("None", "none", "", None):
                half = 0.4 * line.get_markersize() * figure.dpi / 72
                for x, y in points:
                    yield "a mark", np.array([[x - half, y], [x + half, y]])
        for patch in axes.patches:
            yield from _outline(axes, patch)
        for collection in axes.collections:
            if isinstance(collection, LineCollection):
                for segment in collection.get_segments():
                    yield "a line", axes.transData.transform(segment)


def _outline(axes: Axes, patch: Patch) -> Iterator[tuple[str, np.ndarray]]:
    path = patch.get_path().transformed(patch.get_transform())
    if isinstance(patch, PathPatch):
        for polygon in path.to_polygons(closed_only=False):
            yield "a box", polygon
        return
    (x0, y0), (x1, y1) = path.get_extents().get_points()
    yield "a bar", np.array([[x0, (y0 + y1) / 2], [x1, (y0 + y1) / 2]])
    yield "a bar", np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])


def _strikes(points: np.ndarray, box: Bbox) -> bool:
    """Return whether a polyline enters the box (Liang and Barsky's clipping, all segments at once)."""
    if len(points) < 2 or box.width <= 0 or box.height <= 0:
        return False
    start, step = points[:-1], np.diff(points, axis=0)
    first, last = np.zeros(len(start)), np.ones(len(start))
    inside = np.isfinite(start).all(1) & np.isfinite(step).all(1)
    for k, (low, high) in enumerate(((box.x0, box.x1), (box.y0, box.y1))):
        with np.errstate(divide="ignore", invalid="ignore"):
            one, two = (low - start[:, k]) / step[:, k], (high - start[:, k]) / step[:, k]
        still = step[:, k] == 0
        inside &= ~still | ((start[:, k] > low) & (start[:, k] < high))
        first = np.where(still, first, np.maximum(first, np.fmin(one, two)))
        last = np.where(still, last, np.minimum(last, np.fmax(one, two)))
    return bool((inside & (first < last)).any())
