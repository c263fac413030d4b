"""Rungs that wait for a GPU: tests of counts and times that only a GPU gives leave them out."""

from __future__ import annotations

from climb import MissingRecord, load_ladder, load_record


def pending(name: str) -> set[str]:
    """The rungs of a ladder that its record has no point of; none where the ladder has no record at all."""
    try:
        measured = {point.name for point in load_record(name).points}
    except MissingRecord:
        return set()
    return set(load_ladder(name).names) - measured
