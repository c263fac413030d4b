"""Derive the ceilings of a GPU from measured points.

Every rate is a slope, so that the floor is not counted twice:

* ``floor_us`` is the shortest time of a kernel that reads a line of memory and writes one, ``launch_us`` of one that
  reads nothing.
* Reading, writing and the pipes: the work of a point over its time less the floor.
* Copying: more bytes over more time, between two sizes. What the L2 cache still holds at the end is the same for both
  and cancels. The line through the two points, at no bytes, lies below the floor; the difference gives ``kept_mb``.

Of the rungs measured for a ceiling, the fastest at each size counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import hypot

from climb.bench.ladder import Ladder
from climb.bench.problem import Size
from climb.bench.records import CeilingPoint, Point
from climb.bench.records.ceilings import Ceiling
from climb.bench.roofline import unit
from climb.bench.work import CEILING_OF

FLOOR, LAUNCH, KEPT, COPY, READ = "floor_us", "launch_us", "kept_mb", "copy_gb_s", "read_gb_s"
_PIPE_OF = {ceiling: pipe for pipe, ceiling in CEILING_OF.items()}


def ceiling_sizes(ladder: Ladder) -> tuple[Size, ...]:
    """Return the sizes at which a ladder's ceiling is measured: those that it names, or the headline size with most
    work."""
    if ladder.ceiling_sizes:
        return ladder.ceiling_sizes
    assert ladder.ceiling is not None
    return (max(ladder.problem.headline, key=lambda size: amount(ladder, ladder.ceiling or "", size)),)


def amount(ladder: Ladder, ceiling: str, size: Size) -> int:
    """Return the work of a ladder's problem that a ceiling counts: bytes, or operations of its pipe."""
    work = ladder.problem.work(size)
    pipe = _PIPE_OF.get(ceiling) or ceiling.removesuffix("_tflop_s")
    return work.pipes[pipe] if ceiling in _PIPE_OF or ceiling.startswith("tensor_") else work.read + work.written


def derive(points: Iterable[CeilingPoint]) -> dict[str, Ceiling]:
    """Derive every ceiling that these points give, to five digits."""
    groups: dict[str, list[CeilingPoint]] = {}
    for one in points:
        groups.setdefault(one.ceiling, []).append(one)
    shortest = {
        name: min((one.point for one in groups.pop(name)), key=lambda p: p.median_s)
        for name in (FLOOR, LAUNCH)
        if name in groups
    }
    found = {name: Ceiling(_digits(p.median_s / unit(name)), _digits(p.noise)) for name, p in shortest.items()}
    floor = shortest.get(FLOOR)
    floor_s = floor.median_s if floor else 0.0
    intercept = None
    for name, several in groups.items():
        fastest = _fastest(several)
        if len(fastest) > 1:
            found[name], at_no_work = _slope(name, *fastest[-2:])
            intercept = at_no_work if name == COPY else intercept
        else:
            work, point = fastest[0]
            elapsed = point.median_s - floor_s
            spread = (point.p75_s - point.p25_s) / elapsed
            found[name] = Ceiling(_digits(work / elapsed / unit(name)), _digits(spread))
    if floor and intercept and {COPY, READ} <= found.keys():
        found.update(_kept(floor_s, intercept, found))
    return found


def _fastest(several: Sequence[CeilingPoint]) -> list[tuple[int, Point]]:
    """Return the fastest point of each size with its work, by growing work."""
    best: dict[int, Point] = {}
    for one in several:
        if one.work not in best or one.point.median_s < best[one.work].median_s:
            best[one.work] = one.point
    return sorted(best.items())


def _slope(name: str, small: tuple[int, Point], large: tuple[int, Point]) -> tuple[Ceiling, tuple[float, float]]:
    """Return the rate between two sizes, and the time at no work, in seconds, with its spread."""
    (work0, point0), (work1, point1) = small, large
    elapsed, more = point1.median_s - point0.median_s, work1 - work0
    ranges = [p.p75_s - p.p25_s for p in (point0, point1)]
    ceiling = Ceiling(_digits(more / elapsed / unit(name)), _digits(hypot(*ranges) / elapsed))
    start = (point0.median_s * work1 - point1.median_s * work0) / more
    return ceiling, (start, hypot(work1 * ranges[0], work0 * ranges[1]) / more)


def _kept(floor_s: float, intercept: tuple[float, float], found: Mapping[str, Ceiling]) -> dict[str, Ceiling]:
    """Return the bytes k for which a copy of b bytes takes floor + 2 (b - k) / copy + k / read, as the line says.

    A copy that ends no earlier than the line through the floor keeps nothing; the ceiling then does not exist.
    """
    start, spread = intercept
    copy, read = (found[name].value * unit(name) for name in (COPY, READ))
    kept = (floor_s - start) / (2 / copy - 1 / read)
    return {KEPT: Ceiling(_digits(kept / unit(KEPT)), _digits(spread / (floor_s - start)))} if kept > 0 else {}


def _digits(value: float) -> float:
    """Round a value to the digits that are stored."""
    return float(f"{value:.5g}")
