"""Check whether the book can show a folder of ``records/``, no matter where and on which GPU it was made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from climb.bench import hardware, records
from climb.bench.records.schema import Named
from climb.bench.records.store import RecordError
from climb.bench.registry import ladder_names

#: Measurements of the reader's machine, which git ignores.
LOCAL = "local"


class Headed(msgspec.Struct):
    """Any record that names its device, without its other fields."""

    device: Named


#: The ending of folders whose records are of several GPUs that work together: ``nvidia-h200-x2``.
SEVERAL = re.compile(r"-x\d+$")


def folders(at: Path = records.RECORDS) -> list[Path]:
    """List the folders of records, one for each GPU, the book's first; not those of several GPUs that work together."""
    found = [path for path in at.iterdir() if path.is_dir() and path.name != LOCAL and any(path.rglob("*.json"))]
    found = [path for path in found if not SEVERAL.search(path.name)]
    return sorted(found, key=lambda path: (path.name != records.BOOK_GPU, path.name))


def folder_problems(folder: Path) -> list[str]:
    """List the problems of a folder of records, one line each; empty if there are none.

    Every record must follow its schema, belong to a ladder of the book and to a session of the folder's ceilings, and
    come from the GPU that the folder is named after. A folder may have any part of the ladders.
    """
    return list(_problems(folder)) if folder.is_dir() else [f"{folder}: there is no such folder"]


def _problems(folder: Path) -> Iterator[str]:
    try:
        ceilings = records.load_sessions(folder)
    except RecordError as error:
        yield str(error)
        return
    sessions = {one.session for one in ceilings.sessions} if ceilings else set()
    for one in ceilings.sessions if ceilings else ():
        yield from _of_another_gpu(folder / records.CEILINGS_FILE, one.device["name"], folder.name)
    for ladder in records.recorded(folder):
        path = records.record_path(ladder, folder=folder)
        try:
            record = records.load_record(ladder, folder=folder)
        except RecordError as error:
            yield str(error)
            continue
        if record.ladder != ladder or ladder not in ladder_names():
            yield f"{path}: it is the record of '{record.ladder}'; expected a ladder of the book, and its name"
        if record.session not in sessions:
            yield f"{path}: its session is '{record.session}', which {records.CEILINGS_FILE} does not have"
        yield from _of_another_gpu(path, record.gpu, folder.name)
    for path in sorted(folder.glob("*/*.json")):
        try:
            named = msgspec.json.decode(path.read_bytes(), type=Headed).device.name
        except msgspec.MsgspecError:
            continue  # tables and summaries do not name a GPU; their schemas are tested elsewhere
        yield from _of_another_gpu(path, named, folder.name)


def _of_another_gpu(path: Path, name: str, folder: str) -> Iterator[str]:
    if hardware.gpu_slug(name) != folder:
        yield f"{path}: it was measured on {name}, whose folder is {hardware.gpu_slug(name)}"
