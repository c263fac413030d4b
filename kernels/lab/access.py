"""The access picture: what one warp asks of memory, and what memory has to do for it.

Global memory is drawn as its 128-byte lines, one per row, four 32-byte sectors to a row: a sector that is touched is
moved whole. Shared memory is drawn as its 32 banks, one row per wavefront: a bank serves one word in a wavefront. In
both pictures the lanes stand on top, colour says which lane asks, and height is what the request costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from . import style

LANES = 32
WORD = 4
SECTOR = 32
LINE = 128
BANKS = 32

# From light to dark, so that it also reads in grey: lane 0 is pale, lane 31 is dark.
_LANE_COLOURS = LinearSegmentedColormap.from_list("lanes", ["#9fd3f2", "#0072b2", "#0b2545"])
_MARKED_LANES = (0, 8, 16, 24, 31)
# Inches. The columns are as wide as the labels at their sides allow.
_WIDTH = 6.0
_LEFT, _RIGHT = 0.95, 4.95
_COLUMN = (_RIGHT - _LEFT) / LANES
_GRID_HEIGHT = 3.3


@dataclass(frozen=True)
class GlobalPicture:
    """One global request. ``words`` maps ``(line, word)`` to the first lane that asks for it, ``sectors`` holds
    ``(line, sector)``; lines are numbered by address / 128. ``used`` counts bytes asked for, each once."""

    kind: str
    words: Mapping[tuple[int, int], int]
    sectors: frozenset[tuple[int, int]]
    lines: tuple[int, ...]
    lanes: tuple[int, ...]
    used: int

    @property
    def fetched(self) -> int:
        """Bytes that move: 32 per sector."""
        return SECTOR * len(self.sectors)


@dataclass(frozen=True)
class SharedPicture:
    """One shared request. ``served`` maps ``(wavefront, bank)`` to the lanes that get their word there; ``words`` maps
    it to the word's number (address / 4). ``least`` is how many wavefronts the same bytes would take without conflict.
    """

    kind: str
    served: Mapping[tuple[int, int], tuple[int, ...]]
    words: Mapping[tuple[int, int], int]
    wavefronts: int
    least: int
    lanes: tuple[int, ...]

    @property
    def conflicts(self) -> int:
        """Wavefronts beyond the least."""
        return self.wavefronts - self.least


def _arrays(access: Any) -> tuple[np.ndarray, np.ndarray, int]:
    addresses = np.asarray(access.addresses, dtype=np.int64)
    active = np.asarray(access.active, dtype=bool)
    width = int(access.width)
    if addresses.shape != (LANES,) or active.shape != (LANES,):
        raise ValueError(
            f"an access has one address per lane; expected {LANES} addresses and {LANES} active flags, "
            f"got shapes {addresses.shape} and {active.shape}"
        )
    if not active.any():
        raise ValueError(f"no lane is active in this {access.kind}; there is nothing to draw")
    if width not in (1, 2, 4, 8, 16):
        raise ValueError(f"an access is 1, 2, 4, 8 or 16 bytes wide; got width {width}")
    return addresses, active, width


def global_picture(access: Any) -> GlobalPicture:
    """Which words each lane asks for, and which sectors move. Raises ValueError for an access that is malformed."""
    addresses, active, width = _arrays(access)
    words: dict[tuple[int, int], int] = {}
    touched: set[int] = set()
    for lane in np.flatnonzero(active):
        start = int(addresses[lane])
        touched.update(range(start, start + width))
        for word in range(start // WORD, (start + width - 1) // WORD + 1):
            words.setdefault((word * WORD // LINE, word % (LINE // WORD)), int(lane))
    sectors = frozenset((b // LINE, b % LINE // SECTOR) for b in touched)
    lines = tuple(sorted({line for line, _ in sectors}))
    return GlobalPicture(access.kind, words, sectors, lines, tuple(map(int, np.flatnonzero(active))), len(touched))


def shared_picture(access: Any) -> SharedPicture:
    """Which bank serves which lane in which wavefront. Raises ValueError for an access that is malformed.

    Lanes that ask for the same word are served together. A warp's 8-byte accesses go in two halves and 16-byte
    accesses in four quarters, since 32 banks of 4 bytes give 128 bytes at a time.
    """
    addresses, active, width = _arrays(access)
    group = LANES * WORD // max(width, WORD)
    served: dict[tuple[int, int], tuple[int, ...]] = {}
    placed: dict[tuple[int, int], int] = {}
    wavefronts = least = 0
    for first in range(0, LANES, group):
        lanes = [int(lane) for lane in range(first, first + group) if active[lane]]
        if not lanes:
            continue
        queues: dict[int, list[int]] = {}
        for lane in lanes:
            start = int(addresses[lane])
            for word in range(start // WORD, (start + width - 1) // WORD + 1):
                queue = queues.setdefault(word % BANKS, [])
                if word not in queue:
                    queue.append(word)
                cell = (wavefronts + queue.index(word), word % BANKS)
                served[cell] = (*served.get(cell, ()), lane)
                placed[cell] = word
        wavefronts += max(len(queue) for queue in queues.values())
        least += -(-sum(len(queue) for queue in queues.values()) // BANKS)
    return SharedPicture(access.kind, served, placed, wavefronts, least, tuple(map(int, np.flatnonzero(active))))


@style.styled
def access_figure(access: Any, *more: Any, titles: Sequence[str] = ()) -> Figure:
    """Draw one access of one warp, or several below each other, say before and after.

    ``access`` is an ``Access`` of the emulator's trace (``kind``, ``width`` in bytes, 32 ``addresses``, 32 ``active``
    flags). ``titles`` names the pictures; without it each says its kind and width. Raises ValueError when an access
    is malformed, has no active lane, or is neither global nor shared.

    >>> access_figure(trace(transpose["naive"], size)[0])                              # doctest: +SKIP
    >>> access_figure(before, after, titles=("tiled", "padded"))                       # doctest: +SKIP
    """
    accesses = (access, *more)
    if titles and len(titles) != len(accesses):
        raise ValueError(f"{len(accesses)} access(es) but {len(titles)} title(s); give one title for each")
    pictures = [_picture(a) for a in accesses]
    names = titles or [f"{_shown_kind(a.kind)}, {_plural(a.width, 'byte')} a lane" for a in accesses]
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
    said = [f"{name}: {_describe(p)}" for name, p in zip(names, pictures, strict=True)]
    return style.set_alt(figure, " ".join(said))


def _picture(access: Any) -> GlobalPicture | SharedPicture:
    if access.kind.startswith("global"):
        return global_picture(access)
    if access.kind.startswith("shared"):
        return shared_picture(access)
    raise ValueError(f"the access picture draws global and shared accesses; this one is a '{access.kind}'")


def headline(picture: GlobalPicture | SharedPicture) -> str:
    """What the request costs, and what it could cost, in one line."""
    if isinstance(picture, GlobalPicture):
        count, least = len(picture.sectors), -(-picture.used // SECTOR)
        noun, verb = "sector", ("moves" if count == 1 else "move")
    else:
        count, least, noun, verb = picture.wavefronts, picture.least, "wavefront", "in a row"
        verb = "" if count == 1 else verb
    cost = f"{_plural(count, noun)} {verb}".rstrip()
    return f"{cost}, the least there is" if count == least else f"{cost}; {least} would do"


def _describe(picture: GlobalPicture | SharedPicture) -> str:
    lanes = _plural(len(picture.lanes), "lane")
    if isinstance(picture, GlobalPicture):
        return (
            f"{lanes} use {picture.used} bytes in {_plural(len(picture.sectors), 'sector')} of 32 bytes on "
            f"{_plural(len(picture.lines), 'line')} of 128 bytes; {picture.fetched - picture.used} bytes move unused."
        )
    banks = len({bank for _, bank in picture.served})
    return (
        f"{lanes} reach {_plural(len(set(picture.words.values())), 'word')} in {_plural(banks, 'bank')}; "
        f"this takes {_plural(picture.wavefronts, 'wavefront')} where {picture.least} would do."
    )


@dataclass(frozen=True)
class _Row:
    """One row of the grid: its label, who asks there, and how each column is filled."""

    label: str
    owners: Mapping[int, tuple[int, ...]]
    shaded: frozenset[int]
    gap_before: bool = False


def _rows(picture: GlobalPicture | SharedPicture) -> list[_Row]:
    if isinstance(picture, GlobalPicture):
        rows = []
        for i, line in enumerate(picture.lines):
            owners = {word: (lane,) for (at, word), lane in picture.words.items() if at == line}
            moved = {s * 8 + w for at, s in picture.sectors if at == line for w in range(8)}
            gap = i > 0 and line != picture.lines[i - 1] + 1
            rows.append(_Row(_offset((line - picture.lines[0]) * LINE), owners, frozenset(moved), gap))
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


# Inches, from a picture's top down.
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

    lane_bottom = top - _LANE_TOP - _LANE_HEIGHT
    axes.text(_LEFT - 0.1, top - _NUMBERS, "lane", ha="right", va="center")
    for lane in range(LANES):
        face = _colour(lane) if lane in picture.lanes else "white"
        _box(axes, _x(lane) + 0.01, lane_bottom, _COLUMN - 0.02, _LANE_HEIGHT, face, style.QUIET)
    for lane in _MARKED_LANES:
        axes.text(_x(lane + 0.5), top - _NUMBERS, str(lane), ha="center", va="center")

    y = top - _GRID_TOP
    axes.text(_LEFT - 0.1, y + 0.14, "byte" if is_global else "wavefront", ha="right", va="center")
    arrows: dict[int, tuple[float, float]] = {}
    labelled = _labelled(len(rows), row_height)
    idle = _idle_colour(picture)
    for i, row in enumerate(rows):
        y -= row_height + (gap if row.gap_before else 0)
        for column in range(32):
            owners = row.owners.get(column)
            waste = idle if column in row.shaded else "white"
            _box(axes, _x(column), y, _COLUMN, row_height, _colour(owners[0]) if owners else waste, "white")
            for lane in owners or ():
                arrows.setdefault(lane, (_x(column + 0.5), y + row_height / 2))
        step = 8 if is_global else 32
        for start in range(0, 32, step):
            _box(axes, _x(start), y, step * _COLUMN, row_height, "none", style.QUIET)
        if i in labelled:
            axes.text(_LEFT - 0.1, y + row_height / 2, row.label, ha="right", va="center")
            who = _lanes_of([lane for owners in row.owners.values() for lane in owners])
            axes.text(_RIGHT + 0.08, y + row_height / 2, who, ha="left", va="center")
    for lane in _MARKED_LANES:
        if lane in arrows:
            x, end = arrows[lane]
            axes.plot([_x(lane + 0.5), x], [lane_bottom, end], color="white", linewidth=2.6, zorder=3)
            axes.plot([_x(lane + 0.5), x], [lane_bottom, end], color=style.TEXT, linewidth=1.0, zorder=4)
            axes.plot(
                [x],
                [end],
                marker="o",
                markersize=3.5,
                color=style.TEXT,
                markeredgecolor="white",
                zorder=5,
                markeredgewidth=0.6,
            )
    _draw_columns(axes, is_global, y - 0.15)
    _draw_key(axes, picture, y - 0.42)


def _draw_columns(axes: Axes, is_global: bool, y: float) -> None:
    if is_global:
        for sector in range(4):
            axes.text(_x(8 * sector + 4), y, f"sector {sector}", ha="center", va="center")
        return
    axes.text(_LEFT - 0.1, y, "bank", ha="right", va="center")
    for bank in _MARKED_LANES:
        axes.text(_x(bank + 0.5), y, str(bank), ha="center", va="center")


def _draw_key(axes: Axes, picture: GlobalPicture | SharedPicture, y: float) -> None:
    if isinstance(picture, GlobalPicture):
        entries = [(f"{picture.used} bytes used", _colour(16))]
        if picture.fetched > picture.used:
            entries.append((f"{picture.fetched - picture.used} bytes moved for nothing", style.WASTE))
    else:
        entries = [("word served", _colour(16))]
        if len(picture.served) < BANKS * picture.wavefronts:
            entries.append(("bank idle", _idle_colour(picture)))
    x = _LEFT
    for label, colour in entries:
        _box(axes, x, y - 0.065, 0.13, 0.13, colour, style.QUIET)
        axes.text(x + 0.2, y, label, ha="left", va="center")
        x += 0.2 + 0.085 * len(label) + 0.25


def _idle_colour(picture: GlobalPicture | SharedPicture) -> str:
    """Bytes that move unused are waste; a bank without work is waste only when the request waits for another bank."""
    return style.FAINT if isinstance(picture, SharedPicture) and not picture.conflicts else style.WASTE


def _labelled(rows: int, row_height: float) -> set[int]:
    """Which rows have room for a label of 11 points: the first, the last, and evenly spaced ones between."""
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


def _colour(lane: int) -> tuple[float, float, float, float]:
    return _LANE_COLOURS(lane / (LANES - 1))


def _box(axes: Axes, x: float, y: float, width: float, height: float, face: Any, edge: str) -> None:
    axes.add_patch(Rectangle((x, y), width, height, facecolor=face, edgecolor=edge, linewidth=0.5))


def _shown_kind(kind: str) -> str:
    return kind[0].upper() + kind[1:]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
