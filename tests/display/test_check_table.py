"""The table of all rungs, launched and compared: what it shows, which size it takes, and that a wrong rung raises."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_ladder import scale

from climb.bench.checking import WrongResult
from climb.bench.ladder import Ladder
from climb.display.check_table import check_table


@pytest.fixture
def ladder() -> Ladder:
    """The tiny ladder, with check sizes that all its rungs take."""
    return replace(scale.ladder, problem=replace(scale.problem, check=({"n": 64}, {"n": 1024}, {"n": 0})), peers=())


def test_every_rung_is_listed_with_grid_and_block(ladder):
    shown = check_table(ladder)
    largest = {"n": 1024}
    head, columns, _, *rows = repr(shown).split("\n")
    assert head.startswith(f"{ladder.problem.title} at n={largest['n']}: every rung ")
    assert columns.split() == ["rung", "grid", "x", "block", "result"]
    assert [row.split()[0] for row in rows] == list(ladder.names) and all(row.endswith("right") for row in rows)
    first = ladder[ladder.names[0]].launches(largest)[0]
    assert f"{first.grid[0]} x {first.block[0]}" in rows[0]
    assert f'data-ladder="{ladder.name}" data-rungs="{" ".join(ladder.names)}"' in shown.html
    assert repr(shown) == repr(check_table(ladder))


def test_a_size_and_some_rungs_can_be_chosen(ladder):
    name = ladder.names[1]
    shown = check_table(ladder, {"n": 64}, rungs=[name])
    assert "at n=64" in repr(shown) and len(repr(shown).split("\n")) == 4
    assert f'data-rungs="{name}"' in shown.html


def test_a_rung_that_refuses_the_size_runs_at_one_of_its_own(ladder):
    picky = replace(ladder.rungs[0], requires=lambda size: None if size["n"] == 7 else "n is not 7")
    problem = replace(ladder.problem, check=({"n": 7}, {"n": 100}))
    shown = repr(check_table(replace(ladder, problem=problem, rungs=(picky, *ladder.rungs[1:])), {"n": 100}))
    assert "size" in shown.split("\n")[1]
    assert [row.split()[-2] for row in shown.split("\n")[3:]] == ["n=7", *["n=100"] * (len(ladder.names) - 1)]


def test_a_rung_that_takes_no_size_is_an_error(ladder):
    refuses = replace(ladder.rungs[0], requires=lambda size: "never")
    with pytest.raises(ValueError, match=f"scale '{refuses.name}' takes neither this size nor any check size"):
        check_table(replace(ladder, rungs=(refuses,)))


def test_a_wrong_rung_raises():
    with pytest.raises(WrongResult):
        check_table(replace(scale.faulty, peers=()))
