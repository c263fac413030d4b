"""The times that chapters cite: medians, ratios, shares of the limit, verdicts."""

from __future__ import annotations

import dataclasses
import os
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import cuda, hardware, measure, recording, records
from climb.bench import timings as module
from climb.bench.timings import Timings, timings
from climb.bench.timings import verdict as verdict_of
from climb.bench.work import Work


@pytest.fixture
def times():
    return Timings(scale.ladder, "cold", made.record())


def test_times_ratios_and_shares(times):
    assert times.seconds("plain") == pytest.approx(4e-6)
    assert times.ratio("vector", "plain") == pytest.approx(2.0)
    assert times.rate("vector") == pytest.approx(8 * 1024 / 2e-6)
    assert times.rate("vector", per="flops") == pytest.approx(2 * 1024 / 2e-6)
    # 8192 bytes at 8.192 GB/s take 1 us.
    assert times.limit_s() == pytest.approx(1e-6) and times.of_limit("vector") == pytest.approx(0.5)
    assert times.best() == "vector" and times.best({"n": 1023}) == "plain"


def test_time_that_was_not_measured_is_named(times):
    with pytest.raises(LookupError, match="no cold time of 'vector' at n=1023; there are: library at n=1023; "):
        times.seconds("vector", {"n": 1023})
    with pytest.raises(LookupError, match="scale was not measured on this machine"):
        times.seconds("plain", mine=True)


def test_a_rung_with_work_of_its_own_is_held_to_both_limits_and_a_batch_has_no_floor():
    half = dataclasses.replace(scale.vector, work=lambda size: Work(read=2 * size["n"], written=2 * size["n"]))
    record = replace(made.record(), ceilings={**made.record().ceilings, "floor_us": 0.5})
    times = Timings(dataclasses.replace(scale.ladder, rungs=(scale.plain, half)), "cold", record)
    # The floor is 0.5 us; the problem's 8192 bytes take 1 us, the rung's own 4096 bytes half of that; it takes 2 us.
    assert times.of_limit("vector") == pytest.approx(0.75) and times.of_own_limit("vector") == pytest.approx(0.5)
    assert times.of_own_limit("plain") == times.of_limit("plain") == pytest.approx(1.5 / 4)
    assert times.limit().floor_s == pytest.approx(0.5e-6) and times.limit(rung="vector").memory_s == pytest.approx(
        0.5e-6
    )
    batch = dataclasses.replace(times, regime="batch")
    assert batch.limit_s() == pytest.approx(1e-6) and batch.of_limit("vector") == pytest.approx(0.5)
    assert dataclasses.replace(times, regime="dirty").limit_s() == times.limit_s()


def test_own_times_are_kept_beside_the_reference():
    slower = made.record()
    mine = replace(slower, points=tuple(replace(p, median_s=2 * p.median_s) for p in slower.points), ceilings={})
    both = Timings(scale.ladder, "cold", made.record(), mine)
    assert both.seconds("plain", mine=True) == pytest.approx(2 * both.seconds("plain"))
    assert both.ratio("vector", "plain", mine=True) == pytest.approx(2.0)
    # Chapters divide the record's times by the record's ceilings, on any reader's GPU.
    assert both.points == made.record().points and both.ceilings == made.record().ceilings


def interval(p25, median, p75):
    """A point with these quartiles."""
    return replace(made.record().points[0], p25_s=p25, median_s=median, p75_s=p75)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((1.0, 1.1, 1.2), (1.3, 1.4, 1.5), "faster"),
        ((1.3, 1.4, 1.5), (1.0, 1.1, 1.2), "slower"),
        ((1.0, 1.1, 1.2), (1.0, 1.15, 1.3), "same"),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), "same"),
        # Intervals that touch are not disjoint, and neither median is in the other's interval.
        ((1.0, 1.1, 1.2), (1.2, 1.3, 1.4), "ambiguous"),
        ((1.2, 1.3, 1.4), (1.0, 1.1, 1.2), "ambiguous"),
        # One median alone is in the other's interval: not enough, whichever it is.
        ((1.0, 1.1, 1.4), (1.2, 1.3, 1.5), "ambiguous"),
        ((1.2, 1.3, 1.5), (1.0, 1.1, 1.4), "ambiguous"),
        ((1.0, 1.1, 1.2), (1.15, 1.3, 1.5), "ambiguous"),
        # A median at the very end of the other's interval is in it.
        ((1.0, 1.1, 1.2), (1.1, 1.2, 1.3), "same"),
        ((1.1, 1.2, 1.3), (1.0, 1.1, 1.2), "same"),
    ],
)
def test_the_verdict_takes_both_medians(a, b, verdict):
    assert verdict_of(interval(*a), interval(*b)) == verdict


def test_an_unknown_regime_is_refused():
    with pytest.raises(ValueError, match="regime is 'hot'; expected one of cold, batch"):
        timings(scale.ladder, "hot")


HOURS = 3600
MADE_AT = 1_000_000


@pytest.fixture
def live(tmp_path, monkeypatch):
    """A GPU on which the tiny ladder is measured live. Returns a function that asks for its times some seconds after
    the local record was made, and the list of the measurements."""
    measured, sessions = [], []

    def record_ladder(name, sampling, known, *, parts_in):
        assert parts_in == tmp_path
        measured.append(name)
        return replace(made.record(), date=f"measured {len(measured)}")

    monkeypatch.setattr(module, "LOCAL", tmp_path)
    monkeypatch.setattr(module, "load_ladder", lambda name: scale.ladder)
    monkeypatch.setattr(cuda, "replaying", lambda: False)
    monkeypatch.setattr(cuda, "can_measure", lambda: True)
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)
    monkeypatch.setattr(recording, "record_ladder", record_ladder)
    monkeypatch.setattr(measure, "record_ceilings", lambda *args, **more: sessions.append(1) or made.ceilings())

    def ask(after: int) -> Timings:
        module._live.cache_clear()
        module._live_ceilings.cache_clear()
        for path in tmp_path.glob("*.json"):
            os.utime(path, (MADE_AT, MADE_AT))
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: MADE_AT + after))
        return timings(scale.ladder)

    ask.sessions = sessions
    yield ask, measured
    module._live.cache_clear()
    module._live_ceilings.cache_clear()


def test_a_live_measurement_is_kept_and_used_again_within_twelve_hours(live, tmp_path):
    ask, measured = live
    assert ask(0).mine.date == "measured 1"
    assert records.load_record("scale", folder=tmp_path).date == "measured 1"
    assert ask(1).mine.date == ask(12 * HOURS - 1).mine.date == "measured 1" and measured == ["scale"]
    assert len(ask.sessions) == 1 and ask(2).limit_s(mine=True) == pytest.approx(1e-6)
    ask(12 * HOURS)
    assert len(ask.sessions) == 2, "a session's ceilings are as old as its records may be"


@pytest.mark.parametrize("after", [12 * HOURS, 12 * HOURS + 5, 24 * HOURS])
def test_a_live_measurement_of_twelve_hours_ago_is_made_again(live, after):
    ask, measured = live
    ask(0)
    assert ask(after).mine.date == "measured 2" and len(measured) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"device": made.DEVICE | {"name": "another GPU"}},
        {"points": made.record().points[2:]},
        {"points": tuple(replace(p, flops=1) for p in made.record().points)},
    ],
    ids=["another GPU", "a point is missing", "the problem has changed"],
)
def test_a_live_measurement_that_does_not_fit_is_made_again(live, changed, tmp_path):
    ask, measured = live
    records.save_record(replace(made.record(), **changed), tmp_path / "scale.json")
    assert ask(1).mine.date == "measured 1" and measured == ["scale"]


def test_a_live_measurement_that_cannot_be_read_is_made_again(live, tmp_path):
    ask, _ = live
    (tmp_path / "scale.json").write_text("{")
    assert ask(1).mine.date == "measured 1"
    assert records.load_record("scale", folder=tmp_path).date == "measured 1"
