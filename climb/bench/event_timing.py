"""Record the times of standalone cells: ``climb record --only events`` on a GPU.

Each chapter runs in a separate process, with CuPy and nothing from the book. A cell runs once to compile, then many
times; the chapter shows the median of each time.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np

from climb.bench import events, hardware, records, standalone
from climb.bench.records.kinds import EventsCell, EventsRecord
from climb.paths import IMPORT_ROOT

#: The number of timed executions of each cell.
REPETITIONS = 30
#: The seconds that the GPU computes before the first time is taken, so that its clocks are up.
WARM_SECONDS = 1.0


class EventsFailed(RuntimeError):
    """A standalone cell failed outside the book, or gave a different result when it ran again."""


def record_events(
    chapter: str,
    folder: Path | None = None,
    *,
    book: Path = standalone.BOOK,
    repetitions: int = REPETITIONS,
    warm_seconds: float = WARM_SECONDS,
) -> Path:
    """Run the standalone cells of a chapter and write their times below ``folder`` (``records/<gpu>`` by default).

    Raises EventsFailed.
    """
    cells = standalone.standalone_cells(book / f"{chapter}.ipynb")
    samples = _run_child([cell.source for cell in cells], repetitions, warm_seconds)
    device = hardware.device_block()
    found = [_cell(cell, taken) for cell, taken in zip(cells, samples, strict=True) if cell.timed]
    if untimed := [cell.number for cell, each in zip((c for c in cells if c.timed), found, strict=True) if not each]:
        raise EventsFailed(f"cell {untimed[0]} of {chapter} asked for no time")
    record = EventsRecord(
        chapter=chapter,
        **hardware.origin(),
        device=device,
        command="climb record --only events",
        repetitions=repetitions,
        cells=tuple(cell for cell in found if cell),
    )
    path = events.events_path(chapter, hardware.gpu_slug(device["name"]), folder)
    records.save(path, msgspec.to_builtins(record), EventsRecord)
    events.load_events(path)
    return path


def _cell(cell: standalone.Cell, taken: list[list[float]]) -> EventsCell | None:
    """Return the record of one cell from its times, a list per repetition; None if it measured no time."""
    if not taken or not taken[0]:
        return None
    samples = tuple(records.rounded(each) for each in zip(*taken, strict=True))
    return EventsCell(cell.chain, samples, tuple(float(np.median(each)) for each in samples))


def _run_child(sources: list[str], repetitions: int, warm_seconds: float) -> list[list[list[float]]]:
    given = json.dumps({"sources": sources, "repetitions": repetitions, "warm_seconds": warm_seconds})
    command = (sys.executable, "-m", "climb.bench.event_child")
    done = subprocess.run(command, input=given, capture_output=True, text=True, cwd=IMPORT_ROOT, check=False)
    if done.returncode != 0:
        raise EventsFailed(f"the cells do not run outside the book:\n{done.stderr.rstrip()}")
    return json.loads(done.stdout.splitlines()[-1])
