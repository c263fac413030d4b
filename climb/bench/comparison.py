"""Two folders of records, compared point by point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from climb.bench import records
from climb.bench.problem import size_label
from climb.bench.records import Point
from climb.bench.timings import Verdict, verdict
from climb.bench.units import ratio_text, time_text

_COLUMNS = ("ladder", "size", "name", "A", "B", "A / B", "B is")


@dataclass(frozen=True)
class Pair:
    """One rung or peer at one size in both folders. ``b`` is what the verdict is about: is it faster than ``a``?"""

    ladder: str
    a: Point
    b: Point

    @property
    def verdict(self) -> Verdict:
        """Whether B is faster than A, by their intervals from the 25th to the 75th percentile."""
        return verdict(self.b, self.a)


@dataclass(frozen=True)
class Comparison:
    """The points that both folders have, and how many points are in one of them alone."""

    pairs: tuple[Pair, ...]
    only_a: int
    only_b: int


def compare_folders(a: Path, b: Path, regime: str = "cold", ladders: Collection[str] = ()) -> Comparison:
    """Compare the records of two folders, of all ladders that both have or of those named.

    Raises LookupError when there is nothing to compare or a named ladder has no record in one of them, and RecordError.
    """
    both = set(records.recorded(a)) & set(records.recorded(b))
    names = sorted(ladders or both)
    if not names:
        raise LookupError(f"{a} and {b} have no record of the same ladder")
    pairs: list[Pair] = []
    only_a = only_b = 0
    for name in names:
        first, second = (records.load_record(name, folder.name, folder) for folder in (a, b))
        here, there = ({_key(p): p for p in record.points if p.regime == regime} for record in (first, second))
        pairs += [Pair(name, point, there[key]) for key, point in here.items() if key in there]
        only_a += len(here.keys() - there.keys())
        only_b += len(there.keys() - here.keys())
    return Comparison(tuple(pairs), only_a, only_b)


def table(found: Comparison) -> str:
    """A line for each pair, and below them how many have which verdict."""
    rows = [_COLUMNS, *(_cells(pair) for pair in found.pairs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    verdicts = Counter(pair.verdict for pair in found.pairs)
    counted = ", ".join(f"{number} {name}" for name, number in sorted(verdicts.items())) or "nothing"
    return "\n".join(
        [*lines, "", f"{len(found.pairs)} points: {counted}; only in A: {found.only_a}, only in B: {found.only_b}"]
    )


def _key(point: Point) -> tuple[str, str, tuple[tuple[str, object], ...]]:
    return point.kind, point.name, tuple(sorted(point.size.items()))


def _cells(pair: Pair) -> Sequence[str]:
    times = (time_text(pair.a.median_s), time_text(pair.b.median_s))
    ratio = ratio_text(pair.a.median_s / pair.b.median_s)
    return (pair.ladder, size_label(pair.a.size), pair.a.name, *times, ratio, pair.verdict)
