"""Records: measurements on a GPU, committed as JSON, and the check that they still belong to today's kernels.

``records/<gpu>/<ladder>.json`` holds a ladder's times; other kinds of records are in folders beside it. ``load`` reads
any of them, checked against its schema.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from climb.bench.ladder import REGIMES, Ladder
from climb.bench.records.ceilings import FILE as CEILINGS_FILE
from climb.bench.records.ceilings import (
    CeilingPoint,
    Ceilings,
    CeilingsRecord,
    ceiling_text,
    load_ceilings,
    load_sessions,
    save_ceilings,
)
from climb.bench.records.choice import (
    BOOK_GPU,
    DEFAULT_GPU,
    RECORDS,
    STOOD_IN,
    VARIABLE,
    chosen_gpu,
    gpu_with,
    shown_file,
    stands_in,
)
from climb.bench.records.false_peers import without_false_peers
from climb.bench.records.freshness import (
    Pending,
    PendingRung,
    Stale,
    command,
    expected_points,
    pending_peers,
    pending_rungs,
    stale_points,
    why_stale,
)
from climb.bench.records.renames import todays_names, under_todays_names
from climb.bench.records.schema import (
    ALL_REGIMES,
    FULL_CLOCK,
    Device,
    Head,
    Point,
    Record,
    Run,
    Skipped,
    StoredSize,
    check_record,
    parse_record,
    quantiles,
    rounded,
)
from climb.bench.records.store import RecordError, load, parse, save, write_whole
from climb.bench.registry import ladder_names, load_ladder

__all__ = [
    "ALL_REGIMES",
    "BOOK_GPU",
    "CEILINGS_FILE",
    "DEFAULT_GPU",
    "FULL_CLOCK",
    "RECORDS",
    "REGIMES",
    "STOOD_IN",
    "VARIABLE",
    "CeilingPoint",
    "Ceilings",
    "CeilingsRecord",
    "Device",
    "Head",
    "MissingRecord",
    "Pending",
    "PendingRung",
    "Point",
    "Record",
    "RecordError",
    "Run",
    "Skipped",
    "Stale",
    "StoredSize",
    "ceiling_text",
    "ceilings_of",
    "chosen_gpu",
    "command",
    "empty_record",
    "expected_points",
    "find_record",
    "flushes_subnormals",
    "gpu_with",
    "load",
    "load_ceilings",
    "load_record",
    "load_sessions",
    "parse",
    "parse_record",
    "pending",
    "pending_peers",
    "pending_rungs",
    "quantiles",
    "record_path",
    "recorded",
    "rounded",
    "save",
    "save_ceilings",
    "save_record",
    "shown_file",
    "shown_folder",
    "stale_points",
    "stands_in",
    "todays_names",
    "under_todays_names",
    "why_stale",
    "write_whole",
]


class MissingRecord(LookupError):
    """There is no record of this ladder on this GPU; the message says how to make one."""


def record_path(ladder: str, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's record; ``folder`` replaces ``records/<gpu>``."""
    return (folder or RECORDS / gpu) / f"{ladder}.json"


def load_record(ladder: str, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> Record:
    """Read and check a record, with the ceilings of its folder, and with false peers among the skipped.

    A rung that was renamed since has today's name.

    If ``gpu`` is the reader's choice, and its record lacks a point that the book's has, return the book's record: a
    chapter uses all points, and takes every ratio from one record. Raises :class:`MissingRecord` and
    :class:`RecordError`.
    """
    if folder is None and stands_in(gpu):
        return _chosen_or_book(ladder, gpu)
    path = record_path(ladder, gpu, folder)
    if not path.exists():
        raise MissingRecord(f"no record of {ladder} on {gpu} ({path}); on that GPU run: {command(ladder)}")
    state = path.stat()
    record = _checked(path, state.st_mtime_ns, state.st_size)
    points = record.points
    if record.ladder in ladder_names():
        points = under_todays_names(points, load_ladder(record.ladder))
    return msgspec.structs.replace(record, ceilings=ceilings_of(path.parent, record.session), points=points)


@functools.lru_cache(maxsize=256)
def _checked(path: Path, *_: int) -> Record:
    """Return a record that was read and checked once for each state of its file: chapters load the same ones often."""
    record = load(path, Record)
    try:
        check_record(record)
    except RecordError as error:
        raise RecordError(f"{path}: {error}") from None
    return without_false_peers(record)


def _chosen_or_book(ladder: str, gpu: str) -> Record:
    """Return the chosen GPU's record if it has every point of the book's, else the book's."""
    chosen, book = (find_record(ladder, folder=RECORDS / one) for one in (gpu, BOOK_GPU))
    if chosen is None or (book is not None and not chosen.keys >= book.keys):
        STOOD_IN[ladder] = None
        return load_record(ladder, folder=RECORDS / BOOK_GPU)
    return chosen


def shown_folder() -> Path:
    """Return the folder whose ceilings chapters show: that of the reader's choice, or the book's if the choice has
    none."""
    return RECORDS / gpu_with(CEILINGS_FILE, DEFAULT_GPU)


def flushes_subnormals(record: Record) -> bool:
    """Return whether a record's rungs flush subnormal float32 numbers to zero, according to their points' options.

    Records older than 2026-11-22 do not list the options that CuPy adds; it has added ``-ftz=true`` in all versions.
    """
    launches = [point.launch for point in record.points if point.launch]
    options = {option for launch in launches for option in launch.get("options", ())}
    return "-ftz=true" in options or bool(options and record.device["cupy"])


def ceilings_of(folder: Path, session: str | None = None) -> Ceilings:
    """Return the ceilings of a session, by default of the newest in the folder; empty if none were measured.

    Ceilings that the session has not measured come from the newest session that has.
    """
    found = load_sessions(folder)
    return found.values_for(session) if found else Ceilings()


def recorded(folder: Path) -> list[str]:
    """List the ladders that have a record in a folder, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.json") if path.name != CEILINGS_FILE)


def find_record(ladder: str, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> Record | None:
    """Return the record, or None if there is none. Raises :class:`RecordError`."""
    try:
        return load_record(ladder, gpu, folder)
    except MissingRecord:
        return None


def empty_record(ladder: str, gpu: str = DEFAULT_GPU) -> Record:
    """Return a record without points, in place of one that has not been made yet: every rung is pending."""
    device = Device(
        name=gpu, compute_capability="", sm_count=0, l2_bytes=0, driver=None, cuda="", nvrtc="", cupy="", clocks={}
    )
    return Record(ladder, date="", commit="", device=device, points=(), ceilings=ceilings_of(RECORDS / gpu))


def pending(ladder: str | Ladder, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> tuple[str, ...]:
    """List the rungs of a ladder that no record on this GPU has measured yet, in the ladder's order."""
    ladder = load_ladder(ladder) if isinstance(ladder, str) else ladder
    return pending_rungs(find_record(ladder.name, gpu, folder), ladder)


def save_record(record: Record, path: Path) -> None:
    """Write a record, completely or not at all.

    Raises :class:`RecordError` instead of writing a record that could not be read again.
    """
    data = msgspec.to_builtins(record)
    del data["ceilings"]
    if not record.runs:
        del data["runs"]
    parse_record(data)
    write_whole(path, _dump(data))


def _dump(data: Mapping[str, Any]) -> str:
    """Format JSON with one line a field and one field a line, so that a diff shows what was measured anew."""
    head = [f" {_field(name, value)}" for name, value in data.items() if name != "points" and value != ""]
    points = [
        "  {\n" + ",\n".join(f"   {_field(name, value)}" for name, value in _known(point).items()) + "\n  }"
        for point in data["points"]
    ]
    return "{\n" + ",\n".join([*head, ' "points": [\n' + ",\n".join(points) + "\n ]"]) + "\n}\n"


def _known(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return a point without the fields that most points lack: a componentwise error, and more than one GPU."""
    lacks = {"max_component_error": None, "gpus": 1}
    return {name: value for name, value in point.items() if name not in lacks or value != lacks[name]}


def _field(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
