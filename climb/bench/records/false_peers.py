"""Points of a record that stand under a wrong name: of a peer that did not compute in the precision that it names.

The file keeps them, as it keeps all that was measured. Whoever reads it finds them among the skipped, with the reason,
so that no table or figure compares anything with them.
"""

from __future__ import annotations

import msgspec

from climb.bench.claimed_precision import of_library
from climb.bench.records.schema import Record, Skipped


def without_false_peers(record: Record) -> Record:
    """The record with its false peers skipped: once for each size, however many regimes they were measured in."""
    wrong = [(point, reason) for point in record.points if (reason := of_library(point.library))]
    if not wrong:
        return record
    skipped = [Skipped(point.name, point.size, reason) for point, reason in wrong]
    skipped = [one for index, one in enumerate(skipped) if one not in skipped[:index]]
    kept = tuple(point for point in record.points if not of_library(point.library))
    return msgspec.structs.replace(record, points=kept, skipped=(*record.skipped, *skipped))
