"""Find the most expensive lines of a launch."""

from __future__ import annotations

from dataclasses import replace

from climb.emulator import AccessCounters, Counters


def cost(line: AccessCounters) -> int:
    """Return the sectors and wavefronts of a line: how often the memory system has to move something for it."""
    return max(line.sectors, line.wavefronts, line.requests)


def waste(line: AccessCounters) -> int:
    """Return the sectors and wavefronts beyond the fewest possible."""
    return max(line.sectors - line.ideal_sectors, 0) + max(line.bank_conflicts, 0)


def costliest(counters: Counters, most: int) -> tuple[Counters, int]:
    """Return the counters with at most `most` access lines, those that cost most, and how many were left out. 0:
    all."""
    if not most or len(counters.lines) <= most:
        return counters, 0
    kept = set(sorted(range(len(counters.lines)), key=lambda n: -cost(counters.lines[n]))[:most])
    lines = tuple(line for n, line in enumerate(counters.lines) if n in kept)
    return replace(counters, lines=lines), len(counters.lines) - most
