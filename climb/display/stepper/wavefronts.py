"""Shared memory serves a request: wavefront by wavefront, one word from each bank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from climb.display.access_cost import LANES, SharedPicture, plural, shared_picture
from climb.display.cell_output import CellOutput
from climb.display.stepper.frame import (
    Cells,
    Drawing,
    Grid,
    Label,
    Layer,
    dashes,
    joined,
    listed,
    number,
    stepper,
    text,
)
from climb.emulator.counters.cost_model import BANKS

_LEFT, _PITCH, _WIDTH = 46, 11.5, 420
_LANES, _BANKS, _QUEUE = (
    36,
    84,
    100,
)  # down from a panel's top: the middles of lanes and banks, the queues' top
_CELL = 10


def wavefronts_stepper(access: Any, *more: Any, titles: Sequence[str] = ()) -> CellOutput:
    """Step through the wavefronts in which shared memory serves one request of a warp, or several side by side.

    ``access`` is a shared access of the emulator's trace, as ``access_figure`` takes it; ``titles`` names the requests.
    Raises ValueError for an access that is not to shared memory or malformed, and for a wrong number of titles.

    >>> seen = [pick(trace(transpose[r], size, warp=3), "shared load") for r in ("tiled", "padded")]   # doctest: +SKIP
    >>> wavefronts_stepper(*seen, titles=("tiled", "padded"))                                         # doctest: +SKIP
    """
    accesses = (access, *more)
    for one in accesses:
        if not str(getattr(one, "kind", "")).startswith("shared"):
            raise ValueError(f"wavefronts serve shared memory; this access is a '{getattr(one, 'kind', one)}'")
    if titles and len(titles) != len(accesses):
        raise ValueError(f"{len(accesses)} access(es) but {len(titles)} title(s); give one title for each")
    names = list(titles) or [f"request {n + 1}" if more else "the request" for n in range(len(accesses))]
    pictures = [shared_picture(one) for one in accesses]
    steps = 1 + max(picture.wavefronts for picture in pictures)
    drawing = Drawing(_WIDTH, 0)
    top = 0.0
    for picture, name in zip(pictures, names, strict=True):
        top += _panel(drawing, picture, name, top, steps)
    conflicts = any(picture.conflicts for picture in pictures)
    idle = ("waste" if conflicts else "rest", "bank idle")
    entries = [("on", "served now"), ("soon", "waiting"), ("done", "served"), idle]
    drawing.height = top
    sentences = [_sentence(pictures, names, step) for step in range(steps)]
    title = "A request to shared memory, wavefront by wavefront: " + joined(names)
    return stepper("wavefronts", title, drawing, sentences, key=entries, telling=min(steps - 1, max(1, steps // 3)))


def serving(picture: SharedPicture) -> list[dict[int, tuple[int, ...]]]:
    """Return, for each wavefront, the lanes that each bank serves."""
    return [
        {bank: lanes for (wavefront, bank), lanes in picture.served.items() if wavefront == now}
        for now in range(picture.wavefronts)
    ]


def _panel(drawing: Drawing, picture: SharedPicture, name: str, top: float, steps: int) -> float:
    """Add one request to a drawing; return the height that it takes."""
    fronts = serving(picture)
    last = {lane: now for now, banks in enumerate(fronts) for lanes in banks.values() for lane in lanes}
    queues = {bank: [now for now, banks in enumerate(fronts) if bank in banks] for bank in range(BANKS)}
    deepest = max(map(len, queues.values()))
    down = min(7.0, 118 / deepest)
    idle = "waste" if picture.conflicts else "rest"

    def serve(step: int) -> set[int]:
        return {lane for lanes in fronts[step - 1].values() for lane in lanes} if 0 < step <= len(fronts) else set()

    def wait(step: int, later: bool) -> set[int]:
        return {lane for lane, at in last.items() if (at >= step) == later} - serve(step)

    def busy(step: int) -> set[int]:
        return set(fronts[step - 1]) if 0 < step <= len(fronts) else set()

    def unused(step: int) -> set[int]:
        return set(range(BANKS)) - busy(step) if busy(step) else set()

    def queue_in(step: int) -> str:
        out = []
        for bank, turns in queues.items():
            left = sum(turn >= step for turn in turns)
            if left:
                x = number(_LEFT + (bank + 0.5) * _PITCH - 0.5)
                out.append(f"M{x} {number(top + _QUEUE)}v{number(left * down - 0.1)}")
        return "".join(out)

    def lines_in(step: int) -> str:
        if not 0 < step <= len(fronts):
            return ""
        ends = [(lane, bank) for bank, lanes in fronts[step - 1].items() for lane in lanes]
        start, end = number(top + _LANES + 6), number(top + _BANKS - 6)
        middle = number(top + (_LANES + _BANKS) / 2)
        return "".join(
            f"M{_mid(lane)} {start}C{_mid(lane)} {middle} {_mid(bank)} {middle} {_mid(bank)} {end}"
            for lane, bank in ends
        )

    every = range(steps)
    lane_row = Grid(LANES, _LEFT, top + _LANES, _PITCH, 0, _CELL, 1.5)
    bank_row = Grid(BANKS, _LEFT, top + _BANKS, _PITCH, 0, _CELL, 1.5)
    drawing.parts += [
        text(_LEFT, top + 14, name, "text"),
        Label(_WIDTH - 10, top + 14, [_progress(picture, step) for step in every], "text", "end"),
        text(_LEFT - 6, top + _LANES + 4, "lane", anchor="end"),
        text(_LEFT - 6, top + _BANKS + 4, "bank", anchor="end"),
        text(_LEFT - 6, top + _QUEUE + 9, "queue", anchor="end", size=11),
        *(row.drawn(range(LANES), "rest") for row in (lane_row, bank_row)),
        Cells(idle, bank_row, [unused(step) for step in every]),
        Layer("soon", [queue_in(step) for step in every], 8.5, dashes(down, 0.8 if down > 4 else 0.6)),
        Layer("line", [lines_in(step) for step in every], 1.1),
        Cells("soon", lane_row, [wait(step, True) for step in every]),
        Cells("done", lane_row, [wait(step, False) for step in every]),
        Cells("on", lane_row, [serve(step) for step in every]),
        Cells("on", bank_row, [busy(step) for step in every]),
    ]
    return _QUEUE + deepest * down + 14


def _mid(column: int) -> str:
    return number(_LEFT + (column + 0.5) * _PITCH - 0.75)


def _progress(picture: SharedPicture, step: int) -> str:
    done = min(step, picture.wavefronts)
    return f"{done} of {plural(picture.wavefronts, 'wavefront')}"


def _sentence(pictures: Sequence[SharedPicture], names: Sequence[str], step: int) -> str:
    if step == 0:
        asked = [
            f"{name}: {plural(len(p.lanes), 'lane')} want {plural(len(set(p.words.values())), 'word')} "
            f"in {plural(len({bank for _, bank in p.served}), 'bank')}"
            for p, name in zip(pictures, names, strict=True)
        ]
        return f"The request arrives; {'; '.join(asked)}. A bank delivers one word in a wavefront."
    said, done = [], []
    for picture, name in zip(pictures, names, strict=True):
        if step > picture.wavefronts:
            done.append(name)
            continue
        banks = serving(picture)[step - 1]
        lanes = sorted({lane for served in banks.values() for lane in served})
        verb = "serves" if len(banks) == 1 else "serve"
        idle = BANKS - len(banks)
        rest = f", {plural(idle, 'bank')} idle" if idle else ""
        said.append(f"In {name}, {listed(sorted(banks), 'bank')} {verb} {listed(lanes, 'lane')}{rest}")
    if done:
        said.append(f"{joined(done)} {'is' if len(done) == 1 else 'are'} done")
    return f"Wavefront {step}. {'; '.join(said)}."
