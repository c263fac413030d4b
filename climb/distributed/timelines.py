"""When the steps of a plan ran on rank 0, as ``records/<gpu>-x<n>/timelines/<ladder>.json`` holds it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from climb.bench.records.kinds import Measured
from climb.bench.records.schema import StoredSize


class TimelineStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step: its name, its kind ("kernel", "copy", "message"), its stream, and when it began and ended.

    Times are in seconds from the start of the run.
    """

    name: str
    kind: str
    stream: str
    start_s: float
    end_s: float


class Timeline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run of one rung, issued step by step, with events around each of them."""

    name: str
    size: StoredSize
    source_sha256: str
    steps: tuple[TimelineStep, ...]


class TimelineRecord(Measured, frozen=True, kw_only=True):
    """``timelines/<ladder>.json``."""

    ladder: str
    command: str
    points: tuple[Timeline, ...]


def timeline_path(ladder: str, folder: Path) -> Path:
    """The file of a ladder's timelines in a folder of records."""
    return folder / "timelines" / f"{ladder}.json"
