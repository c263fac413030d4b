"""Recognise a rung that was renamed after it was measured, by the hash of its code.

A name is not part of what was measured (``climb.bench.identity``), so renaming a rung makes no record stale: its points
are read under today's name, and ``climb rehash --renamed`` writes that name into the files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec

from climb.bench.ladder import Ladder
from climb.bench.problem import Size


class Measured(Protocol):
    """A point of a record: what it was measured on."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> Size: ...

    @property
    def source_sha256(self) -> str | None: ...


def todays_names(points: Iterable[Measured], ladder: Ladder) -> dict[str, str]:
    """Map each old rung name in the points to its current name.

    A rung is recognised if it has no point under its current name, and if it is the only one with the hashes of all
    points of the old name. The remaining old names belong to rungs that were removed or changed.
    """
    points = list(points)
    unmeasured = [name for name in ladder.names if name not in {point.name for point in points}]
    gone: dict[str, list[Measured]] = {}
    for point in points:
        if point.source_sha256 and point.name not in ladder.names:
            gone.setdefault(point.name, []).append(point)
    found = {}
    for was, its in gone.items():
        same = [name for name in unmeasured if all(_is_of(point, ladder, name) for point in its)]
        if len(same) == 1:
            found[was] = same[0]
    return found


def under_todays_names(points: tuple[Any, ...], ladder: Ladder) -> tuple[Any, ...]:
    """Return the points of a record, those of renamed rungs under today's name. Points of peers have no hash and keep
    theirs."""
    names = todays_names(points, ladder)
    if not names:
        return points
    return tuple(
        msgspec.structs.replace(point, name=names[point.name]) if point.source_sha256 and point.name in names else point
        for point in points
    )


def _is_of(point: Measured, ladder: Ladder, name: str) -> bool:
    rung = ladder[name]
    return rung.rung.requires(point.size) is None and point.source_sha256 == rung.sha256(point.size)
