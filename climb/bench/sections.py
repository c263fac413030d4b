"""Sections of a report of Nsight Compute: the question that each answers, and its numbers from a record's counts.

``ncu`` groups its metrics in sections (``ncu --section SpeedOfLight``). A record of ``climb profile`` has the metrics
of five of them; ``SECTIONS`` says how a section's numbers follow from the record's counts. ``limiter`` reads the first
section as Nsight Compute's own rule does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from climb.bench.stalls import REASONS

Counts = Mapping[str, float]

#: The most warps that a scheduler of sm_80, sm_90 or sm_100 holds: 64 on an SM, which has four schedulers.
WARPS_PER_SCHEDULER = 16
#: A unit that is busy in FULL percent of the cycles limits a kernel. If every unit is busy in less than LITTLE percent,
#: latency does. These are the thresholds of Nsight Compute's rule "SOL Bottleneck".
FULL, LITTLE = 80, 60
#: The units whose busy cycles a record has, by the names of the counts.
UNITS = {
    "issue_busy": "issue slots",
    "l1_data_busy": "L1 and shared memory",
    "l2_busy": "L2",
    "dram_busy": "DRAM",
}


@dataclass(frozen=True)
class Column:
    """One number of a section: its heading, its formula from the counts, and "%" for a percentage."""

    heading: str
    read: Callable[[Counts], float | str]
    unit: str = ""


@dataclass(frozen=True)
class Section:
    """A section: ``identifier`` for the command line, ``title`` in the report, the question that it answers."""

    identifier: str
    title: str
    question: str
    columns: tuple[Column, ...]


def limiter(counts: Counts) -> str:
    """Name the limit of a launch: a name of ``UNITS``, "latency", or "nothing alone" between the two thresholds."""
    name = max(UNITS, key=lambda unit: counts[unit])
    busy = counts[name]
    return UNITS[name] if busy >= FULL else "latency" if busy < LITTLE else "nothing alone"


def reasons_by_share(counts: Counts) -> list[tuple[str, float]]:
    """List the stall reasons, largest first, as Nsight Compute's names with their percentages of all warp cycles.

    ``selected`` is left out: a warp that issues does not wait. Raises LookupError if the counts have no stall reasons.
    """
    if "stalled_selected" not in counts:
        raise LookupError("no stall reasons in these counts; `climb profile` counts them")
    found = {reason: counts[f"stalled_{reason}"] for reason in REASONS if reason != "selected"}
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [(reason, 100 * cycles / counts["warp_cycles_per_instruction"]) for reason, cycles in ranked]


def _of(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _reason(place: int) -> Callable[[Counts], str]:
    def read(counts: Counts) -> str:
        reason, share = reasons_by_share(counts)[place]
        return f"{reason}, {share:.0f}\N{NO-BREAK SPACE}%"

    return read


SECTIONS: tuple[Section, ...] = (
    Section(
        "SpeedOfLight",
        "GPU Speed Of Light Throughput",
        "Which unit is close to its limit?",
        tuple(Column(words, lambda c, name=name: c[name], "%") for name, words in UNITS.items()),
    ),
    Section(
        "SchedulerStats",
        "Scheduler Statistics",
        "How often does a scheduler find a warp that can issue?",
        (
            Column("warps", lambda c: c["warps_active"]),
            Column("eligible", lambda c: c["warps_eligible"]),
            Column("issue slots used", lambda c: c["issue_busy"], "%"),
        ),
    ),
    Section(
        "WarpStateStats",
        "Warp State Statistics",
        "What does a warp wait for?",
        (
            Column("cycles per instruction", lambda c: c["warp_cycles_per_instruction"]),
            Column("first reason", _reason(0)),
            Column("second", _reason(1)),
            Column("third", _reason(2)),
        ),
    ),
    Section(
        "MemoryWorkloadAnalysis",
        "Memory Workload Analysis",
        "Which level of memory serves the loads?",
        (
            Column("sectors per load", lambda c: _of(c["load_sectors"], c["load_requests"])),
            Column("hit L1", lambda c: 100 * _of(c["load_sectors_hit_l1"], c["load_sectors"]), "%"),
            Column("hit L2", lambda c: 100 * (1 - _of(c["l2_sectors_filled"], c["l2_sectors_asked"])), "%"),
            Column("DRAM, GB/s", lambda c: (c["dram_bytes_read"] + c["dram_bytes_written"]) / c["nanoseconds"]),
        ),
    ),
    Section(
        "Occupancy",
        "Occupancy",
        "How many warps are there to take turns?",
        (Column("achieved", lambda c: 100 * c["warps_active"] / WARPS_PER_SCHEDULER, "%"),),
    ),
)


def section(identifier: str) -> Section:
    """Return the section of this identifier. Raises LookupError."""
    for one in SECTIONS:
        if one.identifier == identifier:
            return one
    raise LookupError(f"no section {identifier}; there are {', '.join(one.identifier for one in SECTIONS)}")
