"""Stall reasons: which metrics are profiled, and what the counts of a launch say."""

from __future__ import annotations

import pytest

from climb.bench.profiling import METRICS
from climb.bench.stalls import REASONS, STALL_METRICS, cycles_per_instruction, waits

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
