"""Stream-K fills the SMs: tiles in full waves, and equal portions of the rest, compared with one tile for each
block."""

from __future__ import annotations

from climb.bench.ladder import BoundRung
from climb.bench.problem import Size, ceil_div
from climb.bench.units import percent_text
from climb.display.access_cost import plural
from climb.display.cell_output import CellOutput
from climb.display.stepper.frame import Drawing, Label, Layer, box, number, path, stepper, text
from climb.display.stepper.shares import Piece, Shares, shares
from climb.toolchain.occupancy import kernel_occupancy

_WIDTH, _LEFT, _RIGHT, _HIGH = 420, 34, 412, 108
_CLOSE_UP = 3  # the number of portions that are shown one by one


def stream_k_stepper(rung: BoundRung, size: Size, *, sms: int) -> CellOutput:
    """Step through the waves of a product on ``sms`` SMs: one tile for each block, and below it stream-K's shares.

    A block takes the place of the next SM that is free; all slices are drawn equally long. Raises ValueError for a rung
    that cuts no tile at this size.

    >>> stream_k_stepper(sgemm["stream_k"], {"m": 4096, "n": 4096, "k": 4096}, sms=132)       # doctest: +SKIP
    """
    cut = shares(rung, size)
    if sms < 1:
        raise ValueError(f"a GPU has at least one SM, not {sms}")
    places = sms * kernel_occupancy(rung.compiled(size), cut.kernel, cut.threads, cut.shared).blocks
    waves, full = ceil_div(cut.tiles, places), cut.whole // places
    span = max(waves * cut.slices, full * cut.slices + cut.portion)
    drawing = Drawing(_WIDTH, 0)
    close_up = min(_CLOSE_UP, cut.workers)
    steps = 1 + waves + 1 + close_up
    scale = (_RIGHT - _LEFT) / span
    _plain(drawing, cut, places, waves, scale, 0, steps)
    _streamed(drawing, cut, places, full, waves, scale, _HIGH + 42, steps)
    bottom = _line(drawing, cut, 2 * (_HIGH + 42) + 6, waves, steps, close_up)
    entries = [("on", "computes"), ("done", "has computed"), ("soon", "the portion's next tile"), ("waste", "idle")]
    drawing.height = bottom
    sentences = _sentences(cut, places, sms, waves, full, close_up)
    title = f"Stream-K fills {sms} SMs: a product of {size['m']} x {size['n']} x {size['k']}"
    return stepper("stream-k", title, drawing, sentences, key=entries)


def _plain(drawing: Drawing, cut: Shares, places: int, waves: int, scale: float, top: float, steps: int) -> None:
    """Draw one tile for each block: full waves, and a last one that leaves SMs idle."""
    down = _HIGH / places
    every = range(steps)
    last = cut.tiles - (waves - 1) * places

    def wave(n: int) -> str:
        blocks = places if n < waves - 1 else last
        return box(_LEFT + n * cut.slices * scale + 0.6, top + 26, cut.slices * scale - 1.2, blocks * down)

    idle = box(_LEFT + (waves - 1) * cut.slices * scale + 0.6, top + 26 + last * down, cut.slices * scale - 1.2,
               (places - last) * down)  # fmt: skip
    drawing.parts += [
        *_axes("One tile for each block", places, top),
        Layer("done", ["".join(wave(n) for n in range(min(step - 1, waves))) for step in every]),
        Layer("on", [wave(step - 1) if 0 < step <= waves else "" for step in every]),
        Layer("waste", [idle if step >= waves and last < places else "" for step in every]),
        Label(
            _RIGHT, top + 16, [_used(cut, step >= waves, waves * cut.slices, places) for step in every], "text", "end"
        ),
    ]


def _streamed(
    drawing: Drawing, cut: Shares, places: int, full: int, waves: int, scale: float, top: float, steps: int
) -> None:
    """Draw full waves, then a portion for each place, whose tiles change along a staircase."""
    down, first = _HIGH / places, top + 26
    every = range(steps)
    start = _LEFT + full * cut.slices * scale

    def wave(n: int) -> str:
        return box(_LEFT + n * cut.slices * scale + 0.6, first, cut.slices * scale - 1.2, places * down)

    end = start + cut.portion * scale
    own = box(start + 0.6, first, (end - start) - 0.6, cut.workers * down)
    turned = []
    for worker in range(cut.workers):
        pieces = cut.pieces(worker)
        if len(pieces) > 1:
            x = start + (pieces[0].last - pieces[0].first) * scale
            left = sum(piece.last - piece.first for piece in pieces[1:]) * scale
            turned.append(f"M{number(x)} {number(first + (worker + 0.5) * down)}h{number(left)}")
    rest = (places - cut.workers) * down
    idle = box(start + 0.6, first + cut.workers * down, end - start - 0.6, rest) if rest > 0.01 else ""
    whole_time = full * cut.slices + cut.portion
    finished = [step > full + 1 or (full == 0 and step > 1) for step in every]
    drawing.parts += [
        *_axes("Stream-K", places, top),
        Layer("done", ["".join(wave(n) for n in range(min(step - 1, full))) for step in every]),
        Layer("on", [wave(step - 1) if 0 < step <= full else "" for step in every]),
        Layer("on", [own if step > full else "" for step in every]),
        Layer("soon", ["".join(turned) if step > full else "" for step in every], down),
        Layer("waste", [idle if step > full else "" for step in every]),
        Label(_RIGHT, top + 16, [_used(cut, done, whole_time, places) for done in finished], "text", "end"),
        Layer("text", [_row(start, end, first, down, step - waves - 2) for step in every], 1.4),
    ]  # fmt: skip


def _axes(name: str, places: int, top: float) -> list[str]:
    return [
        text(2, top + 16, name, "text"),
        path(box(_LEFT, top + 26, _RIGHT - _LEFT, _HIGH), "rest"),
        text(_LEFT - 4, top + 35, "SM 0", anchor="end", size=9.5),
        text(_LEFT - 4, top + 26 + _HIGH, str(places - 1), anchor="end", size=9.5),
    ]


def _row(start: float, end: float, first: float, down: float, worker: int) -> str:
    """Draw a frame around the row of one portion."""
    if worker < 0:
        return ""
    high = max(down, 3.0)
    return box(start, first + (worker + 0.5) * down - high / 2, end - start, high)


def _used(cut: Shares, done: bool, slices: int, places: int) -> str:
    """Return the share of the time in which SMs compute, when all is done."""
    if not done:
        return ""
    return f"SMs in use: {percent_text(cut.tiles * cut.slices / (slices * places))}"


def _line(drawing: Drawing, cut: Shares, top: float, waves: int, steps: int, close_up: int) -> float:
    """Draw the slices of the first tiles that are cut, in a line, with the portions below; return the lower edge."""
    shown = min(cut.rest, max(1, ceil_div(close_up * cut.portion, cut.slices)))
    wide = (_RIGHT - _LEFT) / shown
    scale = wide / cut.slices
    lines = []
    for worker in range(close_up):
        spots = []
        for n, piece in enumerate(cut.pieces(worker)):
            x = _LEFT + ((piece.tile - cut.whole) * cut.slices + piece.first) * scale
            spots.append((n, box(x + 0.4, top + 44, (piece.last - piece.first) * scale - 0.8, 15)))
        lines.append(spots)
    tiles = range(shown)
    drawing.parts += [
        text(2, top + 12, f"The first tiles that are cut, {cut.slices} slices each", "text"),
        path("".join(box(_LEFT + n * wide + 0.6, top + 22, wide - 1.2, 17) for n in tiles), "done"),
        *(text(_LEFT + (n + 0.5) * wide, top + 34.5, f"tile {cut.whole + n}", "text", "middle", 10.5) for n in tiles),
        text(_LEFT - 4, top + 56, "SM", anchor="end", size=10.5),
    ]
    for worker, spots in enumerate(lines):
        begins = waves + 2 + worker
        for n, shape in spots:
            paint = "soon" if n else "on"
            drawing.parts.append(Layer(paint, [shape if step >= begins else "" for step in range(steps)]))
        middle = _LEFT + (worker + 0.5) * cut.portion * scale
        drawing.parts.append(
            Label(
                middle,
                top + 75,
                [str(worker) if step >= begins else "" for step in range(steps)],
                "quiet",
                "middle",
                10.5,
            )
        )
    return top + 80


def _sentences(cut: Shares, places: int, sms: int, waves: int, full: int, close_up: int) -> list[str]:
    last = cut.tiles - (waves - 1) * places
    of = f"{last} of {places} {'SMs have' if places == sms else 'places on SMs have'} work"
    each = "" if places == sms else f", {places // sms} blocks on each"
    said = [
        f"{cut.tiles} tiles of {cut.rows} x {cut.cols}, each of {cut.slices} slices of {cut.depth} steps of k, "
        f"for {sms} SMs{each}."
    ]
    for wave in range(waves - 1):
        same = "both give every SM a whole tile" if wave < full else "stream-K has begun its portions"
        said.append(f"Wave {wave + 1}: {same}.")
    said.append(
        f"The last wave: with one tile for each block, {of} for {cut.slices} slices. "
        f"Stream-K cuts the {plural(cut.rest, 'tile')} that are left into {cut.workers} portions of {cut.portion} "
        "slices."
    )
    saved = waves * cut.slices - full * cut.slices - cut.portion
    said.append(
        f"Stream-K is done {plural(saved, 'slice')} earlier. The sums of the tiles that were cut are then added by "
        "another kernel, which is not drawn."
    )
    for worker in range(close_up):
        parts = [f"{_slices(piece)} of tile {piece.tile}" for piece in cut.pieces(worker)]
        said.append(f"Portion {worker}: {', then '.join(parts)}.")
    return said


def _slices(piece: Piece) -> str:
    if piece.last - piece.first == 1:
        return f"slice {piece.first}"
    return f"slices {piece.first} to {piece.last - 1}"
