"""The first line that a chapter prints: where kernels run, and where its timings come from."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from climb.bench import cuda, elsewhere, events, lacking, records


class RecordLike(Protocol):
    """The part of a record that `describe` reads; :class:`climb.bench.records.Record` satisfies it."""

    @property
    def date(self) -> str: ...

    @property
    def gpu(self) -> str: ...


def describe(record: RecordLike | None = None) -> str:
    """Say in one sentence, without its full stop, where kernels run and where timings come from.

    ``record`` is the record whose timings are replayed; if None, the newest of the reference GPU is named.
    """
    if cuda.backend == "cupy":
        properties = cuda.cp.cuda.runtime.getDeviceProperties(cuda.cp.cuda.Device().id)
        said = f"running on {properties['name'].decode()} through CuPy {_short(cuda.cp.__version__)}"
    else:
        said = "running on the emulator"
        if note := cuda.fallback():
            said += f" ({note})"
    if cuda.can_measure():
        return said
    return f"{said}; {_replayed(record)}" + (" (to measure here, install NVBench)" if not cuda.replaying() else "")


def announce(record: RecordLike | None = None) -> None:
    """Print :func:`describe`: the first line that a chapter prints. From then on, the chapter's cells see recorded
    times.

    If the records are of another GPU than the book's, claims of the chapter that do not hold there are printed. A cell
    that this GPU cannot run prints the reason, and the chapter goes on.
    """
    print(describe(record))
    events.replay_in_notebook()
    lacking.guard_cells_in_notebook()
    if records.DEFAULT_GPU != records.BOOK_GPU:
        elsewhere.show_claims_in_notebook()


def _replayed(record: RecordLike | None) -> str:
    gpu, date = (record.gpu, record.date) if record is not None else _newest_record()
    if not date:
        return "there is no record yet to replay timings from"
    said = f"timings replayed from the record of {_article(gpu)} {gpu}, {date[:10]}"
    if record is not None or records.DEFAULT_GPU == records.BOOK_GPU:
        return said
    book, of = _newest_record(records.BOOK_GPU)
    if gpu == book:
        return f"{said}; {records.VARIABLE}={records.DEFAULT_GPU} has no record yet"
    return f"{said}; where that lacks something, from that of {_article(book)} {book}, {of[:10]}"


def _newest_record(gpu: str = records.DEFAULT_GPU) -> tuple[str, str]:
    """Return a GPU's name and the date of its newest record, or of the book's; ("", "") if there is none."""
    folder: Path = records.RECORDS / gpu
    if not records.recorded(folder) and records.stands_in(gpu):
        folder = records.RECORDS / records.BOOK_GPU
    found = [records.load(folder / f"{name}.json", records.Head) for name in records.recorded(folder)]
    newest = max(found, key=lambda head: head.date, default=None)
    return (newest.device.name, newest.date) if newest else ("", "")


def _article(noun: str) -> str:
    """Return the article before a GPU's name: "an" before NVIDIA, which starts with a vowel sound."""
    return "an" if noun[:1] in "AEIO" or noun.startswith("NVIDIA") else "a"


def _short(version: str) -> str:
    return version.removesuffix(".0")
