"""The fragments picture: the lane of a warp that holds each element of the factors and the result of one product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from climb.display import style

Lanes = Sequence[Sequence[int]] | np.ndarray
Corners = list[tuple[float, float]]

# Inches. Columns of B and C are wider than A's: a register of B lies over two rows, so its number has one column.
_LEFT, _GAP, _TOP = 0.3, 0.42, 0.55
_ROW, _COLUMN, _A_COLUMN = 0.165, 0.235, 0.158


@style.styled
def fragments_figure(a: Lanes, b: Lanes, c: Lanes, *, lane: int) -> Figure:
    """Draw A to the left of C and B above it, each element with the lane that holds it, and ``lane`` marked.

    ``a`` (m x k), ``b`` (k x n) and ``c`` (m x n) have the number of a lane for each element. Neighbouring elements of
    one lane in a row, or in a column of B, share one box. Raises ValueError if the shapes do not form a product.

    >>> fragments_figure(held["A"], held["B"], held["C"], lane=5)                            # doctest: +SKIP
    """
    of_a, of_b, of_c = (np.asarray(of) for of in (a, b, c))
    (m, k), (inner, n) = of_a.shape, of_b.shape
    if inner != k or of_c.shape != (m, n):
        raise ValueError(f"no product: A is {m} x {k}, B {inner} x {n}, C {of_c.shape[0]} x {of_c.shape[1]}")
    height = _TOP + (k + m) * _ROW + _GAP + 0.1
    figure = Figure(figsize=(style.WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, style.WIDTH)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    right, below = _LEFT + k * _A_COLUMN + _GAP, _TOP + k * _ROW + _GAP
    _draw(axes, f"B, {k} x {n}", of_b, (right, _TOP), _COLUMN, lane, down=True)
    _draw(axes, f"A, {m} x {k}", of_a, (_LEFT, below), _A_COLUMN, lane)
    _draw(axes, f"C, {m} x {n}", of_c, (right, below), _COLUMN, lane)
    axes.text(_LEFT, _TOP, f"blue: lane {lane}", fontsize=11, color=style.BEST, weight="bold", va="top")
    said = [
        f"{np.count_nonzero(of == lane)} elements of {name}" for name, of in zip("ABC", (of_a, of_b, of_c), strict=True)
    ]
    return style.set_alt(figure, f"Which lane holds each element of A, B and C. Lane {lane} holds {', '.join(said)}.")


def _draw(
    axes: Axes, title: str, lanes: np.ndarray, corner: tuple[float, float], column: float, lane: int, down: bool = False
) -> None:
    """Draw a matrix at its upper left corner: a box and a number for each run of a lane along rows, or columns."""
    (x, y), turned = corner, lanes.T if down else lanes
    axes.text(x, y - 0.08, title, fontsize=11, color=style.TEXT, weight="bold")
    boxes: dict[bool, list[Corners]] = {False: [], True: []}
    for line, holders in enumerate(turned):
        starts = [i for i in range(len(holders)) if i == 0 or holders[i] != holders[i - 1]]
        for start, end in zip(starts, [*starts[1:], len(holders)], strict=True):
            columns, rows = ((line, line + 1), (start, end)) if down else ((start, end), (line, line + 1))
            (left, right), (top, bottom) = (x + column * at for at in columns), (y + _ROW * at for at in rows)
            marked = bool(holders[start] == lane)
            boxes[marked].append([(left, top), (right, top), (right, bottom), (left, bottom)])
            centre, colour = ((left + right) / 2, (top + bottom) / 2), style.GROUND if marked else style.TEXT
            axes.text(*centre, str(holders[start]), fontsize=11, color=colour, ha="center", va="center_baseline")
    for marked, corners in boxes.items():  # one collection per colour: a smaller file
        face = style.BEST if marked else style.FAINT
        axes.add_collection(PolyCollection(corners, facecolors=face, edgecolors=style.GROUND, linewidths=1.2))
