"""Times by CUDA events: recorded on a GPU, replayed when a chapter's standalone cell measures them.

``records/<gpu>/events/<chapter>.json`` holds the times of a chapter's standalone cells. While timings are replayed,
``cp.cuda.get_elapsed_time`` returns the recorded medians of the running cell, one call after another, and NaN for a
cell that was not recorded, or has changed since.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import cuda, records, standalone
from climb.bench.records.kinds import EventsCell, EventsRecord
from climb.bench.records.store import RecordError


@dataclass(frozen=True)
class PendingCell:
    """A standalone cell measures a time that is not recorded on this GPU: it is new, or has changed since."""

    chapter: str
    number: int
    gpu: str

    def __str__(self) -> str:
        return (
            f"pending: cell {self.number} of {self.chapter} has no time by CUDA events on {self.gpu}; "
            "there run: make record ARGS='--only events'"
        )


@dataclass(frozen=True)
class Orphan:
    """Recorded times of a cell that the chapter no longer has."""

    chapter: str
    path: Path

    def __str__(self) -> str:
        return f"orphan: {self.path} holds times of a cell that {self.chapter} no longer has"


def events_path(chapter: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a chapter's times; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "events" / f"{chapter}.json"


def load_events(path: Path) -> EventsRecord:
    """Read and check a record of times by events. Raises RecordError."""
    record = records.load(path, EventsRecord)
    for number, cell in enumerate(record.cells):
        if len(cell.median_ms) != len(cell.samples_ms) or not cell.chain:
            raise RecordError(f"{path}: cells[{number}]: expected a chain, and a median for each list of samples")
        for stored, samples in zip(cell.median_ms, cell.samples_ms, strict=True):
            if not samples or not abs(stored - float(np.median(samples))) <= 1e-9 * stored:
                raise RecordError(f"{path}: cells[{number}]: median_ms is {stored!r}, but its samples differ")
    return record


def recorded(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Iterator[tuple[str, Path, EventsCell]]:
    """Every recorded cell on this GPU, with its chapter and file. Raises RecordError."""
    for path in sorted(events_path("*", gpu, folder).parent.glob("*.json")):
        record = load_events(path)
        for cell in record.cells:
            yield record.chapter, path, cell


def pending_cells(
    gpu: str = records.DEFAULT_GPU, folder: Path | None = None, book: Path = standalone.BOOK
) -> list[PendingCell]:
    """List the standalone cells of the book that measure a time without a recorded one."""
    known = {(chapter, cell.chain) for chapter, _, cell in recorded(gpu, folder)}
    return [
        PendingCell(name, cell.number, gpu)
        for name in standalone.chapters(book)
        for cell in standalone.standalone_cells(book / f"{name}.ipynb")
        if cell.timed and (name, cell.chain) not in known
    ]


def orphans(gpu: str = records.DEFAULT_GPU, folder: Path | None = None, book: Path = standalone.BOOK) -> list[Orphan]:
    """The recorded cells that the book no longer has."""
    there = {
        (name, cell.chain)
        for name in standalone.chapters(book)
        for cell in standalone.standalone_cells(book / f"{name}.ipynb")
    }
    return [
        Orphan(chapter, path) for chapter, path, cell in recorded(gpu, folder) if (chapter, cell.chain) not in there
    ]


class Replay:
    """Recorded times in place of measured ones, while the cells of a notebook run one after another."""

    def __init__(self, cells: Iterable[EventsCell], measured: Callable[[Any, Any], float]) -> None:
        self._cells, self._measured = tuple(cells), measured
        self._seen: set[str] = set()
        self._times: Iterator[float] = iter(())

    def start_cell(self, source: str) -> None:
        """Note that a cell starts to run: from now on its times are returned, from the first."""
        try:
            digest = standalone.cell_sha256(source)
        except SyntaxError:  # a cell with a magic command, which nobody records
            digest = ""
        self._times = iter(self._medians(digest))
        self._seen.add(digest)

    def get_elapsed_time(self, start_event: Any, end_event: Any) -> float:
        """Return the recorded milliseconds, or NaN. Raises the error that CuPy raises for events that hold no time."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the stand-in explains its NaN, which is not shown here
            self._measured(start_event, end_event)
        return next(self._times, math.nan)

    def _medians(self, digest: str) -> tuple[float, ...]:
        for cell in self._cells:
            if cell.chain[-1] == digest and self._seen.issuperset(cell.chain[:-1]):
                return cell.median_ms
        return ()


def replay_in_notebook() -> None:
    """Let the cells of this notebook see recorded times, if this is a notebook and timings are replayed."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    measured = cuda.cp.cuda.get_elapsed_time
    if shell is None or not cuda.replaying() or isinstance(getattr(measured, "__self__", None), Replay):
        return
    of_choice, of_book = ([cell for _, _, cell in recorded(gpu)] for gpu in (records.DEFAULT_GPU, records.BOOK_GPU))
    replay = Replay([*of_choice, *of_book], measured)
    cuda.cp.cuda.get_elapsed_time = replay.get_elapsed_time
    shell.events.register("pre_run_cell", lambda info: replay.start_cell(info.raw_cell))
