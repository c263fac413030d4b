"""Stall reasons: which metrics are profiled, and what the counts of a launch say."""

from __future__ import annotations

import pytest
from tiny_ladder import scale

from climb.bench import profiling
from climb.bench.profiling import METRICS, HardwareCounters
from climb.bench.records.kinds import HardwarePoint
from climb.bench.stalls import REASONS, STALL_METRICS, cycles_per_instruction, waits
from climb.display import stalls_table as module
from climb.display.stalls_table import stalls_table

COUNTS = {f"stalled_{reason}": 0.25 * number for number, reason in enumerate(REASONS)}


def test_reasons_are_profiled_under_names_that_no_other_metric_has():
    assert set(STALL_METRICS) <= set(METRICS) and len({name for name, _ in METRICS.values()}) == len(METRICS)
    assert METRICS["stalled_barrier"][0] == "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"
    assert len(set(REASONS.values())) == len(REASONS)


def test_waits_are_sorted_and_add_up_to_the_cycles_of_an_instruction():
    found = waits(COUNTS | {"instructions": 7})
    assert next(iter(found)) == "nothing: it issues" and found["memory"] == 0
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert cycles_per_instruction(COUNTS) == 0.25 * sum(range(len(REASONS)))


def test_counts_without_stall_reasons_are_refused():
    with pytest.raises(LookupError, match="no stall reason long_scoreboard in these counts; `climb profile` counts it"):
        waits({"instructions": 7})


def test_table_has_the_reasons_that_matter_and_says_what_is_pending(monkeypatch):
    size = {"n": 1024}
    launches = {"a float": ("plain", size), "four floats": ("vector", size)}
    few = dict.fromkeys(COUNTS, 0.0) | {"stalled_long_scoreboard": 9.0, "stalled_selected": 1.0, "stalled_drain": 0.1}
    more = few | {"stalled_barrier": 5.0}
    points = tuple(
        HardwarePoint(rung, size, scale.ladder[rung].sha256(size), counts)
        for rung, counts in (("plain", few), ("vector", more))
    )
    known = HardwareCounters(scale.ladder, "A GPU", "2026-11-22", "climb profile scale", points)
    monkeypatch.setattr(module, "hardware_counters", lambda ladder: known)
    lines = stalls_table(scale.ladder, launches).text.splitlines()
    assert lines[1].split() == ["rung", "in", "all", "memory", "nothing:", "it", "issues", "a", "barrier", "other"]
    assert lines[3].split() == ["a", "float", "10.1", "9.0", "1.0", "0", "0.10"]
    assert lines[4].split() == ["four", "floats", "15.1", "9.0", "1.0", "5.0", "0.10"]
    monkeypatch.setattr(module, "MOST", 1)
    assert stalls_table(scale.ladder, launches).text.splitlines()[1].split() == ["rung", "in", "all", "memory", "other"]
    monkeypatch.setattr(module, "hardware_counters", profiling.hardware_counters)
    assert stalls_table(scale.ladder, launches).text.splitlines()[2].startswith("no hardware counters of scale")
