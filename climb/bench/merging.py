"""Merge records that were made elsewhere: the folder that ``climb record --records`` wrote on another machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from climb.bench import hardware, records
from climb.bench.record_folders import Headed
from climb.bench.records import CEILINGS_FILE, Record
from climb.bench.records.kinds import BY_FOLDER
from climb.bench.registry import ladder_names, load_ladder


def merge_records(source: Path, target: Path) -> Iterator[str]:
    """Merge ceilings, times, and the other records of a ladder; a line for each file.

    Sessions of ceilings are added. Any other file replaces the one in ``target`` if its GPU is the one that the folder
    is named after; a ladder's record must also match today's ladder. The line says why a file is left out. The counts
    in ``emulator/`` are not touched. Raises RecordError for a file that is not a record.
    """
    if (sessions := records.load_sessions(source)) is not None:
        known = records.load_sessions(target)
        for one in sessions.sessions:
            if known is not None and one in known.sessions:
                continue
            if not (why := _of_another_gpu(one.device["name"], target)):
                records.save_ceilings(one, target)
            yield f"{CEILINGS_FILE}: session {one.session or one.date}{why}"
    for name in records.recorded(source):
        record = records.load_record(name, folder=source)
        why = _why_not(name, record, target)
        if not why:
            records.save_record(record, records.record_path(name, folder=target))
        yield f"{name}.json: {len(record.points)} points of {record.date}{why}"
    for kind, schema in BY_FOLDER.items():
        for path in sorted((source / kind).glob("*.json")):
            found = records.load(path, schema)
            if not (why := _of_another_gpu(found.device["name"], target)):
                records.write_whole(target / kind / path.name, path.read_text(encoding="utf-8"))
            yield f"{kind}/{path.name}: of {found.date}{why}"


def gpu_of(folder: Path) -> str:
    """Return the name that the folder of these records should have, by the GPU of the first record; "" without one."""
    for path in sorted(folder.rglob("*.json")):
        with contextlib.suppress(msgspec.MsgspecError):
            return hardware.gpu_slug(msgspec.json.decode(path.read_bytes(), type=Headed).device.name)
    return ""


def _of_another_gpu(name: str, target: Path) -> str:
    return "" if hardware.gpu_slug(name) == target.name else f"; left out: it is of {name}"


def _why_not(name: str, record: Record, target: Path) -> str:
    """Explain why a record cannot be merged, as the end of its line; "" if it can."""
    if name not in ladder_names() or record.ladder != name:
        return "; left out: no ladder of the book has that name"
    if why := _of_another_gpu(record.gpu, target):
        return why
    sessions = records.load_sessions(target)
    if sessions is None or record.session not in {one.session for one in sessions.sessions}:
        return f"; left out: no ceilings of its session, {record.session}"
    if stale := records.stale_points(record, load_ladder(name)):
        return f"; left out: {stale[0].name} at {stale[0].size}: {stale[0].reason}"
    return ""
