"""Times by CUDA events: recorded by a child process, replayed cell by cell, pending where a cell has changed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from tiny_ladder import made

from climb.bench import event_timing, events, hardware, records, report, standalone
from climb.bench.events import Replay, load_events
from climb.bench.records.kinds import EventsCell
from climb.cli import main

ROOT = Path(__file__).resolve().parents[2]
#: A stand-in for CuPy without kernels: each launch is a call of a method that Python has, each time a count.
CUPY = """
from types import SimpleNamespace
ticks = iter(range(1, 10**6))
class Event:
    def record(self): pass
    def synchronize(self): pass
cuda = SimpleNamespace(Event=Event, get_elapsed_time=lambda start, stop: next(ticks) / 1000)
"""
LAUNCH = "launches = []\nstart, stop = cp.cuda.Event(), cp.cuda.Event()"
TIMED = """launches.append(1)
first = cp.cuda.get_elapsed_time(start, stop)
print(first, cp.cuda.get_elapsed_time(start, stop))"""


@pytest.fixture
def book(tmp_path):
    """A book of one chapter, whose second standalone cell takes two times and needs the first."""
    folder = tmp_path / "book"
    folder.mkdir()
    write(folder, LAUNCH, TIMED)
    return folder


def write(folder: Path, *sources: str) -> None:
    cells = [new_code_cell(source, metadata={"tags": ["standalone"]}) for source in sources]
    nbformat.write(new_notebook(cells=[new_code_cell("1"), *cells]), folder / "a-chapter.ipynb")


@pytest.fixture
def cupy(tmp_path, monkeypatch):
    """A module ``cupy`` for the child process, and a device for the record."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "cupy.py").write_text(CUPY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    monkeypatch.setattr(hardware, "device_block", lambda: made.record().device)


def record(book: Path, folder: Path) -> Path:
    return event_timing.record_events("a-chapter", folder, book=book, repetitions=5, warm_seconds=0)


def test_cells_are_timed_in_a_process_of_their_own(book, cupy, tmp_path):
    path = record(book, tmp_path / "out")
    assert path == tmp_path / "out" / "events" / "a-chapter.json"
    found = load_events(path)
    _, timed = standalone.standalone_cells(book / "a-chapter.ipynb")
    (cell,) = found.cells
    assert cell.chain == timed.chain and len(cell.chain) == 2
    # The first run, which compiles, took the times 1 and 2; the next ones count on.
    assert cell.samples_ms == ((0.003, 0.005, 0.007, 0.009, 0.011), (0.004, 0.006, 0.008, 0.01, 0.012))
    assert cell.median_ms == (0.007, 0.008) and found.repetitions == 5
    assert events.pending_cells(folder=tmp_path / "out", book=book) == []
    assert events.orphans(folder=tmp_path / "out", book=book) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("print(len(launches))\n" + TIMED, "gave 2 times and '0\\\\nnan nan\\\\n', and when it ran again 2 and '1"),
        (TIMED + "\nfor _ in launches[1:]:\n    cp.cuda.get_elapsed_time(0, 0)",
         "gave 2 times and 'nan nan.*, and when it ran again 3"),
        ("numpy.ones(3)\n" + TIMED, "NameError: name 'numpy' is not defined"),
        ("def later():\n    return cp.cuda.get_elapsed_time(start, stop)", "cell 2 of a-chapter asked for no time"),
    ],
)  # fmt: skip
def test_cell_that_cannot_be_repeated_alone_is_not_recorded(source, says, book, cupy, tmp_path):
    write(book, LAUNCH, source)
    with pytest.raises(event_timing.EventsFailed, match=says):
        record(book, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_changed_cell_is_pending_and_its_old_times_are_an_orphan(book, cupy, tmp_path):
    path = record(book, tmp_path / "out")
    write(book, LAUNCH, TIMED + "  # a comment\n")
    assert events.pending_cells(folder=tmp_path / "out", book=book) == []
    write(book, LAUNCH + "\nlaunches = [0]", TIMED)
    (pending,) = events.pending_cells(folder=tmp_path / "out", book=book)
    assert str(pending) == (
        "pending: cell 2 of a-chapter has no time by CUDA events on nvidia-h200; "
        "there run: make record ARGS='--only events'"
    )
    (orphan,) = events.orphans(folder=tmp_path / "out", book=book)
    assert str(orphan) == f"orphan: {path} holds times of a cell that a-chapter no longer has"


def test_wrong_median_is_refused(book, cupy, tmp_path):
    path = record(book, tmp_path / "out")
    data = json.loads(path.read_text())
    data["cells"][0]["median_ms"][1] *= 2
    path.write_text(json.dumps(data))
    with pytest.raises(records.RecordError, match=r"cells\[0\]: median_ms is 0\.016"):
        list(events.recorded(folder=tmp_path / "out"))


# Replaying.


@pytest.fixture
def replay():
    first, second = standalone.chains([LAUNCH, TIMED])
    cells = [EventsCell(second, ((0.5,), (0.25,)), (0.5, 0.25)), EventsCell(first, ((9.0,),), (9.0,))]
    return Replay(cells, lambda start, stop: 7.0)


def test_times_of_the_running_cell_come_in_order_and_again_when_it_runs_again(replay):
    for _ in range(2):
        replay.start_cell(LAUNCH)
        assert replay.get_elapsed_time(0, 0) == 9.0
        replay.start_cell("# comments do not count\n" + TIMED)
        assert [replay.get_elapsed_time(0, 0) for _ in range(2)] == [0.5, 0.25]
        assert math.isnan(replay.get_elapsed_time(0, 0))


def test_cell_without_a_record_gives_nan(replay):
    replay.start_cell(LAUNCH)
    for source in ("another = cell", "%timeit magic"):
        replay.start_cell(source)
        assert math.isnan(replay.get_elapsed_time(0, 0))


def test_cell_whose_needed_cell_has_not_run_as_recorded_gives_nan(replay):
    replay.start_cell(LAUNCH.replace("launches = []", "launches = [1]"))
    replay.start_cell(TIMED)
    assert math.isnan(replay.get_elapsed_time(0, 0))


def test_events_that_hold_no_time_are_refused_while_replaying_too():
    def refuse(start, stop):
        raise RuntimeError("never recorded")

    with pytest.raises(RuntimeError, match="never recorded"):
        Replay((), refuse).get_elapsed_time(0, 0)


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
from climb.bench import events, records
from pathlib import Path
import sys
records.RECORDS = Path(sys.argv[1])
shell = InteractiveShell.instance()
for source in ("from climb import announce, cp; announce(); announce()", *sys.argv[2:]):
    assert shell.run_cell(source, store_history=True).success
"""


def test_notebook_shows_recorded_times_from_its_first_cell_on(tmp_path):
    cells = [
        "start, stop = cp.cuda.Event(), cp.cuda.Event(); start.record(); stop.record()",
        "print(cp.cuda.get_elapsed_time(start, stop))",
        "print(cp.cuda.get_elapsed_time(start, stop), 'changed')",
    ]
    chain = standalone.chains(cells[:2])[1]
    found = {
        **{name: getattr(made.record(), name) for name in ("date", "commit", "device")},
        "chapter": "a-chapter", "command": "", "repetitions": 1,
        "cells": [msgspec.to_builtins(EventsCell(chain, ((0.125,),), (0.125,)))],
    }  # fmt: skip
    path = events.events_path("a-chapter", folder=tmp_path / records.DEFAULT_GPU)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(found))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "WORKLOG_TIMINGS": "record", "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-c", NOTEBOOK, str(tmp_path), *cells, cells[1]]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[2:] == ["0.125", "nan changed", "0.125"]
    assert "UserWarning" not in done.stderr


# The commands.


def test_report_lists_pending_cells_and_orphans(monkeypatch, capsys):
    pending = events.PendingCell("coalescing", 9, "nvidia-h200")
    monkeypatch.setattr(events, "pending_cells", lambda gpu: [pending])
    monkeypatch.setattr(events, "orphans", lambda gpu: [events.Orphan("tiling", Path("events/tiling.json"))])
    monkeypatch.setattr(report, "report", lambda gpu: "")
    monkeypatch.setattr(report, "find_pending", lambda gpu: [])
    assert main(["report"]) == 0
    said = capsys.readouterr().err
    assert f"{pending}\n" in said and "orphan: events/tiling.json" in said
