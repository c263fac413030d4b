"""The cp.async pipeline: copies fill some stages of shared memory while the block computes from another one."""

from __future__ import annotations

from collections.abc import Sequence

from climb.bench.counting import block_events
from climb.bench.ladder import BoundRung
from climb.bench.problem import Size
from climb.display.cell_output import CellOutput
from climb.display.stepper.copies import WORD, Group, groups
from climb.display.stepper.frame import Drawing, Label, Layer, box, joined, listed, number, path, stepper, text

_WIDTH = 420
_MOST_ROUNDS, _MOST_STAGES = 24, 6


def pipeline_stepper(
    rung: BoundRung, size: Size, *, what: str = "slice", block: tuple[int, int, int] = (0, 0, 0), launch: int = 0
) -> CellOutput:
    """Step through the rounds of a block that copies with ``cp.async``: the copies in flight, and the reads meanwhile.

    ``what`` names the data of one group of copies. Raises ValueError for a rung without asynchronous copies, and for
    more than 24 rounds or 6 stages: choose a smaller size.

    >>> pipeline_stepper(sgemm["pipelined"], {"m": 128, "n": 128, "k": 128})                  # doctest: +SKIP
    """
    found, rounds = groups(block_events(rung, size, block=block, launch=launch))
    stages = 1 + max(group.stage for group in found)
    if rounds > _MOST_ROUNDS or stages > _MOST_STAGES:
        raise ValueError(
            f"{rounds} rounds and {stages} stages are more than the {_MOST_ROUNDS} and {_MOST_STAGES} that the picture "
            "has room for; choose a smaller size"
        )
    drawing = Drawing(_WIDTH, 0)
    top = _stages(drawing, found, stages, rounds, what)
    top = _timeline(drawing, found, stages, rounds, top)
    entries = [
        ("soon", "copies in flight"),
        ("on", "read by the block"),
        ("rest", "free"),
        ("waste", "nothing to compute"),
    ]
    drawing.height = top
    sentences = [_sentence(found, at, what) for at in range(rounds)]
    title = f"The pipeline of {rung.rung.name}: {stages} stages of {_kib(found)} KiB, filled while another one is read"
    busiest = max(range(rounds), key=lambda at: (len(flying(found, at)) + len(reading(found, at)), -at))
    return stepper("pipeline", title, drawing, sentences, key=entries, telling=busiest)


def flying(found: Sequence[Group], at: int) -> list[Group]:
    """Return the groups that are in flight in a round: begun, and not yet waited for."""
    return [g for g in found if g.started <= at and (g.arrived is None or at < g.arrived)]


def reading(found: Sequence[Group], at: int) -> list[Group]:
    """Return the groups that the block reads in a round."""
    return [g for g in found if at in g.read]


def _kib(found: Sequence[Group]) -> str:
    return number(max(len(group.words) for group in found) * WORD / 1024)


def _stages(drawing: Drawing, found: Sequence[Group], stages: int, rounds: int, what: str) -> float:
    """Draw the stages as boxes between global memory and the block's arithmetic; return the bottom edge."""
    wide, gap, left, top, high = 0.0, 14.0, 10.0, 58.0, 44.0
    wide = (_WIDTH - 2 * left - (stages - 1) * gap) / stages
    every = range(rounds)
    place = [left + stage * (wide + gap) for stage in range(stages)]

    def boxes(which: Sequence[Sequence[Group]]) -> list[str]:
        return ["".join(box(place[s], top, wide, high) for s in sorted({g.stage for g in now})) for now in which]

    flights, reads = [flying(found, at) for at in every], [reading(found, at) for at in every]
    computes = ["" if reads[at] else box(left, 126, _WIDTH - 2 * left, 22) for at in every]
    busy = [box(left, 126, _WIDTH - 2 * left, 22) if reads[at] else "" for at in every]
    drawing.parts += [
        path(box(left, 8, _WIDTH - 2 * left, 22), "done"),
        text(_WIDTH / 2, 23, "global memory", "text", "middle"),
        path("".join(box(x, top, wide, high) for x in place), "rest"),
        Layer("soon", boxes(flights)),
        Layer("on", boxes(reads)),
        Layer("soon", [_arrows([place[g.stage] + wide / 2 for g in now], 32, top - 3) for now in flights], 2.4),
        Layer("on", [_arrows([place[g.stage] + wide / 2 for g in now], top + high + 3, 123) for now in reads], 2.4),
        Layer("waste", computes),
        Layer("on", busy),
        Label(_WIDTH / 2, 141, ["multiply and add" if reads[at] else "" for at in every], "panel", "middle"),
        Label(_WIDTH / 2, 141, ["" if reads[at] else "nothing to multiply yet" for at in every], "text", "middle"),
    ]
    for stage in range(stages):
        mine = [[g for g in flights[at] + reads[at] if g.stage == stage] for at in every]
        centre = place[stage] + wide / 2
        names = [f"{what} {now[-1].number}" if now else "" for now in mine]
        read_now = [any(g in reads[at] for g in now) for at, now in enumerate(mine)]
        drawing.parts += [
            Label(
                centre, top + 20, [n if not r else "" for n, r in zip(names, read_now, strict=True)], "text", "middle"
            ),
            Label(centre, top + 20, [n if r else "" for n, r in zip(names, read_now, strict=True)], "panel", "middle"),
            Label(centre, top + 35, [f"stage {stage}" if not r else "" for r in read_now], "text", "middle", 10),
            Label(centre, top + 35, [f"stage {stage}" if r else "" for r in read_now], "panel", "middle", 10),
        ]
    return 156


def _arrows(columns: Sequence[float], start: float, end: float) -> str:
    head = "".join(
        f"M{number(x - 4)} {number(end - 5)}L{number(x)} {number(end)}L{number(x + 4)} {number(end - 5)}"
        for x in columns
    )
    return "".join(f"M{number(x)} {number(start)}V{number(end - 1)}" for x in columns) + head


def _timeline(drawing: Drawing, found: Sequence[Group], stages: int, rounds: int, top: float) -> float:
    """Draw a row for each stage and a column for each round, uncovered as time goes by; return the bottom edge."""
    left, high = 52.0, 19.0
    wide = (_WIDTH - left - 10) / rounds
    first = top + 24

    def cell(at: int, stage: int, columns: float = 1) -> str:
        return box(left + at * wide + 0.7, first + stage * high, columns * wide - 1.4, high - 3)

    copies, labels, light = [], [], []
    for group in found:
        end = rounds if group.arrived is None else group.arrived
        copies.append(cell(group.started, group.stage, max(1, end - group.started)))
        middle = left + (group.started + 0.5) * wide
        labels.append(text(middle, first + group.stage * high + 12, str(group.number), "text", "middle", 10))
        light += [
            text(left + (at + 0.5) * wide, first + group.stage * high + 12, str(group.number), "panel", "middle", 10)
            for at in group.read
        ]
    used = [bool(reading(found, at)) for at in range(rounds)]
    bottom = first + (stages + 1) * high
    drawing.parts += [
        text(left - 6, top + 14, "round", anchor="end", size=11),
        *(text(left + (at + 0.5) * wide, top + 14, str(at), anchor="middle", size=10) for at in range(rounds)),
        *(text(left - 6, first + s * high + 12, f"stage {s}", anchor="end", size=11) for s in range(stages)),
        text(left - 6, first + stages * high + 12, "FMAs", anchor="end", size=11),
        path("".join(cell(0, stage, rounds) for stage in range(stages)), "rest"),
        path("".join(copies), "soon"),
        path("".join(cell(at, group.stage) for group in found for at in group.read), "on"),
        path("".join(cell(at, stages) for at in range(rounds) if used[at]), "on"),
        path("".join(cell(at, stages) for at in range(rounds) if not used[at]), "waste"),
        *labels,
        *light,
        Layer("panel", [_cover(left + (at + 1) * wide, first - 1, bottom) for at in range(rounds)]),
        Layer("text", [f"M{number(left + at * wide)} {number(first - 3)}h{number(wide)}v{number(bottom - first + 3)}"
                       f"h{number(-wide)}z" for at in range(rounds)], 1.6),
    ]  # fmt: skip
    return bottom + 6


def _cover(x: float, top: float, bottom: float) -> str:
    return box(x, top, _WIDTH - x, bottom - top) if x < _WIDTH - 11 else ""


def _sentence(found: Sequence[Group], at: int, what: str) -> str:
    started = [g for g in found if g.started == at]
    waited = [g for g in found if g.arrived == at]
    read = reading(found, at)
    flight = [g for g in flying(found, at) if g.started < at]
    said = []
    if waited:
        said.append(f"{listed([g.number for g in waited], what)} {'has' if len(waited) == 1 else 'have'} arrived")
    if read:
        places = joined([f"{what} {g.number} from stage {g.stage}" for g in read])
        said.append(f"the block reads {places}")
    if started:
        said.append(f"copies start: {joined([f'{what} {g.number} into stage {g.stage}' for g in started])}")
    if flight:
        said.append(f"{listed([g.number for g in flight], what)} still in flight")
    if not read:
        said.append("nothing to compute yet")
    return f"Round {at}: {'; '.join(said)}."
