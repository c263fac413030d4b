"""The same kernel in two sessions: how much two boards of one GPU model differ.

Some rungs belong to two ladders, so their code was measured twice at the same sizes, often on different boards and
different days. Smaller differences between sessions cannot be resolved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from climb.bench import records
from climb.bench.records import Point, Record


@dataclass(frozen=True)
class Twice:
    """One kernel at one size in two sessions: its ladder and its point in each, ``first`` being the earlier session."""

    ladders: tuple[str, str]
    first: Point
    second: Point

    @property
    def difference(self) -> float:
        """The relative difference of the medians: 0.1 if the second takes 10 % longer than the first."""
        return self.second.median_s / self.first.median_s - 1


def recorded_twice(folder: Path, regime: str = "cold") -> tuple[Twice, ...]:
    """Find the rungs with the same code, launches and size in two records of ``folder`` that belong to different
    sessions.

    Raises RecordError.
    """
    return twice_in((records.load_record(name, folder=folder) for name in records.recorded(folder)), regime)


def twice_in(found: Iterable[Record], regime: str = "cold") -> tuple[Twice, ...]:
    """Like :func:`recorded_twice`, for the given records; if there are more than two sessions, every pair counts."""
    same: dict[tuple[object, ...], list[tuple[str, str, Point]]] = {}
    for record in sorted(found, key=lambda one: (one.session or "", one.ladder)):
        for point in record.points:
            if point.kind == "rung" and point.regime == regime:
                key = (point.source_sha256, tuple(sorted(point.size.items())))
                same.setdefault(key, []).append((record.session or "", record.ladder, point))
    return tuple(
        Twice((a[1], b[1]), a[2], b[2]) for points in same.values() for a, b in combinations(points, 2) if a[0] != b[0]
    )
