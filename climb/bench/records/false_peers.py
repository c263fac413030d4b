"""Points recorded under a wrong name: their peer did not compute in the precision that it names.

The file keeps them, as it keeps everything measured. Loading a record moves them to the skipped points, with the
reason, so that no table or figure compares anything with them.
"""

from __future__ import annotations

import msgspec

from climb.bench.claimed_precision import of_library
from climb.bench.records.schema import Record, Skipped


def without_false_peers(record: Record) -> Record:
    """Return the record with its false peers skipped: once for each size, however many regimes they were measured
    in."""
    reasons = [of_library(point.library) for point in record.points]
    if not any(reasons):
        return record
    skipped: list[Skipped] = []
    for point, reason in zip(record.points, reasons, strict=True):
        if reason and (one := Skipped(point.name, point.size, reason)) not in skipped:
            skipped.append(one)
    kept = tuple(point for point, reason in zip(record.points, reasons, strict=True) if not reason)
    return msgspec.structs.replace(record, points=kept, skipped=(*record.skipped, *skipped))
