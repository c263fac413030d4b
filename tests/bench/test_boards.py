"""Kernels that two sessions have measured: how far boards of one model are apart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import records
from climb.bench.boards import recorded_twice, twice_in

#: How many rungs at a size the record of the tiny ladder has.
RUNG_POINTS = sum(kind == "rung" for kind, _, _ in records.expected_points(scale.ladder))


def session(name, ladder, factor=1.0):
    """A record of the tiny ladder under another name and session, whose times are ``factor`` as long."""
    record = made.record(scale.ladder)
    points = tuple(
        replace(p, samples=tuple(factor * s for s in p.samples), median_s=factor * p.median_s,
                p25_s=factor * p.p25_s, p75_s=factor * p.p75_s)
        for p in record.points
    )  # fmt: skip
    return replace(record, ladder=ladder, session=name, points=points)


def test_same_kernels_of_two_sessions_are_paired_earlier_session_first():
    found = twice_in([session("2031-02", "again", 1.05), session("2031-01", "scale")])
    assert len(found) == RUNG_POINTS
    assert {pair.ladders for pair in found} == {("scale", "again")}
    assert all(pair.difference == pytest.approx(0.05) for pair in found)
    assert all(pair.first.name == pair.second.name and pair.first.size == pair.second.size for pair in found)


def test_two_records_of_one_session_are_no_pair():
    assert twice_in([session("2031-01", "scale"), session("2031-01", "again", 1.05)]) == ()


def test_other_code_is_no_pair():
    other = session("2031-02", "again")
    changed = tuple(replace(p, source_sha256="0" * 64) for p in other.points if p.kind == "rung")
    assert twice_in([session("2031-01", "scale"), replace(other, points=changed)]) == ()


def test_three_sessions_make_three_pairs_of_each_kernel():
    found = twice_in([session(f"2031-0{month}", f"ladder_{month}") for month in (1, 2, 3)])
    assert len(found) == 3 * RUNG_POINTS


def test_book_has_kernels_that_two_sessions_measured():
    assert len(recorded_twice(records.RECORDS / records.BOOK_GPU)) > 10
