"""The records of the bench beside a ladder's times: counters, occupancy, repeats, transfers, searches, events."""

from __future__ import annotations

import msgspec

from climb.bench.records.schema import Device, Positive, StoredSize

Count = int | float


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The head of every record: when it was made, from which commit, on which GPU."""

    date: str
    commit: str
    device: Device


class HardwarePoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nsight Compute's counts for one rung at one size: those of its longest launch, by the names of the record's
    metrics.

    ``launches`` lists each launch's kernel and nanoseconds, in order. Records of before 2026-11-28 have no such list,
    and the counts of the rung's last launch.
    """

    name: str
    size: StoredSize
    source_sha256: str
    counts: dict[str, Count]
    launches: tuple[tuple[str, Count], ...] = ()


class HardwareRecord(Measured, frozen=True, kw_only=True):
    """``hardware/<ladder>.json``; ``metrics`` gives Nsight Compute's name and the unit of each count."""

    ladder: str
    command: str
    metrics: dict[str, tuple[str, str]]
    points: tuple[HardwarePoint, ...]


class RepeatsPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of times that one rung gave each result; results are written in the format of ``float.hex``."""

    name: str
    source_sha256: str
    results: dict[str, int]


class RepeatsRecord(Measured, frozen=True, kw_only=True):
    """``repeats/<ladder>.json``; ``reference`` is the result in float64."""

    ladder: str
    command: str
    size: StoredSize
    launches: int
    reference: float
    points: tuple[RepeatsPoint, ...]


class TransfersPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The transfers of one size: bytes in and out, and samples in seconds by step."""

    size: StoredSize
    bytes_in: int
    bytes_out: int
    samples: dict[str, tuple[Positive, ...]]


class TransfersRecord(Measured, frozen=True, kw_only=True):
    """``transfers/<ladder>.json``."""

    ladder: str
    command: str
    points: tuple[TransfersPoint, ...]


class Span(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A launch: its kernel, its blocks, and when the first and the last of them began and ended.

    Times are in seconds since the first block of the run began. ``went_on`` is when they passed
    ``griddepcontrol.wait``, ``barriers`` when they passed each of their barriers.
    """

    kernel: str
    blocks: int
    began: tuple[float, float]
    went_on: tuple[float, float] | None
    barriers: tuple[tuple[float, float], ...]
    ended: tuple[float, float]


class SpansPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The launches of one run of a rung; ``seconds`` is the time of that run, with its probes, by CUDA events."""

    name: str
    size: StoredSize
    source_sha256: str
    seconds: Positive
    launches: tuple[Span, ...]


class SpansRecord(Measured, frozen=True, kw_only=True):
    """``spans/<ladder>.json``; ``resolution_s`` is the least difference of two readings of the GPU's clock."""

    ladder: str
    command: str
    resolution_s: float
    points: tuple[SpansPoint, ...]


class Processor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The CPU of a record: the cores that a process may use, NumPy with its BLAS, and PyTorch with its threads."""

    name: str
    cores: int
    numpy: str
    blas: str
    torch: str | None
    torch_threads: int | None


class CpuPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One method at one size: ``call`` says how it computes, ``samples`` are seconds."""

    name: str
    call: str
    size: StoredSize
    samples: tuple[Positive, ...]
    max_rel_error: float


class CpuRecord(Measured, frozen=True, kw_only=True):
    """``cpu/<ladder>.json``: the same problem on the CPU of the machine that has the GPU."""

    ladder: str
    command: str
    processor: Processor
    points: tuple[CpuPoint, ...]


class EventsCell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The times of one standalone cell, in milliseconds: for each time that it measures, samples and their median.

    ``chain`` holds the hashes of the earlier standalone cells that it needs, and its own hash last.
    """

    chain: tuple[str, ...]
    samples_ms: tuple[tuple[Positive, ...], ...]
    median_ms: tuple[Positive, ...]


class EventsRecord(Measured, frozen=True, kw_only=True):
    """``events/<chapter>.json``: times by CUDA events; each cell ran ``repetitions`` times."""

    chapter: str
    command: str
    repetitions: int
    cells: tuple[EventsCell, ...]


class SearchRecord(Measured, frozen=True, kw_only=True):
    """``search/<ladder>.json``: ``trials`` are rows in the order of ``columns``; a size is an index into ``sizes``."""

    ladder: str
    command: str
    how: str
    source_sha256: str
    sizes: tuple[dict[str, int], ...]
    columns: tuple[str, ...]
    trials: tuple[tuple[int | float | str, ...], ...]


class TuningTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The block chosen for a tuned rung: one row per layer, in the order of ``columns``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | bool | str | None, ...], ...]


class TuningRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``tuning/<ladder>.json``: the tables that choose a ladder's launches, and their origin."""

    ladder: str
    command: str
    device: dict[str, str]
    provenance: str
    tables: dict[str, TuningTable]


class ProfiledLaunch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nsight Compute's report on one launch; ``counts`` by the names of the record's metrics."""

    label: str
    ladder: str
    rung: str
    size: dict[str, int]
    counts: dict[str, Count]


class OccupancyRecord(Measured, frozen=True, kw_only=True):
    """``profiles/occupancy.json``; ``metrics`` gives Nsight Compute's name of each count."""

    tool: str
    metrics: dict[str, str]
    points: tuple[ProfiledLaunch, ...]


#: The kinds of records that have a file for each ladder or chapter, by their folder.
BY_FOLDER: dict[str, type[Measured]] = {
    "hardware": HardwareRecord,
    "repeats": RepeatsRecord,
    "transfers": TransfersRecord,
    "cpu": CpuRecord,
    "events": EventsRecord,
    "search": SearchRecord,
    "spans": SpansRecord,
}
