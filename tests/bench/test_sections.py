"""Sections of a report: the numbers that follow from counts, what limits a launch, and what its warps wait for."""

from __future__ import annotations

import math

import pytest

from climb.bench.profiling import METRICS
from climb.bench.sections import FULL, LITTLE, SECTIONS, UNITS, limiter, reasons_by_share, section
from climb.bench.stalls import REASONS

IDLE = dict.fromkeys(UNITS, 10.0)
STALLS = dict.fromkeys((f"stalled_{reason}" for reason in REASONS), 0.0) | {
    "stalled_barrier": 3.0,
    "stalled_long_scoreboard": 6.0,
    "stalled_selected": 1.0,
    "warp_cycles_per_instruction": 12.0,
}


@pytest.mark.parametrize(
    ("busy", "says"),
    [
        ({}, "latency"),
        ({"l2_busy": LITTLE - 0.1}, "latency"),
        ({"l2_busy": float(LITTLE)}, "nothing alone"),
        ({"l2_busy": FULL - 0.1}, "nothing alone"),
        ({"l2_busy": float(FULL)}, "L2"),
        ({"l2_busy": 90.0, "dram_busy": 91.0}, "DRAM"),
        ({"issue_busy": 95.0}, "issue slots"),
    ],
)
def test_limiter_is_the_busiest_unit_if_it_is_busy_enough(busy, says):
    assert limiter(IDLE | busy) == says


def test_units_are_counts_of_a_record():
    assert set(METRICS) >= set(UNITS)


def test_reasons_are_ranked_as_shares_of_all_cycles_without_the_warp_that_issues():
    ranked = reasons_by_share(STALLS)
    assert ranked[:2] == [("long_scoreboard", 50.0), ("barrier", 25.0)]
    assert "selected" not in dict(ranked) and len(ranked) == len(REASONS) - 1


def test_counts_without_stall_reasons_are_refused():
    with pytest.raises(LookupError, match="no stall reasons in these counts"):
        reasons_by_share(IDLE)


def test_memory_section_computes_rates_and_shares():
    counts = {
        "load_sectors": 400, "load_requests": 100, "load_sectors_hit_l1": 100, "l2_sectors_asked": 300,
        "l2_sectors_filled": 75, "dram_bytes_read": 6000, "dram_bytes_written": 2000, "nanoseconds": 4,
    }  # fmt: skip
    read = {column.heading: column.read(counts) for column in section("MemoryWorkloadAnalysis").columns}
    assert read == {"sectors per load": 4.0, "hit L1": 25.0, "hit L2": 75.0, "DRAM, GB/s": 2000.0}
    none = dict.fromkeys(counts, 0) | {"nanoseconds": 4}
    assert math.isnan(section("MemoryWorkloadAnalysis").columns[0].read(none))


def test_occupancy_is_the_share_of_a_schedulers_warps():
    assert section("Occupancy").columns[0].read({"warps_active": 4.0}) == 25.0


def test_every_section_has_a_question_and_an_unknown_one_is_named():
    assert all(one.question.endswith("?") and one.columns for one in SECTIONS)
    with pytest.raises(LookupError, match="no section Speed; there are SpeedOfLight"):
        section("Speed")
