"""The records of shared ladders: the existing ones, the check that they fit today's plans, and a table of them."""

from __future__ import annotations

from pathlib import Path

from climb.bench import hardware, records
from climb.bench.problem import Size, size_label
from climb.bench.records import Point, Record
from climb.bench.units import rate_text, significant, time_text
from climb.distributed.ladder import SharedLadder
from climb.distributed.registry import load_shared_ladder, shared_ladder_names
from climb.distributed.timelines import TimelineRecord, timeline_path

#: The folder of the records that the book shows.
BOOK_GPUS = "nvidia-h200-x2"
#: The rung that runs on one GPU, to which the others are compared.
ALONE = "one_gpu"


def shared_record(name: str, gpus: str = BOOK_GPUS, folder: Path | None = None) -> Record | None:
    """Return the record of a ladder on these GPUs; None if there is none. Raises RecordError."""
    return records.find_record(name, folder=folder or records.RECORDS / gpus)


def shared_timelines(name: str, gpus: str = BOOK_GPUS, folder: Path | None = None) -> TimelineRecord | None:
    """Return the timelines of a ladder's rungs on these GPUs; None if there are none. Raises RecordError."""
    path = timeline_path(name, folder or records.RECORDS / gpus)
    return records.load(path, TimelineRecord) if path.exists() else None


def expected(ladder: SharedLadder) -> list[tuple[str, int, Size]]:
    """List the points of a complete record: each rung, with its number of GPUs, at each headline size that it takes."""
    found = []
    for size in ladder.problem.headline:
        for rung in ladder.rungs:
            ranks = ladder.ranks(rung.name, ladder.gpus)
            if rung.requires(size, ranks) is None:
                found.append((rung.name, ranks, size))
    return found


def pending_points(ladder: SharedLadder, record: Record | None) -> list[str]:
    """List the rungs and sizes that the record lacks, one text each."""
    return [
        f"{name} at {size_label(size)}"
        for name, _, size in expected(ladder)
        if record is None or record.find(name, size, "cold") is None
    ]


def stale_points(ladder: SharedLadder, record: Record) -> list[str]:
    """List the points of a record that were measured on something other than today's plans, one text each."""
    known = set(ladder.names)
    return [
        f"{point.name} at {size_label(point.size)}"
        for point in record.points
        if point.name not in known or ladder.sha256(point.name, point.gpus, point.size) != point.source_sha256
    ]


def problems(folder: Path) -> list[str]:
    """List the problems of a folder of records of several GPUs, one line each; empty if there are none."""
    found = []
    for name in records.recorded(folder):
        if name not in shared_ladder_names():
            found.append(f"{folder / name}.json: no ladder over several GPUs has this name")
            continue
        record = shared_record(name, folder=folder)
        assert record is not None
        gpus = record.device.get("gpus", 1)
        if hardware.gpu_slug(record.gpu, gpus) != folder.name or record.ladder != name:
            found.append(f"{folder / name}.json: it is the record of {record.ladder} on {gpus} x {record.gpu}")
        lines = shared_timelines(name, folder=folder)
        if lines is not None and lines.ladder != name:
            found.append(f"{timeline_path(name, folder)}: it has the timelines of {lines.ladder}")
    return found


def speedup(record: Record, point: Point) -> float | None:
    """Return how many times faster a point is than one GPU at the same size; None if one GPU was not measured."""
    alone = record.find(ALONE, point.size, "cold")
    return alone.median_s / point.median_s if alone else None


def table(gpus: str = BOOK_GPUS, folder: Path | None = None) -> str:
    """Format all records as a Markdown table: for each ladder and size the fastest rung, and its speed-up over one
    GPU."""
    lines = ["| ladder | size | best rung | time | one GPU | speed-up | record |", "|---|---|---|---:|---:|---:|---|"]
    for name in shared_ladder_names():
        ladder, record = load_shared_ladder(name), shared_record(name, gpus, folder)
        for size in ladder.problem.headline:
            lines.append("| " + " | ".join(_cells(ladder, record, size)) + " |")
    return "\n".join(lines)


def _cells(ladder: SharedLadder, record: Record | None, size: Size) -> tuple[str, ...]:
    label = " x ".join(f"{extent:,}" for extent in size.values())
    points = [p for p in record.points if (p.size, p.regime) == (dict(size), "cold") and p.gpus > 1] if record else []
    if record is None or not points:
        return (ladder.name, label, "", "", "", "", "pending")
    best = min(points, key=lambda point: point.median_s)
    alone, times = record.find(ALONE, size, "cold"), speedup(record, best)
    rate = f" ({rate_text(best.bytes, best.median_s, 'bytes')})" if not best.flops else ""
    state = "stale" if stale_points(ladder, record) else "fresh"
    return (
        ladder.name,
        label,
        f"`{best.name}`",
        time_text(best.median_s) + rate,
        time_text(alone.median_s) if alone else "",
        f"{significant(times)}x" if times else "",
        state,
    )
