"""The launch picture: a grid of blocks, one warp of it with its lanes, and the SMs that the blocks run on."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from climb.display import style
from climb.display.access_cost import plural
from climb.display.palette import PALETTE

LANES = 32
#: The picture has room for this many blocks, and this many warps in each.
MOST_BLOCKS, MOST_WARPS = 5, 8

_THREAD = PALETTE["lane-0"].light
_MARKED_LANES = (0, 8, 16, 24, 31)
# Inches, from the top: the blocks, the lanes of one warp, the SMs.
_WIDTH, _HEIGHT, _EDGE, _GAP = 5.0, 4.45, 0.04, 0.12
_BLOCKS_TOP, _WARP_DOWN, _WARP_HEIGHT = 0.62, 0.1, 0.075
_LANES_TOP, _LANES_HEIGHT = 2.32, 0.2
_SMS_TOP, _SM_HEIGHT, _CHIP_HEIGHT = 3.62, 0.72, 0.3


@style.styled
def launch_figure(
    blocks: int, threads: int, n: int, *, sms: int, warp: tuple[int, int] = (0, 0), gpu: str = "GPU"
) -> Figure:
    """Draw a launch of ``blocks`` blocks of ``threads`` threads over n elements, one element a thread.

    Threads past the last element are drawn in the colour of waste. ``warp`` (block, warp in the block) is drawn with
    its lanes below the grid. At the bottom, the blocks are on SMs of a ``gpu`` with ``sms`` SMs. Raises ValueError for
    a launch that does not fit into the picture.

    >>> launch_figure(4, 256, 1000, sms=132, warp=(2, 5))                                   # doctest: +SKIP
    """
    warps = -(-threads // LANES)
    if not 1 <= blocks <= MOST_BLOCKS or not 1 <= warps <= MOST_WARPS or threads % LANES:
        raise ValueError(
            f"{blocks} blocks of {threads} threads: the picture has room for {MOST_BLOCKS} blocks of "
            f"{MOST_WARPS} whole warps"
        )
    if not (0 <= warp[0] < blocks and 0 <= warp[1] < warps):
        raise ValueError(f"warp {warp[1]} of block {warp[0]} is not in the launch")
    if sms <= blocks:
        raise ValueError(f"{sms} SMs: the picture shows one block on each, and one SM without a block")
    figure = Figure(figsize=(_WIDTH, _HEIGHT))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH)
    axes.set_ylim(_HEIGHT, 0)
    axes.set_axis_off()
    _draw_grid(axes, blocks, warps, threads, n, warp)
    _draw_lanes(axes, warp[0] * threads + warp[1] * LANES, n, warp)
    _draw_sms(axes, blocks, sms, warp[0], gpu)
    idle = max(0, blocks * threads - n)
    first = warp[0] * threads + warp[1] * LANES
    return style.set_alt(
        figure,
        f"A grid of {plural(blocks, 'block')}, each of {threads} threads in {plural(warps, 'warp')} of {LANES}. "
        f"Threads without an element: {idle}. Warp {warp[1]} of block {warp[0]} is drawn "
        f"below with its {LANES} lanes, which have the elements {first} to {first + LANES - 1}. Each block lies on an "
        f"SM of its own; the GPU has {sms} SMs.",
    )


def _draw_grid(axes: Axes, blocks: int, warps: int, threads: int, n: int, warp: tuple[int, int]) -> None:
    width = (_WIDTH - 2 * _EDGE - (blocks - 1) * _GAP) / blocks
    lane = (width - 0.12) / LANES
    _title(axes, 0.12, f"Grid: {plural(blocks, 'block')} of {threads} threads")
    bottom = _BLOCKS_TOP + warps * _WARP_DOWN + 0.17
    for block in range(blocks):
        x = _EDGE + block * (width + _GAP)
        marked = block == warp[0]
        axes.text(x, 0.44, f"block {block}", va="center", color=style.BEST if marked else style.QUIET, fontsize=11)
        frame = Rectangle((x, _BLOCKS_TOP - 0.06), width, warps * _WARP_DOWN + 0.1, fill=False, linewidth=1)
        frame.set_edgecolor(style.BEST if marked else PALETTE["axis"].light)
        axes.add_patch(frame)
        busy = min(max(n - block * threads, 0), threads)
        for row in range(warps):
            y = _BLOCKS_TOP + row * _WARP_DOWN + _WARP_HEIGHT / 2
            colour = style.BEST if (block, row) == warp else _THREAD
            working = min(max(busy - row * LANES, 0), LANES)
            _draw_threads(axes, x + 0.06, y, lane, working, colour)
            _draw_threads(axes, x + 0.06 + working * lane, y, lane, LANES - working, style.WASTE)
        said = f"{block * threads} to {block * threads + busy - 1}" if busy else "no element"
        said = f"i = {said}" if block == 0 else said
        axes.text(x, bottom, said, va="center", color=style.QUIET, fontsize=11)
        if busy < threads:
            axes.text(x, bottom + 0.2, f"{threads - busy} idle", va="center", color=style.QUIET, fontsize=11)


def _draw_threads(axes: Axes, x: float, y: float, lane: float, count: int, colour: str) -> None:
    """Draw ``count`` threads as one dashed line, which takes far fewer bytes than a shape for each."""
    if count:
        height = 72 * _WARP_HEIGHT  # points, the unit of the dashes, which are multiples of it
        dashes = [share * lane * 72 / height for share in (0.78, 0.22)]
        ends = (x, x + (count - 0.22) * lane)
        axes.plot(ends, (y, y), color=colour, linewidth=height, dashes=dashes, dash_capstyle="butt")


def _title(axes: Axes, y: float, text: str) -> None:
    axes.text(_EDGE, y, text, weight="bold", va="center", fontsize=12)


def _draw_lanes(axes: Axes, first: int, n: int, warp: tuple[int, int]) -> None:
    """Draw the lanes of the marked warp, which have the elements from ``first`` on."""
    lane = (_WIDTH - 2 * _EDGE) / LANES
    _title(axes, _LANES_TOP - 0.26, f"Warp {warp[1]} of block {warp[0]}: {LANES} threads, one instruction")
    for number in range(LANES):
        x = _EDGE + number * lane
        colour = style.BEST if first + number < n else style.WASTE
        axes.add_patch(Rectangle((x, _LANES_TOP), 0.86 * lane, _LANES_HEIGHT, facecolor=colour, edgecolor="none"))
        if number in _MARKED_LANES:
            align = "left" if number == 0 else "right" if number == LANES - 1 else "center"
            at = x if number == 0 else x + 0.86 * lane * (1.0 if number == LANES - 1 else 0.5)
            said = f"lane {number}" if number == 0 else str(number)
            axes.text(at, _LANES_TOP + 0.34, said, ha=align, va="center", color=style.QUIET, fontsize=11)
            said = f"i = {first}" if number == 0 else str(first + number)
            axes.text(at, _LANES_TOP + 0.55, said, ha=align, va="center", fontsize=11)


def _draw_sms(axes: Axes, blocks: int, sms: int, marked: int, gpu: str) -> None:
    """Draw a block on each of the first SMs, and one SM for those that have none."""
    _title(axes, _SMS_TOP - 0.28, f"{gpu}: {sms} SMs, each runs whole blocks")
    shown = blocks + 1
    width = (_WIDTH - 2 * _EDGE - (shown - 1) * _GAP) / shown
    for place in range(shown):
        x = _EDGE + place * (width + _GAP)
        last = place == blocks
        sm = Rectangle((x, _SMS_TOP), width, _SM_HEIGHT, facecolor=style.FAINT, edgecolor=PALETTE["axis"].light)
        axes.add_patch(sm)
        name = f"... SM {sms - 1}" if last else f"SM {place}"
        axes.text(x + 0.08, _SMS_TOP + 0.16, name, va="center", color=style.QUIET, fontsize=11)
        if last:
            continue
        colour = style.BEST if place == marked else _THREAD
        chip = Rectangle((x + 0.08, _SMS_TOP + 0.32), width - 0.16, _CHIP_HEIGHT, facecolor=colour, edgecolor="none")
        axes.add_patch(chip)
        text = PALETTE["ground"].light if place == marked else style.TEXT
        axes.text(
            x + width / 2, _SMS_TOP + 0.32 + _CHIP_HEIGHT / 2, f"block {place}",
            ha="center", va="center", color=text, fontsize=11,
        )  # fmt: skip
