"""The phases that measuring spends its time on, by a clock that the test sets."""

from __future__ import annotations

import pytest

from climb.bench import phases as module
from climb.bench.phases import Phases


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The clock's time, in seconds; the test changes it."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_point_names_what_took_a_twentieth_of_a_second_and_the_total_everything(clock) -> None:
    phases = Phases()
    clock[0] = 100.25
    phases.next_point()
    for name, seconds in (("case", 0.5), ("check", 0.03125), ("case", 0.25)):
        with phases(name):
            clock[0] += seconds
    clock[0] += 1.0
    assert phases.point() == "1.8 s: 0.8 case, 1.0 other"
    assert phases.total() == "2.0 s: 0.8 case, 0.0 check, 1.2 other"
    phases.next_point()
    assert phases.point() == "0.0 s"
    with phases("sample"):
        clock[0] += 2.0
    assert phases.point() == "2.0 s: 2.0 sample"
    assert phases.total() == "4.0 s: 0.8 case, 0.0 check, 2.0 sample, 1.2 other"


def test_least_seconds_are_named_themselves(clock) -> None:
    phases = Phases()
    assert phases.total() == "0.0 s: 0.0 other"


def test_a_phase_that_fails_counts_too(clock) -> None:
    phases = Phases()
    with pytest.raises(ValueError), phases("check"):
        clock[0] += 3.0
        raise ValueError
    assert phases.point() == "3.0 s: 3.0 check"
