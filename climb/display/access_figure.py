"""The access picture: the lanes on top, a colour for each lane, and a height that grows with the cost.

Global memory is drawn as 128-byte lines, one per row, with four sectors in a row; an atomic has a row for each line and
turn. Shared memory is drawn as 32 banks, one row per wavefront.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from climb.display import style
from climb.display.access_cost import LANES, GlobalPicture, SharedPicture, describe, headline, picture_of, plural, runs
from climb.display.label_layout import text_width
from climb.emulator.counters.cost_model import BANKS, LINE

_MARKED_LANES = (0, 8, 16, 24, 31)
# Inches. The columns are as wide as the labels at their sides allow.
_WIDTH = style.WIDTH
_LEFT, _RIGHT = 0.95, 4.15
_COLUMN = (_RIGHT - _LEFT) / LANES
_GRID_HEIGHT = 3.3


@style.styled
def access_figure(access: Any, *more: Any, titles: Sequence[str] = ()) -> Figure:
    """Draw one access of a warp, or several below each other, such as before and after.

    ``access`` is an ``Access`` of the emulator's trace (``kind``, ``width`` in bytes, 32 ``addresses``, 32 ``active``
    flags). ``titles`` names the pictures; the default title is kind and width. Raises ValueError when an access
    is malformed, has no active lane, or is neither global nor shared.

    >>> access_figure(pick(trace(transpose["naive"], size), "global store"))           # doctest: +SKIP
    >>> access_figure(before, after, titles=("tiled", "padded"))                       # doctest: +SKIP
    """
    accesses = (access, *more)
    if titles and len(titles) != len(accesses):
        raise ValueError(f"{len(accesses)} access(es) but {len(titles)} title(s); give one title for each")
    pictures = [picture_of(a) for a in accesses]
    names = titles or [f"{_what(a)}, {plural(a.width, 'byte')} a lane" for a in accesses]
    heights = [_height(p) for p in pictures]
    figure = Figure(figsize=(_WIDTH, sum(heights)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(0, sum(heights))
    axes.set_axis_off()
    top = sum(heights)
    for picture, name, height in zip(pictures, names, heights, strict=True):
        _draw(axes, picture, name, top)
        top -= height
    said = [f"{name}: {describe(p)}" for name, p in zip(names, pictures, strict=True)]
    return style.set_alt(figure, " ".join(said))


@dataclass(frozen=True)
class _Row:
    """One row of the grid: its label, the lanes that request each column (`owners`), and the columns that move."""

    label: str
    owners: Mapping[int, tuple[int, ...]]
    shaded: frozenset[int]
    gap_before: bool = False


def _rows(picture: GlobalPicture | SharedPicture) -> list[_Row]:
    if isinstance(picture, GlobalPicture):
        rows = []
        before = None
        for turn, line in picture.rows:
            owners = {word: lanes for (row, word), lanes in picture.words.items() if row == (turn, line)}
            moved = {s * 8 + w for row, s in picture.sectors if row == (turn, line) for w in range(8)}
            gap = before not in (None, (turn, line - 1))
            rows.append(_Row(_offset((line - picture.lines[0]) * LINE), owners, frozenset(moved), gap))
            before = (turn, line)
        return rows
    everything = frozenset(range(BANKS))
    return [
        _Row(str(i + 1), {bank: lanes for (w, bank), lanes in picture.served.items() if w == i}, everything)
        for i in range(picture.wavefronts)
    ]


def _offset(nbytes: int) -> str:
    for unit, scale in (("M", 1 << 20), ("K", 1 << 10)):
        if nbytes >= 8 * scale and nbytes % scale == 0:
            return f"+{nbytes // scale}{unit}"
    return f"+{nbytes}"


# Inches, measured down from a picture's top.
_TITLE, _COST, _NUMBERS, _LANE_TOP, _LANE_HEIGHT, _GRID_TOP, _BELOW = 0.22, 0.46, 0.76, 0.84, 0.17, 1.36, 0.72


def _row_height(rows: list[_Row]) -> tuple[float, float]:
    gaps = sum(row.gap_before for row in rows)
    height = min(0.2, _GRID_HEIGHT / (len(rows) + 0.4 * gaps))
    return height, 0.4 * height


def _height(picture: GlobalPicture | SharedPicture) -> float:
    rows = _rows(picture)
    row, gap = _row_height(rows)
    return _GRID_TOP + len(rows) * row + sum(r.gap_before for r in rows) * gap + _BELOW


def _draw(axes: Axes, picture: GlobalPicture | SharedPicture, title: str, top: float) -> None:
    rows = _rows(picture)
    row_height, gap = _row_height(rows)
    is_global = isinstance(picture, GlobalPicture)
    centre = (_LEFT + _RIGHT) / 2
    axes.text(centre, top - _TITLE, title, ha="center", va="center", fontsize=12)
    axes.text(centre, top - _COST, headline(picture), ha="center", va="center", fontsize=13, weight="bold")

    boxes = _Boxes()
    lane_bottom = top - _LANE_TOP - _LANE_HEIGHT
    axes.text(_LEFT - 0.1, top - _NUMBERS, "lane", ha="right", va="center")
    for lane in range(LANES):
        face = _colour(lane) if lane in picture.lanes else style.GROUND
        for fill, edge in ((face, "none"), ("none", style.QUIET)):
            boxes.add(_x(lane) + 0.01, lane_bottom, _COLUMN - 0.02, _LANE_HEIGHT, fill, edge)
    for lane in _MARKED_LANES:
        axes.text(_x(lane + 0.5), top - _NUMBERS, str(lane), ha="center", va="center")

    y = top - _GRID_TOP
    axes.text(_LEFT - 0.1, y + 0.18, "byte" if is_global else "wavefront", ha="right", va="center")
    edges: list[_Segment] = []
    arrows: dict[int, tuple[float, float]] = {}
    labelled = _labelled(len(rows), row_height)
    idle = _idle_colour(picture)
    for i, row in enumerate(rows):
        y -= row_height + (gap if row.gap_before else 0)
        for start, length in runs(row.shaded - row.owners.keys()):
            boxes.add(_x(start), y, length * _COLUMN, row_height, idle)
        for column, owners in row.owners.items():
            boxes.add(_x(column), y, _COLUMN, row_height, _colour(owners[0]))
            for lane in owners:
                arrows.setdefault(lane, (_x(column + 0.5), y + row_height / 2))
        edges += [((_x(c), y), (_x(c), y + row_height)) for c in sorted(row.shaded) if c - 1 in row.shaded]
        step = 8 if is_global else 32
        for start in range(0, 32, step):
            boxes.add(_x(start), y, step * _COLUMN, row_height, "none", style.QUIET)
        if i in labelled:
            axes.text(_LEFT - 0.1, y + row_height / 2, row.label, ha="right", va="center")
            who = _lanes_of([lane for owners in row.owners.values() for lane in owners])
            axes.text(_RIGHT + 0.08, y + row_height / 2, who, ha="left", va="center")
    between = Path([end for edge in _joined(edges) for end in edge], [Path.MOVETO, Path.LINETO] * len(_joined(edges)))
    axes.add_patch(
        PathPatch(between, facecolor="none", edgecolor=style.GROUND, linewidth=0.5, clip_on=False, zorder=1.5)
    )
    for lane in _MARKED_LANES:
        if lane in arrows:
            x, end = arrows[lane]
            axes.plot([_x(lane + 0.5), x], [lane_bottom, end], color=style.GROUND, linewidth=2.6, zorder=3)
            axes.plot([_x(lane + 0.5), x], [lane_bottom, end], color=style.TEXT, linewidth=1.0, zorder=4)
            axes.plot(
                [x],
                [end],
                marker="o",
                markersize=3.5,
                color=style.TEXT,
                markeredgecolor=style.GROUND,
                zorder=5,
                markeredgewidth=0.6,
            )
    _draw_columns(axes, is_global, y - 0.15)
    _draw_key(axes, boxes, picture, y - 0.42)
    boxes.draw(axes)


_Segment = tuple[tuple[float, float], tuple[float, float]]


def _joined(segments: list[_Segment]) -> list[_Segment]:
    """Join vertical segments that continue each other, which makes a smaller file."""
    columns: dict[float, list[tuple[float, float]]] = {}
    for (x, low), (_, high) in sorted(segments):
        parts = columns.setdefault(x, [])
        if parts and low <= parts[-1][1] + 1e-6:
            parts[-1] = (parts[-1][0], high)
        else:
            parts.append((low, high))
    return [((x, low), (x, high)) for x, parts in columns.items() for low, high in parts]


def _draw_columns(axes: Axes, is_global: bool, y: float) -> None:
    if is_global:
        for sector in range(4):
            axes.text(_x(8 * sector + 4), y, f"sector {sector}", ha="center", va="center")
        return
    axes.text(_LEFT - 0.1, y, "bank", ha="right", va="center")
    for bank in _MARKED_LANES:
        axes.text(_x(bank + 0.5), y, str(bank), ha="center", va="center")


def _draw_key(axes: Axes, boxes: _Boxes, picture: GlobalPicture | SharedPicture, y: float) -> None:
    if isinstance(picture, GlobalPicture):
        entries = [(f"{picture.used} bytes used", _colour(16))]
        if picture.fetched > picture.used:
            entries.append((f"{picture.fetched - picture.used} bytes moved for nothing", style.WASTE))
    else:
        entries = [("word served", _colour(16))]
        if len(picture.served) < BANKS * picture.wavefronts:
            entries.append(("bank idle", _idle_colour(picture)))
    x = 0.55
    for label, colour in entries:
        boxes.add(x, y - 0.065, 0.13, 0.13, colour, style.QUIET)
        axes.text(x + 0.2, y, label, ha="left", va="center")
        x += 0.2 + text_width(label) / 72 + 0.25


def _idle_colour(picture: GlobalPicture | SharedPicture) -> str:
    """Return the colour of idle cells: unused bytes are always drawn as waste, an idle bank only if the request has
    bank conflicts."""
    return style.FAINT if isinstance(picture, SharedPicture) and not picture.conflicts else style.WASTE


def _labelled(rows: int, row_height: float) -> set[int]:
    """Return the rows with room for a label of 11 points: the first, the last, and evenly spaced rows between them."""
    step = 1
    while step * row_height < 0.17:
        step *= 2
    return {i for i in range(0, rows, step) if i == 0 or rows - 1 - i >= step * 0.6} | {rows - 1}


def _lanes_of(lanes: list[int]) -> str:
    lanes = sorted(set(lanes))
    if len(lanes) == 1:
        return f"lane {lanes[0]}"
    if lanes == list(range(lanes[0], lanes[-1] + 1)):
        return f"lanes {lanes[0]}-{lanes[-1]}"
    return f"{len(lanes)} lanes"


def _x(column: float) -> float:
    return _LEFT + column * _COLUMN


def _colour(lane: int) -> str:
    """Return a lane's colour, from light to dark on a light page so that it also reads in grey: lane 0 is pale, lane 31
    is dark."""
    return style.LANES[lane]


class _Boxes:
    """Rectangles to draw: those of one colour become one path, which makes the file a third as long."""

    def __init__(self) -> None:
        self._corners: dict[tuple[str, str], list[tuple[float, float]]] = {}

    def add(self, x: float, y: float, width: float, height: float, face: str, edge: str = "none") -> None:
        """Add a rectangle with its lower left corner at ``(x, y)``."""
        corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
        self._corners.setdefault((face, edge), []).extend(corners)

    def draw(self, axes: Axes) -> None:
        """Draw the rectangles, outlines on top."""
        codes = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)
        for (face, edge), corners in sorted(self._corners.items(), key=lambda item: item[0][0] == "none"):
            path = Path(corners, codes * (len(corners) // len(codes)))
            axes.add_patch(PathPatch(path, facecolor=face, edgecolor=edge, linewidth=0.5, clip_on=False))


def _what(access: Any) -> str:
    kind = access.kind[0].upper() + access.kind[1:]
    name = getattr(access, "allocation", None)
    return f"{kind} of {name}" if isinstance(name, str) and name and access.kind.startswith("global") else kind
