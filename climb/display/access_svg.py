"""The access picture as a small SVG for a page, drawn from the same data as ``access_figure``.

Colours are the variables of ``palette.css``, so the picture follows the page's theme; where the variables are absent,
as in Jupyter, it has the light colours. All cells of a colour are one path, so a picture takes few bytes.
"""

from __future__ import annotations

from html import escape
from typing import Any

from climb.display.access_cost import LANES, GlobalPicture, SharedPicture, describe, headline, picture_of, runs
from climb.display.palette import PALETTE
from climb.emulator.counters.cost_model import LINE

#: Units of the picture, about CSS pixels: the columns are words or banks.
_LEFT, _COLUMN, _WIDTH = 72, 10, 400
_LANE_TOP, _LANE_HEIGHT, _GRID_TOP = 34, 12, 60
_TALL, _LOW, _MANY = 12, 6, 10
#: Eight neighbouring lanes share a colour.
_SHADES = ("lane-3", "lane-11", "lane-19", "lane-28")


def access_svg(access: Any) -> str:
    """Draw one access of a warp as SVG: the lanes on top, below them the sectors or banks that serve each.

    Raises ValueError like ``access_figure``.
    """
    picture = picture_of(access)
    rows = _rows(picture)
    height = _TALL if len(rows) <= _MANY else _LOW
    bottom = _GRID_TOP + height * len(rows)
    cells: list[list[tuple[int, float, int, int]]] = [[] for _ in _SHADES]
    for lane in picture.lanes:
        cells[_shade(lane)].append((lane, _LANE_TOP, 1, _LANE_HEIGHT))
    spare: list[tuple[int, float, int, int]] = []
    for n, (_, owners, moved) in enumerate(rows):
        y = _GRID_TOP + height * n
        for column, lanes in owners.items():
            cells[_shade(lanes[0])].append((column, y, 1, height))
        spare += [(start, y, length, height) for start, length in runs(moved - owners.keys())]
    lost = isinstance(picture, GlobalPicture) or picture.conflicts > 0
    out = [
        f'<svg class="rl-access" role="img" aria-label="{escape(describe(picture))}" '
        f'viewBox="0 0 {_WIDTH} {bottom + 18}" style="max-width:26rem" font-size="11">',
        _text(4, 12, f"{_what(access)}: {headline(picture)}", "rl-head"),
        _text(_LEFT - 6, _LANE_TOP + 10, "lanes", "rl-end"),
        _path(spare, "waste" if lost else "faint"),
        *(_path(one, colour) for one, colour in zip(cells, _SHADES, strict=True)),
        _grid(picture, len(rows), height),
        *_labels(picture, [label for label, _, _ in rows], height, bottom),
        "</svg>",
    ]
    return "".join(out)


def _what(access: Any) -> str:
    """The kind of access, in global memory with the array: ``global load of B``."""
    name = getattr(access, "allocation", None)
    return f"{access.kind} of {name}" if name and access.kind.startswith("global") else str(access.kind)


_Row = tuple[str, dict[int, tuple[int, ...]], set[int]]


def _rows(picture: GlobalPicture | SharedPicture) -> list[_Row]:
    """Return, for each row, its label, the lanes that request each column, and the columns that move or could serve."""
    if isinstance(picture, SharedPicture):
        return [
            (str(n + 1), {bank: lanes for (w, bank), lanes in picture.served.items() if w == n}, set(range(LANES)))
            for n in range(picture.wavefronts)
        ]
    rows: list[_Row] = []
    for row in picture.rows:
        owners = {word: lanes for (other, word), lanes in picture.words.items() if other == row}
        moved = {8 * sector + word for other, sector in picture.sectors if other == row for word in range(8)}
        rows.append((f"+{(row[1] - picture.lines[0]) * LINE}", owners, moved))
    return rows


def _shade(lane: int) -> int:
    return lane * len(_SHADES) // LANES


def _paint(name: str) -> str:
    return f"var(--rl-{name},{PALETTE[name].light})"


def _path(cells: list[tuple[int, float, int, int]], colour: str) -> str:
    """Draw all cells (column, top, columns wide, height) as one path; stacked cells are joined."""
    if not cells:
        return ""
    merged: list[tuple[int, float, int, int]] = []
    for x, y, w, h in sorted(cells, key=lambda cell: (cell[0], cell[2], cell[1])):
        if merged and (merged[-1][0], merged[-1][2], merged[-1][1] + merged[-1][3]) == (x, w, y):
            merged[-1] = (x, merged[-1][1], w, merged[-1][3] + h)
        else:
            merged.append((x, y, w, h))
    steps = "".join(f"M{_LEFT + x * _COLUMN} {y}h{w * _COLUMN}v{h}h-{w * _COLUMN}z" for x, y, w, h in merged)
    return f'<path style="fill:{_paint(colour)}" d="{steps}"/>'


def _grid(picture: GlobalPicture | SharedPicture, rows: int, height: int) -> str:
    """Draw a frame around the lanes, and around each sector of each line or each wavefront."""
    wide = LANES * _COLUMN
    steps = f"M{_LEFT} {_LANE_TOP}h{wide}v{_LANE_HEIGHT}h-{wide}z"
    steps += "".join(f"M{_LEFT} {_GRID_TOP + n * height}h{wide}" for n in range(rows + 1))
    parts = 4 if isinstance(picture, GlobalPicture) else 1
    steps += "".join(f"M{_LEFT + n * wide // parts} {_GRID_TOP}v{rows * height}" for n in range(parts + 1))
    stroke = _paint("axis")
    return f'<path style="fill:none;stroke:{stroke};stroke-width:.7" d="{steps}"/>'


def _labels(picture: GlobalPicture | SharedPicture, names: list[str], height: int, bottom: int) -> list[str]:
    """Name the first and the last row, every row if there is room, and the meaning of rows and columns."""
    is_global = isinstance(picture, GlobalPicture)
    shown = range(len(names)) if height == _TALL else (0, len(names) - 1)
    out = [_text(_LEFT - 6, _GRID_TOP - 3, "byte" if is_global else "wavefront", "rl-end")]
    out += [_text(_LEFT - 6, _GRID_TOP + height * n + 10 - 2 * (height == _LOW), names[n], "rl-end") for n in shown]
    if is_global:
        centres = ((8 * n + 4, f"sector {n}") for n in range(4))
    else:
        centres = ((bank + 0.5, str(bank)) for bank in (0, 8, 16, 24, 31))
        out.append(_text(_LEFT - 6, bottom + 13, "bank", "rl-end"))
    out += [_text(_LEFT + at * _COLUMN, bottom + 13, name, "rl-mid") for at, name in centres]
    lanes = (0, 8, 16, 24, 31)
    return out + [_text(_LEFT + (lane + 0.5) * _COLUMN, _LANE_TOP - 3, str(lane), "rl-mid") for lane in lanes]


_ANCHORS = {"rl-end": ' text-anchor="end"', "rl-mid": ' text-anchor="middle"', "rl-head": ' font-weight="bold"'}


def _text(x: float, y: float, text: str, name: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="currentColor"{_ANCHORS[name]}>{escape(text)}</text>'
