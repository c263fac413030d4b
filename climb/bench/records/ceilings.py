"""The ceilings of a GPU: ``records/<gpu>/ceilings.json``, one measurement for each session that records were made in.

A record names its session, because two GPUs of one model differ by a few percent. ``climb.bench.ceilings`` derives the
values from the points; the file holds both, with every sample.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from climb.bench.records.kinds import Measured
from climb.bench.records.schema import Point, Positive, check_point
from climb.bench.records.store import RecordError, load, parse, write_whole
from climb.bench.units import significant
from climb.bench.work import PIPE_NAMES, ceiling_of, pipe_name

FILE = "ceilings.json"
#: Every ceiling that the book's ladders measure, with its meaning in words.
MEANING = {
    "floor_us": "floor",
    "launch_us": "floor without reading",
    "copy_gb_s": "copying",
    "read_gb_s": "reading",
    "write_gb_s": "writing",
    "kept_mb": "written and kept in L2",
    "fma_tflop_s": PIPE_NAMES["fma"],
    "int32_top_s": PIPE_NAMES["int32"],
    "shared_tb_s": PIPE_NAMES["shared"],
    "issue_ginst_s": PIPE_NAMES["issue"],
    **{ceiling_of(pipe): pipe_name(pipe) for pipe in map("tensor_{}".format, ("f16", "bf16", "tf32", "fp8", "int8"))},
}
#: The unit of each kind of ceiling as readers see it, by the end of its name.
_UNITS = {
    "_gb_s": "GB/s",
    "_tb_s": "TB/s",
    "_tflop_s": "TFLOP/s",
    "_top_s": "TOP/s",
    "_ginst_s": "G instructions/s",
    "_us": "µs",
    "_mb": "MB",
}


class Ceiling(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ceiling: its value in the unit of its name, and its spread relative to the value.

    The spread is the interquartile range of the times that the value comes from, as it carries over to the value.
    """

    value: Positive
    spread: float


class CeilingPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A measured point, the ceiling that it serves, and its work: bytes, or operations of the ceiling's pipe.

    ``date`` and ``commit`` are given if they differ from the record's.
    """

    ceiling: str
    ladder: str
    work: int
    point: Point
    date: str = ""
    commit: str = ""


class EarlierSession(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ceilings of an earlier session, by the names of that time, and the records that were made in it.

    Without ``floor_us``, rates are bytes or operations over the whole time.
    """

    date: str
    commit: str
    records: tuple[str, ...]
    ceilings: dict[str, Positive]


class CeilingsRecord(Measured, frozen=True, kw_only=True):
    """The ceilings of one session: values by name, and the points that they are derived from.

    ``session`` identifies it: the time of its start, "" for ceilings converted from records older than sessions.
    ``board`` tells GPUs of one model apart: the start of a hash, "" where it is unknown.
    """

    session: str = ""
    board: str = ""
    command: str
    ceilings: dict[str, Ceiling]
    points: tuple[CeilingPoint, ...]

    @property
    def values(self) -> Ceilings:
        """The values as limits and chapters use them."""
        spreads = {name: one.spread for name, one in self.ceilings.items()}
        return Ceilings({name: one.value for name, one in self.ceilings.items()}, spreads)


class CeilingsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``ceilings.json``: the sessions that records refer to, oldest first.

    ``earlier`` keeps the measurements of sessions before they had files, only for comparison.
    """

    sessions: tuple[CeilingsRecord, ...]
    earlier: tuple[EarlierSession, ...] = ()

    def named(self, session: str | None) -> CeilingsRecord:
        """Return the session of that name, or the newest if none is named or the named one is missing."""
        return next((one for one in self.sessions if one.session == session), self.sessions[-1])

    def values_for(self, session: str | None) -> Ceilings:
        """Return the ceilings of a session; those that it has not measured come from the newest other session.

        A session lacks the ceiling of a pipe whose ladder did not exist yet.
        """
        values, spreads = {}, {}
        for one in (*self.sessions, self.named(session)):
            values.update(one.values)
            spreads.update(one.values.spreads)
        return Ceilings(values, spreads)


class Ceilings(dict[str, float]):
    """Ceilings by name, in the units of their names; ``spreads`` are relative.

    ``fp32_tflop_s``, the former name of ``fma_tflop_s``, still finds it.
    """

    def __init__(self, values: Mapping[str, float] = {}, spreads: Mapping[str, float] = {}) -> None:
        super().__init__(values)
        self.spreads = dict(spreads)

    def __missing__(self, name: str) -> float:
        if name == "fp32_tflop_s":
            return self["fma_tflop_s"]
        raise KeyError(name)

    @property
    def pending(self) -> tuple[str, ...]:
        """The ceilings that the book's ladders define and that have not been measured on this GPU yet."""
        return tuple(name for name in MEANING if name not in self)

    @property
    def fastest(self) -> Ceilings:
        """The same ceilings, each at the fast end of its spread: rates and the bytes kept in L2 higher, starts
        shorter."""
        signs = {name: -1 if name.endswith("_us") else 1 for name in self}
        return Ceilings({name: value * (1 + signs[name] * self.spreads.get(name, 0.0)) for name, value in self.items()})

    def text(self, name: str) -> str:
        """Format a ceiling with its unit, and only as many digits as its spread supports: ``4290 GB/s``."""
        return ceiling_text(name, self[name], self.spreads.get(name, 0.0))


def ceiling_text(name: str, value: float, spread: float = 0.0) -> str:
    """Format a ceiling with its unit, to three digits or fewer: a unit of the last one is at least a fifth of the
    spread."""
    magnitude = math.floor(math.log10(value))
    digits = 3
    while digits > 1 and 5 * 10.0 ** (magnitude - digits + 1) < spread * value:
        digits -= 1
    unit = next(text for suffix, text in _UNITS.items() if name.endswith(suffix))
    return f"{significant(value, digits)} {unit}"


def load_ceilings(folder: Path, session: str | None = None) -> CeilingsRecord | None:
    """Load the ceilings of a session, or of the newest if none is named or the named one is not in the folder.

    None if the folder has no ceilings. Raises :class:`RecordError`.
    """
    found = load_sessions(folder)
    return found.named(session) if found else None


def load_sessions(folder: Path) -> CeilingsFile | None:
    """Load all sessions of a folder of records, or None if there are none. Raises :class:`RecordError`."""
    path = folder / FILE
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return None
    return _loaded(path, changed)


def save_ceilings(record: CeilingsRecord, folder: Path, known: Iterable[Path] = ()) -> Path:
    """Add a session to ``ceilings.json``, or replace the one of its name.

    If the folder has no such file, the sessions of the first of the ``known`` folders that has one are copied, since
    records there refer to them. Raises RecordError instead of writing a file that cannot be read again.
    """
    before = next((found for at in (folder, *known) if (found := load_sessions(at)) is not None), CeilingsFile(()))
    kept = tuple(one for one in before.sessions if one.session != record.session)
    return save_sessions(CeilingsFile((*kept, record), before.earlier), folder)


def save_sessions(sessions: CeilingsFile, folder: Path) -> Path:
    """Write ``ceilings.json``, completely or not at all, a line for each ceiling and point. Raises
    :class:`RecordError`."""
    path = folder / FILE
    data = msgspec.to_builtins(sessions)
    _checked(parse(data, CeilingsFile), path)
    entries = [_session_text(one) for one in data["sessions"]]
    earlier = [f"  {json.dumps(one)}" for one in data["earlier"]]
    write_whole(path, "{\n" + ",\n".join([_listed("sessions", entries), _listed("earlier", earlier)]) + "\n}\n")
    return path


def _session_text(one: Mapping[str, Any]) -> str:
    head = [f"   {_field(name, value)}" for name, value in one.items() if name not in ("ceilings", "points")]
    ceilings = [f"    {_field(name, value)}" for name, value in one["ceilings"].items()]
    points = [f"    {json.dumps({k: v for k, v in point.items() if v != ''})}" for point in one["points"]]
    parts = [*head, '   "ceilings": {\n' + ",\n".join(ceilings) + "\n   }"]
    return "  {\n" + ",\n".join([*parts, '   "points": [\n' + ",\n".join(points) + "\n   ]"]) + "\n  }"


def _listed(name: str, entries: list[str]) -> str:
    return f' "{name}": [\n' + ",\n".join(entries) + "\n ]"


def _field(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"


@functools.lru_cache(maxsize=8)
def _loaded(path: Path, changed: int) -> CeilingsFile:
    return _checked(load(path, CeilingsFile), path)


def _checked(file: CeilingsFile, path: Path) -> CeilingsFile:
    """Raise :class:`RecordError` for a ceiling without a point, or a point whose quantiles are not its samples'."""
    if not file.sessions:
        raise RecordError(f"{path}: there is no session in it")
    for record in file.sessions:
        served = {one.ceiling for one in record.points}
        for name in record.ceilings:
            if name != "kept_mb" and name not in served:
                raise RecordError(f"{path}: no point gives the ceiling {name}")
        try:
            for position, one in enumerate(record.points):
                check_point(one.point, f"points[{position}]")
        except RecordError as error:
            raise RecordError(f"{path}: {error}") from None
    return file
