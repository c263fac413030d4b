"""Two folders of records, compared point by point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from climb.bench import records
from climb.bench.problem import size_label
from climb.bench.records import Point
from climb.bench.timings import Verdict, verdict
from climb.bench.units import ratio_text, time_text

_COLUMNS = ("ladder", "size", "name", "A", "B", "A / B", "B is")


@dataclass(frozen=True)
class Pair:
    """One rung or peer at one size in both folders. The verdict says whether ``b`` is faster than ``a``.

    Medians that differ by less than ``at_least``, a share of the smaller one, count as the same, whatever their
    spreads.
    """

    ladder: str
    a: Point
    b: Point
    at_least: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """The verdict on whether B is faster than A, from their intervals between the 25th and 75th percentiles."""
        near = abs(self.a.median_s - self.b.median_s) < self.at_least * min(self.a.median_s, self.b.median_s)
        return "same" if near else verdict(self.b, self.a)

    @property
    def other_code(self) -> bool:
        """Return whether the two measured different kernels under one name: code, options or launches differ."""
        return self.a.source_sha256 != self.b.source_sha256


@dataclass(frozen=True)
class Comparison:
    """The points that both folders have, the number of points that only one of them has, and the compared ladders."""

    pairs: tuple[Pair, ...]
    only_a: int
    only_b: int
    ladders_a: tuple[str, ...] = ()
    ladders_b: tuple[str, ...] = ()

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of points by verdict."""
        return Counter(pair.verdict for pair in self.pairs)


def compare_folders(
    a: Path, b: Path, regime: str = "cold", ladders: Collection[str] = (), at_least: float = 0.0
) -> Comparison:
    """Compare the records of two folders, of all ladders that both have or of those named.

    Medians that differ by less than the share ``at_least`` count as the same. Raises LookupError when there is nothing
    to compare or a named ladder has no record in one of them, and RecordError.
    """
    of_a, of_b = (set(records.recorded(folder)) for folder in (a, b))
    names = sorted(ladders or of_a & of_b)
    if not names:
        raise LookupError(f"{a} and {b} have no record of the same ladder")
    pairs: list[Pair] = []
    only_a = only_b = 0
    for name in names:
        first, second = (records.load_record(name, folder.name, folder) for folder in (a, b))
        here, there = ({_key(p): p for p in record.points if p.regime == regime} for record in (first, second))
        pairs += [Pair(name, point, there[key], at_least) for key, point in here.items() if key in there]
        only_a += len(here.keys() - there.keys())
        only_b += len(there.keys() - here.keys())
    alone = ((), ()) if ladders else (tuple(sorted(of_a - of_b)), tuple(sorted(of_b - of_a)))
    return Comparison(tuple(pairs), only_a, only_b, *alone)


def table(found: Comparison) -> str:
    """Format a line for each pair, and below them the number of pairs with each verdict.

    A dagger marks a rung whose kernel is not the same in both folders.
    """
    rows = [_COLUMNS, *(_cells(pair) for pair in found.pairs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    if any(pair.other_code for pair in found.pairs):
        lines += ["", "† The kernel, its options or its launches differ between A and B."]
    for which, names in (("A", found.ladders_a), ("B", found.ladders_b)):
        lines += ["", f"Ladders only in {which}: {', '.join(names)}"] if names else []
    if found.pairs:
        mean = geometric_mean(pair.a.median_s / pair.b.median_s for pair in found.pairs)
        lines += ["", f"Geometric mean of A / B: {ratio_text(mean)}"]
    counted = ", ".join(f"{number} {name}" for name, number in sorted(found.verdicts.items())) or "nothing"
    return "\n".join(
        [*lines, "", f"{len(found.pairs)} points: {counted}; only in A: {found.only_a}, only in B: {found.only_b}"]
    )


def _key(point: Point) -> tuple[str, str, tuple[tuple[str, object], ...]]:
    return point.kind, point.name, tuple(sorted(point.size.items()))


def _cells(pair: Pair) -> Sequence[str]:
    times = (time_text(pair.a.median_s), time_text(pair.b.median_s))
    ratio = ratio_text(pair.a.median_s / pair.b.median_s)
    return (pair.ladder, size_label(pair.a.size), pair.a.name, *times, ratio, pair.verdict + " †" * pair.other_code)
