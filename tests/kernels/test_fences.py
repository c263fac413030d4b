"""Blocks that hand over their results through a ticket fence on both sides of it, as the memory model demands.

The emulator orders the blocks by the ticket alone once it is fenced on one side, and no GPU of today shows the second
fence's absence, so the tests read the PTX: store, fence, ticket, fence, load.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.code import whole_source
from tools.corners import with_fault

from climb import BoundRung, ladder_names, load_ladder

RUNGS = [rung for name in ladder_names() for rung in load_ladder(name) if "atomicInc" in whole_source(rung.path)]
STEP = re.compile(
    r"(?P<store>st\.global)|(?P<fence>membar\.gl|fence\.\w+\.gpu)|(?P<ticket>atom\.global\.inc)|(?P<load>ld\.global)"
)
RUNG = pytest.mark.parametrize("rung", RUNGS, ids=lambda rung: f"{rung.ladder.name}-{rung.name}")


def _steps_around_the_ticket(rung: BoundRung) -> list[str]:
    """The kinds of steps from the last store before the ticket to the first load after it, in the order of the PTX."""
    ptx = rung.compiled(rung.ladder.problem.headline[0], whole=False).ptx
    steps = [match.lastgroup for match in STEP.finditer(ptx)]
    ticket = steps.index("ticket")
    first = max(at for at in range(ticket) if steps[at] == "store")
    return steps[first : steps.index("load", ticket) + 1]


def test_rungs_with_tickets_are_found() -> None:
    assert len(RUNGS) >= 4


@RUNG
def test_a_ticket_is_fenced_on_both_sides(rung: BoundRung) -> None:
    assert _steps_around_the_ticket(rung) == ["store", "fence", "ticket", "fence", "load"]


@RUNG
def test_a_missing_fence_on_either_side_is_found(rung: BoundRung, tmp_path: Path) -> None:
    fences = re.findall(r"__threadfence\(\);  // .*", rung.source)
    assert len(fences) == 2
    for number, (fence, left) in enumerate(zip(fences, ("ticket fence", "fence ticket"), strict=True)):
        faulty = with_fault(rung, fence, "", tmp_path / str(number))
        assert _steps_around_the_ticket(faulty) == ["store", *left.split(), "load"]
