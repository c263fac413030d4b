"""Record shared ladders: ``python -m climb launch -n 2 -m climb record-shared halo3d exchange``.

Every rank runs this. Rank 0 writes ``records/<gpu>-x<ranks>/<ladder>.json`` when all rungs are measured, whole or not
at all, and the timelines of their steps beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from climb.bench import hardware, records
from climb.bench.cuda import cp
from climb.bench.problem import Size, size_label
from climb.bench.records import Record
from climb.bench.units import time_text
from climb.distributed.ladder import SharedLadder
from climb.distributed.measuring import Measurer, Timed
from climb.distributed.rank import Rank, connect
from climb.distributed.registry import load_shared_ladder, shared_ladder_names
from climb.distributed.timelines import Timeline, TimelineRecord, TimelineStep, timeline_path

#: The seconds that a rank waits for another, which may still compute a reference.
PATIENCE = 120.0


def record(names: Sequence[str], folder: Path, only: Sequence[str] | None = None) -> None:
    """Measure ladders on this rank; rank 0 writes them into ``folder``. With ``only``, print the times of these rungs
    and write nothing."""
    ladders = list(names) or list(shared_ladder_names())
    rank = connect({"record": ladders, "rungs": only and ",".join(only)}, PATIENCE)
    for name in ladders:
        ladder = load_shared_ladder(name)
        rungs = [rung for rung in only or ladder.names if rung in ladder.names]
        found = measure(ladder, rank, rungs, ladder.problem.headline)
        if rank.place.rank == 0 and not only:
            device = device_block(rank.place.ranks)
            print(save(ladder, found, device, folder / folder_name(device)), flush=True)


def measure(ladder: SharedLadder, rank: Rank, rungs: Sequence[str], sizes: Sequence[Size]) -> list[Timed]:
    """Measure these rungs at these sizes, on all ranks; rank 0 prints a line for each."""
    measurer = Measurer(ladder, rank)
    found = []
    for size in sizes:
        for name in rungs:
            timed = measurer.measure(name, size, timeline=size == sizes[0])
            if timed and rank.place.rank == 0:
                found.append(timed)
                point, batch = timed.points
                spread = f"{100 * point.noise:.1f} %"
                text = f"{ladder.name} {name} {size_label(size)}: {time_text(point.median_s)}, spread {spread}"
                print(
                    f"{text}, batch {time_text(batch.median_s)}, error {point.max_rel_error:.2g}",
                    file=sys.stderr,
                    flush=True,
                )
            cp.get_default_memory_pool().free_all_blocks()
    return found


def device_block(gpus: int) -> dict[str, Any]:
    """Return the ``device`` of a record of several GPUs."""
    version = cp.cuda.nccl.get_version()
    nccl = f"{version // 10000}.{version % 10000 // 100}.{version % 100}"
    return {**hardware.device_block(), "gpus": gpus, "link": link(), "nccl": nccl}


def link() -> str:
    """Name the connection of GPU 0 and GPU 1 as nvidia-smi does: ``NV18`` are 18 links of NVLink; "" if unknown."""
    text = hardware.output("nvidia-smi", "topo", "-m") or ""
    for line in text.splitlines():
        words = line.replace("\x1b[4m", "").replace("\x1b[0m", "").split()
        if words[:2] == ["GPU0", "X"] and len(words) > 2:
            return words[2]
    return ""


def folder_name(device: dict[str, Any]) -> str:
    """Return the name of the folder of records: ``nvidia-h200-x2``."""
    return hardware.gpu_slug(device["name"], device["gpus"])


def save(ladder: SharedLadder, found: Sequence[Timed], device: dict[str, Any], folder: Path) -> Path:
    """Write the record and the timelines; return the record's path."""
    head: dict[str, Any] = {
        "ladder": ladder.name,
        **hardware.origin(),
        "device": device,
    }
    path = records.record_path(ladder.name, folder=folder)
    records.save_record(Record(**head, points=tuple(point for timed in found for point in timed.points)), path)
    lines = tuple(
        Timeline(
            one.points[0].name, one.points[0].size, one.points[0].source_sha256 or "", tuple(map(_step, one.timeline))
        )
        for one in found
        if one.timeline
    )
    made = TimelineRecord(**head, command=f"climb record-shared {ladder.name}", points=lines)
    records.save(timeline_path(ladder.name, folder), msgspec.to_builtins(made), TimelineRecord)
    return path


def _line(timed: Timed) -> Timeline:
    point = timed.points[0]
    return Timeline(point.name, point.size, point.source_sha256 or "", tuple(map(_step, timed.timeline)))


def _step(step: tuple[str, str, str, float, float]) -> TimelineStep:
    name, kind, stream, start, end = step
    return TimelineStep(name, kind, stream, float(f"{start:.4g}"), float(f"{end:.4g}"))
