"""The book on any GPU: a second folder of records, a GPU without records, and rungs that a GPU cannot run."""

from __future__ import annotations

import ast
import dataclasses
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb import cp, load_ladder
from climb.bench import elsewhere, records, report
from climb.bench import timings as live
from climb.bench.bench_child import Run
from climb.bench.measuring_gpu import Gpu
from climb.bench.problem import RungUnavailable
from climb.bench.record_folders import folder_problems, folders
from climb.bench.records import choice
from climb.bench.timings import Timings, timings
from climb.cli import main
from climb.cli.record import tuned_elsewhere
from climb.display.check_table import check_table
from climb.display.ladder_figure import ladder_figure
from climb.display.selection import has_mine
from climb.display.style import alt_text
from climb.display.tables import timing_table

OTHER = "nvidia-made-up"
DEVICE = {**made.DEVICE, "name": "NVIDIA Made Up"}


@pytest.fixture
def two_gpus(tmp_path, monkeypatch):
    """The book's record of saxpy, and a folder of another GPU, which the reader has chosen; it has no record yet."""
    (tmp_path / records.BOOK_GPU).mkdir()
    for name in ("saxpy.json", records.CEILINGS_FILE):
        (tmp_path / records.BOOK_GPU / name).symlink_to(records.RECORDS / records.BOOK_GPU / name)
    for module in (records, choice):
        monkeypatch.setattr(module, "RECORDS", tmp_path)
    monkeypatch.setattr(choice, "DEFAULT_GPU", OTHER)
    return tmp_path


def other(drop=()):
    """The record of saxpy on the other GPU, without the points of the names in ``drop``."""
    book = records.load_record("saxpy", folder=records.RECORDS / records.BOOK_GPU)
    return replace(book, device=DEVICE, points=tuple(p for p in book.points if p.name not in drop))


def test_book_stands_in_for_a_gpu_without_records(two_gpus):
    assert timings("saxpy", gpu=OTHER).reference.gpu == "NVIDIA H200"
    assert records.gpu_with("hardware/saxpy.json", OTHER) == records.BOOK_GPU


def test_chosen_gpu_is_shown_where_its_record_is_whole(two_gpus):
    records.save_record(other(), two_gpus / OTHER / "saxpy.json")
    assert timings("saxpy", gpu=OTHER).reference.gpu == "NVIDIA Made Up"
    assert records.gpu_with("saxpy.json", OTHER) == OTHER


def test_book_stands_in_for_a_record_that_lacks_a_rung(two_gpus):
    """A chapter asks for every rung, and takes each ratio from one record."""
    records.save_record(other(drop=("float4",)), two_gpus / OTHER / "saxpy.json")
    assert timings("saxpy", gpu=OTHER).reference.gpu == "NVIDIA H200"


def test_report_shows_what_the_gpu_itself_has_and_lists_the_rest_as_pending(two_gpus):
    assert {row.split("|")[-2].strip()[:7] for row in rows(report.report(["saxpy"], OTHER))} == {"pending"}
    assert {one.gpu for one in report.find_pending(["saxpy"], OTHER)} == {OTHER}
    records.save_record(other(), two_gpus / OTHER / "saxpy.json")
    # The other record is a copy of the book's, so what the book's lacks is all that is pending.
    waits = {one.name for one in report.find_pending(["saxpy"], records.BOOK_GPU)}
    assert {one.name for one in report.find_pending(["saxpy"], OTHER)} == waits
    text = report.report(["saxpy"], OTHER)
    assert "Measured on an NVIDIA Made Up" in text and ("pending" in text) == bool(waits)


def rows(text):
    """The lines of a table below its head."""
    return [line for line in text.splitlines() if line.startswith("| saxpy")]


def test_nothing_stands_in_for_a_gpu_that_a_call_names(two_gpus):
    with pytest.raises(records.MissingRecord, match="no record of any ladder on nvidia-h2000"):
        timings("saxpy", gpu="nvidia-h2000")
    assert records.gpu_with("hardware/saxpy.json", "nvidia-h2000") == "nvidia-h2000"


def test_variable_chooses_the_gpu_and_the_first_line_says_what_stands_in():
    code = "from climb import announce, timings; announce(); print(timings('saxpy').reference.gpu)"
    environment = {**os.environ, choice.VARIABLE: "nvidia-t4", "WORKLOG_TIMINGS": "record"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    first, gpu = done.stdout.splitlines()
    assert first.endswith("; CLIMB_GPU=nvidia-t4 has no record yet") and gpu == "NVIDIA H200"


def test_false_claim_says_which_records_of_the_books_gpu_it_may_rest_on(two_gpus, capsys):
    records.STOOD_IN.clear()
    assert timings("saxpy", gpu=OTHER).reference.gpu == "NVIDIA H200"
    records.gpu_with("hardware/saxpy.json", OTHER)
    elsewhere.check_claim(lambda: False, "x > 1")
    records.STOOD_IN.clear()
    assert "(with nvidia-h200's records of saxpy, hardware/saxpy): x > 1\n" in capsys.readouterr().out


def test_false_claim_is_printed_and_the_cell_goes_on(capsys):
    cell = "def twice(x):\n    assert x > 1, 'never shown'\n    return 2 * x\nassert twice(2) == 4\ny = twice(1)"
    names = {"__climb_claim__": elsewhere.check_claim}
    exec(compile(elsewhere.ClaimsPrinted().visit(ast.parse(cell)), "cell", "exec"), names)
    assert names["y"] == 2
    assert capsys.readouterr().out == f"Not so on {records.DEFAULT_GPU}: x > 1\n"


def test_claim_about_what_the_records_lack_is_printed_as_not_known(capsys):
    elsewhere.check_claim(lambda: {}["unet"], "found['unet']")
    assert capsys.readouterr().out == f"Not known on {records.DEFAULT_GPU}, for want of 'unet': found['unet']\n"
    with pytest.raises(ZeroDivisionError):
        elsewhere.check_claim(lambda: 1 / 0, "1 / 0")


@pytest.mark.parametrize(
    ("ladder", "rung", "capability", "says"),
    [
        ("sgemm", "tuned", "75", "needs 111360 bytes of shared memory, and compute capability 7.5 allows 65536"),
        ("sgemm", "tuned", "89", "needs 111360 bytes of shared memory, and compute capability 8.9 allows 101376"),
        ("sgemm", "tuned", "80", None),
        ("sgemm", "square", "75", None),
        ("saxpy", "float4", "70", "it needs compute capability 7.5, and this GPU has 7.0"),
        ("saxpy", "float4", "121", None),
    ],
)
def test_rung_says_what_a_gpu_lacks(ladder, rung, capability, says):
    bound = load_ladder(ladder)[rung]
    lacks = bound.lacks(capability, bound.ladder.problem.headline[0])
    assert lacks == says or says in lacks


@pytest.fixture
def turing(monkeypatch):
    """A GPU of compute capability 7.5, on which the rung split_k_per_warp does not fit."""
    monkeypatch.setattr(type(cp.cuda.Device()), "compute_capability", "75")


@pytest.mark.emulated
def test_check_table_shows_why_a_rung_cannot_run_here(turing):
    needy = replace_rung(scale.ladder, "twice", capability="9.0")
    shown = check_table(needy, {"n": 1023}, rungs=["plain", "twice"])
    assert "it needs compute capability 9.0, and this GPU has 7.5" in shown.text and "right" in shown.text


def replace_rung(ladder, name, **fields):
    """A copy of a ladder in which one rung has other fields."""
    rungs = tuple(dataclasses.replace(r, **fields) if r.name == name else r for r in ladder.rungs)
    return dataclasses.replace(ladder, rungs=rungs)


@pytest.mark.emulated
def test_rung_that_cannot_run_is_not_launched(turing):
    needy = replace_rung(scale.ladder, "vector", capability="9.0")
    with pytest.raises(RungUnavailable, match=r"rung 'vector' of scale: it needs compute capability 9\.0"):
        needy["vector"](cp.zeros(16, dtype="float32"))


def test_measuring_goes_on_without_a_rung_that_cannot_run(tmp_path, monkeypatch):
    target = {"ladder": "scale", "kind": "rung", "name": "plain", "size": {"n": 8}, "regimes": ("cold",)}
    spec = {"targets": [target], "sampling": {}, "seed": 0, "ceilings": {}}
    run = Run(spec, tmp_path, gpu=None)
    skipped = []

    def lacking(*_):
        raise RungUnavailable("it needs compute capability 9.0")

    monkeypatch.setattr(run, "_measure", lacking)
    run.benchmark(0, "cold")(type("State", (), {"skip": lambda self, why: skipped.append(why)})())
    assert run.results == [{"skipped": "it needs compute capability 9.0"}]
    assert run.failed == set() and skipped == ["unavailable on this machine"]


@pytest.mark.parametrize(("total", "small"), [(16 << 30, True), (80 << 30, False)])
def test_size_without_room_is_left_out_on_a_small_gpu_and_a_failure_on_a_large_one(tmp_path, monkeypatch, total, small):
    class OutOfMemoryError(MemoryError):
        """An error with the name that CuPy gives it."""

    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=SimpleNamespace(memGetInfo=lambda: (0, total))))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    gpu = Gpu()
    monkeypatch.setattr(gpu, "is_lost", lambda: False)
    target = {"ladder": "scale", "kind": "rung", "name": "plain", "size": {"n": 8}, "regimes": ("cold",)}
    run = Run({"targets": [target], "sampling": {}, "seed": 0, "ceilings": {}}, tmp_path, gpu=gpu)

    def full(*_):
        raise OutOfMemoryError("out of memory allocating 2147483648 bytes")

    monkeypatch.setattr(run, "_measure", full)
    run.benchmark(0, "cold")(SimpleNamespace(skip=lambda why: None))
    (result,) = run.results
    assert list(result) == ["skipped" if small else "error"] and "2147483648 bytes" in str(result)
    assert run.failed == (set() if small else {"scale"})


def test_rung_that_a_gpu_cannot_run_is_neither_pending_nor_stale_and_its_time_says_why():
    record = made.record()
    why = "it needs compute capability 9.0, and this GPU has 7.5"
    points = tuple(p for p in record.points if p.name != "vector")
    skipped = tuple(records.Skipped("vector", dict(size), why) for size in scale.problem.recorded)
    record = replace(record, points=points, skipped=skipped)
    assert records.pending_rungs(record, scale.ladder) == () and records.stale_points(record, scale.ladder) == []
    with pytest.raises(LookupError, match=f"scale 'vector' was not measured on NVIDIA H200: {why}"):
        Timings(scale.ladder, "cold", record).seconds("vector")
    assert Timings(scale.ladder, "cold", record).best() == "plain"


def without(record, *names):
    """The record of a GPU that cannot run these rungs."""
    why = "it needs compute capability 9.0, and this GPU has 7.5"
    skipped = tuple(records.Skipped(n, dict(size), why) for n in names for size in scale.problem.recorded)
    return replace(
        record, device=DEVICE, points=tuple(p for p in record.points if p.name not in names), skipped=skipped
    )


def test_where_this_gpu_cannot_run_the_rung_in_question_the_record_is_shown_alone():
    mine = Timings(scale.ladder, "cold", made.record(), without(made.record(), "vector"))
    assert has_mine(mine) and has_mine(mine, upto="plain") and not has_mine(mine, upto="vector")
    assert not has_mine(mine, {"n": 12345})
    assert "time here" in timing_table(mine).text
    alone = Timings(scale.ladder, "cold", made.record())
    assert alt_text(ladder_figure(mine, upto="vector")) == alt_text(ladder_figure(alone, upto="vector"))


def test_ladder_of_which_this_gpu_can_run_nothing_has_the_times_of_the_record_and_says_why(monkeypatch, capsys):
    nothing = without(records.find_record("saxpy", records.BOOK_GPU), *load_ladder("saxpy").names)
    monkeypatch.setattr(live, "_live", lambda name: nothing)
    monkeypatch.setattr(live.cuda, "can_measure", lambda: True)
    live._print_once.cache_clear()
    assert timings("saxpy").mine is timings("saxpy", "batch").mine is None
    why = "it needs compute capability 9.0, and this GPU has 7.5"
    said = f"saxpy was not measured on NVIDIA Made Up: {why}. Its times are those of the record.\n"
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_every_folder_of_records_can_be_shown(folder):
    assert folder_problems(folder) == []


@pytest.mark.parametrize(
    ("device", "session", "ladder", "says"),
    [
        (made.DEVICE, "", "saxpy", "it was measured on NVIDIA H200, whose folder is nvidia-h200"),
        (DEVICE, "2031", "saxpy", "its session is '2031', which ceilings.json does not have"),
        (DEVICE, "", "saxpi", "it is the record of 'saxpi'; expected a ladder of the book"),
    ],
)
def test_mistake_in_a_folder_is_one_line(tmp_path, device, session, ladder, says):
    records.save_ceilings(replace(made.ceilings(), device=DEVICE), tmp_path / OTHER)
    good = replace(made.record(), ladder="saxpy", device=DEVICE)
    records.save_record(good, tmp_path / OTHER / "saxpy.json")
    assert folder_problems(tmp_path / OTHER) == [] and folders(tmp_path) == [tmp_path / OTHER]
    bad = replace(good, device=device, session=session, ladder=ladder)
    records.save_record(bad, tmp_path / OTHER / f"{ladder}.json")
    (problem,) = folder_problems(tmp_path / OTHER)
    assert says in problem and f"{ladder}.json" in problem


def test_every_file_of_a_sub_folder_is_checked_if_it_names_a_gpu(tmp_path):
    """A table of launches, which names none, comes before the counts of a GPU here."""
    records.save_ceilings(replace(made.ceilings(), device=DEVICE), tmp_path / OTHER)
    for name, text in (("a_table", "{}"), ("counts", '{"device": {"name": "NVIDIA H200"}}')):
        (tmp_path / OTHER / "emulator").mkdir(exist_ok=True)
        (tmp_path / OTHER / "emulator" / f"{name}.json").write_text(text)
    (problem,) = folder_problems(tmp_path / OTHER)
    assert "counts.json: it was measured on NVIDIA H200" in problem


def test_record_that_breaks_its_schema_is_named(tmp_path):
    (tmp_path / OTHER).mkdir()
    (tmp_path / OTHER / "saxpy.json").write_text('{"ladder": "saxpy"}')
    assert "saxpy.json: Object missing required field" in folder_problems(tmp_path / OTHER)[0]
    assert folder_problems(tmp_path / "nowhere") == [f"{tmp_path / 'nowhere'}: there is no such folder"]


def test_report_checks_another_gpu_without_the_readme(capsys):
    assert main(["report", "--gpu", "nvidia-h2000", "--check"]) == 1
    assert "nvidia-h2000: there is no such folder" in capsys.readouterr().err


def test_report_on_a_gpu_with_its_own_tuning_tables_runs_with_them(monkeypatch):
    """Here the ladders have taken their launches from the tables of another GPU."""
    started = []

    def run(command, env):
        started.append((command[3:], env["CLIMB_GPU"]))
        return SimpleNamespace(returncode=7)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(records, "DEFAULT_GPU", records.BOOK_GPU)
    assert main(["report", "--gpu", "nvidia-h100-80gb-hbm3", "--check"]) == 7
    assert started == [(["report", "--check"], "nvidia-h100-80gb-hbm3")]


def test_record_says_whose_tuning_tables_a_ladder_takes():
    (said,) = tuned_elsewhere(["saxpy", "conv1d"], OTHER)
    assert said.startswith(f"conv1d: launches are tuned for {records.BOOK_GPU}; ")
    assert list(tuned_elsewhere(["saxpy", "conv1d"], records.BOOK_GPU)) == []
