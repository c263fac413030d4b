"""The lanes of a warp split at a branch and meet again, with the source line of each step."""

from __future__ import annotations

from collections.abc import Sequence

from climb.display.access_cost import plural
from climb.display.cell_output import CellOutput
from climb.display.stepper.frame import (
    Cells,
    Drawing,
    Grid,
    Label,
    Layer,
    Listing,
    box,
    listed,
    stepper,
    text,
)
from climb.emulator.execution.steps import Step

LANES = 32
_WIDTH, _LEFT, _PITCH = 420, 66, 10.9
_MOST = 60


def divergence_stepper(steps: Sequence[Step], source: str, *, title: str = "") -> CellOutput:
    """Step through the result of ``warp_steps``: the lanes that run each line of ``source``, and the lanes that wait.

    Raises ValueError if no step runs a line of the source, and for more than 60 steps.

    >>> text = exhibit("sides")                                                             # doctest: +SKIP
    >>> divergence_stepper(warp_steps(text, "sides<16>", arguments), text)                  # doctest: +SKIP
    """
    steps = _merged([step for step in steps if step.lines])
    lines = source.splitlines()
    if not steps:
        raise ValueError("the stepper needs at least one step that runs a line of the source")
    if len(steps) > _MOST:
        raise ValueError(f"{len(steps)} steps are more than the {_MOST} that the picture has room for")
    highest = max(max(step.lines) for step in steps)
    if highest > len(lines):
        raise ValueError(
            f"a step runs line {highest}, but the source has {len(lines)} lines; it belongs to another one"
        )
    running = [frozenset(lane for lane in range(LANES) if step.lanes[lane]) for step in steps]
    count, every = len(steps), range(len(steps))
    down = max(5.0, min(17.0, 300 / count))
    first = 52.0
    grid = Grid(LANES, _LEFT, first + down / 2, _PITCH, down, down - 1.5, 1.2)

    waits = [_waiting(running, at) for at in every]
    slots = [100 * sum(map(len, running[: at + 1])) / (LANES * (at + 1)) for at in every]
    drawing = Drawing(_WIDTH, first + count * down + 12)
    drawing.parts += [
        text(_LEFT - 6, 36, "line", anchor="end"),
        *(text(_LEFT + (lane + 0.45) * _PITCH, 36, str(lane), anchor="middle") for lane in (0, 8, 16, 24, 31)),
        text(2, 14, "Lanes across, time down", "text"),
        Label(_WIDTH - 6, 14, [f"lanes in use so far: {slots[at]:.0f} %" for at in every], "text", "end"),
        grid.drawn(range(count * LANES), "rest"),
        grid.drawn([at * LANES + lane for at in every for lane in waits[at]], "waste"),
        grid.drawn([at * LANES + lane for at in every for lane in running[at]], "soon"),
        Layer("panel", [box(0, first + (at + 1) * down - 0.5, _WIDTH, (count - at - 1) * down + 1) for at in every]),
        Cells("on", grid, [[at * LANES + lane for lane in sorted(running[at])] for at in every]),
        *(
            text(_LEFT - 6, first + at * down + down / 2 + 4, _where(steps[at]), anchor="end", size=11)
            for at in every
            if down > 11
        ),
    ]
    entries = [("on", "runs"), ("soon", "has run"), ("waste", "waits, switched off")]
    if any(len(running[at]) + len(waits[at]) < LANES for at in every):
        entries.append(("rest", "has left"))
    sentences = [_sentence(steps, running, waits, at, lines) for at in every]
    shown = range(min(min(step.lines) for step in steps), highest + 1)
    opening = next((n for n in range(shown[0], 0, -1) if "__global__" in lines[n - 1]), shown[0])
    listing = Listing([(n, lines[n - 1]) for n in range(opening, highest + 1)], [step.lines for step in steps])
    name = title or "The lanes of a warp at a branch, step by step"
    return stepper("divergence", name, drawing, sentences, key=entries, listing=listing)


def _waiting(running: Sequence[frozenset[int]], at: int) -> frozenset[int]:
    """Return the lanes that are switched off in a step and run again later."""
    later = frozenset().union(*running[at + 1 :])
    return later - running[at]


def _merged(steps: Sequence[Step]) -> list[Step]:
    """Merge neighbouring steps of the same lanes into one step."""
    out: list[Step] = []
    for step in steps:
        if out and (out[-1].lanes == step.lanes).all():
            out[-1] = Step(out[-1].block, tuple(sorted({*out[-1].lines, *step.lines})), step.lanes)
        else:
            out.append(step)
    return out


def _where(step: Step) -> str:
    lines = step.lines
    neighbours = len(lines) > 1 and lines[-1] - lines[0] == len(lines) - 1
    return f"{lines[0]}-{lines[-1]}" if neighbours or len(lines) > 3 else ", ".join(map(str, lines))


def _sentence(
    steps: Sequence[Step],
    running: Sequence[frozenset[int]],
    waits: Sequence[frozenset[int]],
    at: int,
    lines: Sequence[str],
) -> str:
    now, line = running[at], steps[at].lines[0]
    code = lines[line - 1].strip().rstrip("{;} ")
    where = listed(steps[at].lines, "line") if len(steps[at].lines) < 5 else f"lines {line} to {steps[at].lines[-1]}"
    where = where[:1].upper() + where[1:] + (f", {code}" if len(steps[at].lines) == 1 and code else "")
    who = (
        "all 32 lanes run"
        if len(now) == LANES
        else f"{listed(sorted(now), 'lane')} {'runs' if len(now) == 1 else 'run'}"
    )
    if len(now) > 4 and len(now) < LANES and not who.startswith(f"{len(now)} "):
        who = f"{len(now)} lanes ({who.removesuffix(' run')}) run"
    said = f"{where}: {who}"
    if waits[at]:
        said += f", {plural(len(waits[at]), 'lane')} {'waits' if len(waits[at]) == 1 else 'wait'}"
    left = LANES - len(now) - len(waits[at])
    if left:
        said += f", {plural(left, 'lane')} {'has' if left == 1 else 'have'} left"
    before = running[at - 1] if at else frozenset(range(LANES))
    if at and now < before:
        more = len(before) - len(now)
        said += ". The warp has split" if len(before) == LANES else f", {more} more than before"
    elif at and now > before:
        said += ". The lanes have met again"
    elif at and not now & before:
        said += ". The other side of the branch"
    return said + "."
