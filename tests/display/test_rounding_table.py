"""The table of errors: both kinds, of the best rung and of a library that computes as accurately."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import records
from climb.display import rounding_table as module
from climb.display.rounding_table import rounding_table


@pytest.fixture
def recorded(monkeypatch):
    """Makes the tiny ladder a sum of products, and its record what the test says."""

    def show(record):
        ladder = replace_problem(scale.ladder, reference_magnitude=scale.ladder.problem.reference)
        monkeypatch.setattr(module, "load_ladder", lambda name: ladder)
        monkeypatch.setattr(module.records, "find_record", lambda name, gpu: record)
        return rounding_table(["scale"]).text.splitlines()[3:]

    return show


def replace_problem(ladder, **fields):
    """A copy of a ladder whose problem has other fields."""
    from dataclasses import replace as copied

    return copied(ladder, problem=copied(ladder.problem, **fields))


def with_errors(record, **errors):
    """The record with other errors, by name: normwise and componentwise."""
    points = tuple(
        replace(p, max_rel_error=errors[p.name][0], max_component_error=errors[p.name][1]) if p.name in errors else p
        for p in record.points
    )
    return replace(record, points=points)


def test_row_has_both_errors_of_the_fastest_rung_and_of_the_library(recorded):
    record = made.record()
    peer = next(p.name for p in record.points if p.kind == "peer")
    best = min((p for p in record.points if p.kind == "rung" and p.regime == "cold"), key=lambda p: p.median_s).name
    (row,) = recorded(with_errors(record, **{best: (2.4e-7, 3.1e-8), peer: (0.0, None)}))
    assert row.split() == ["scale", "1024", best, "2e-07", "3e-08", peer, "0", "pending"]


def test_ladder_without_a_record_and_one_whose_outputs_are_no_sums_have_no_row(recorded, monkeypatch):
    assert recorded(None) == []
    monkeypatch.setattr(module, "load_ladder", lambda name: scale.ladder)
    assert rounding_table(["scale"]).text.splitlines()[3:] == []


def test_every_ladder_of_sums_that_was_recorded_has_a_row():
    text = rounding_table(gpu=records.BOOK_GPU).text
    assert all(f"\n{name} " in text for name in ("sgemm", "conv1d", "conv3d", "reduction"))
    assert "\ntranspose " not in text
