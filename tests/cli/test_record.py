"""``climb record``: what it measures and writes, with NVBench's double and with steps made up here."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import types
from dataclasses import replace

import msgspec
import pytest
from tiny_ladder import made, scale
from tools.nvbench_double import nvbench_double  # noqa: F401

from climb.bench import cuda, measure, records, standalone
from climb.bench.measure import Sampling
from climb.cli import main, record, record_steps
from climb.cli.record_steps import CHAPTER_STEPS, STEPS, Options, Step, StepFailed, exit_status, run_steps

TINY = "tiny_ladder.scale"


def test_sizes_are_read_from_the_command_line():
    assert record.parse_size("rows=16384, cols=1024") == {"rows": 16384, "cols": 1024}
    assert record.parse_size("n=-1,data=zipf") == {"n": -1, "data": "zipf"}
    for text in ("rows", "rows=", "=4", "rows=4=5", "rows=4.5", "rows=4,,cols=2", ""):
        with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is no size"):
            record.parse_size(text)


@pytest.fixture
def on_a_gpu(nvbench, monkeypatch):
    monkeypatch.setattr(cuda, "backend", "cupy")
    monkeypatch.setattr(measure, "ladder_names", lambda: ())
    return nvbench


def test_the_command_writes_a_record(on_a_gpu, tmp_path, capfd):
    assert main(["record", TINY, "--records", str(tmp_path), "--commit", "f00", "--seconds-per-point", "1"]) == 0
    assert records.load_record("scale", folder=tmp_path).commit == "f00"
    assert f"{tmp_path / 'scale.json'}: 14 points" in capfd.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["scale.json"]


def test_ladders_are_recorded_together(on_a_gpu, tmp_path, capfd, monkeypatch):
    other = "tiny_ladder.other"
    monkeypatch.setitem(sys.modules, other, types.ModuleType(other))
    sys.modules[other].ladder = replace(scale.ladder, problem=replace(scale.problem, name="other"), ceiling=None)
    assert main(["record", TINY, other, "--records", str(tmp_path)]) == 0
    first, second = (records.load_record(name, folder=tmp_path) for name in ("scale", "other"))
    assert (len(first.points), len(second.points)) == (14, 14)
    assert "2 of 2 steps done in" in capfd.readouterr().err


def test_ceilings_are_measured_once_a_day_before_the_ladders(on_a_gpu, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(measure, "ladder_names", lambda: (TINY,))
    monkeypatch.setattr(records.Ceilings, "pending", ())
    assert main(["record", TINY, "--records", str(tmp_path)]) == 0
    said = capfd.readouterr().err
    assert "this GPU: ceilings done: " in said and "copy_gb_s 0.00819 GB/s" in said
    assert said.index("ceilings done") < said.index("measure done") and "2 of 2 steps done" in said
    assert records.load_record("scale", folder=tmp_path).ceilings["copy_gb_s"] == pytest.approx(0.008192)
    before = (tmp_path / "ceilings.json").read_bytes()
    assert main(["record", TINY, "--records", str(tmp_path)]) == 0
    assert "ceilings done" not in capfd.readouterr().err and (tmp_path / "ceilings.json").read_bytes() == before
    for field in ({"date": "2026-11-20"}, {"device": made.DEVICE | {"driver": "1"}}, {"board": "0123abcd"}):
        changed = msgspec.structs.replace(records.load_ceilings(tmp_path), **field)
        (tmp_path / "ceilings.json").unlink()
        records.save_ceilings(changed, tmp_path)
        assert main(["record", TINY, "--records", str(tmp_path), "--only", "measure"]) == 0
        assert "ceilings done" not in capfd.readouterr().err, "a step that was not asked for"
        assert main(["record", TINY, "--records", str(tmp_path)]) == 0
        assert "ceilings done" in capfd.readouterr().err
    assert main(["record", "--only", "ceilings", "--records", str(tmp_path)]) == 0
    assert "1 of 1 steps done" in capfd.readouterr().err


def test_a_ladder_that_fails_does_not_stop_the_others(on_a_gpu, tmp_path, capfd, monkeypatch):
    wrong = "tiny_ladder.wrong"
    monkeypatch.setitem(sys.modules, wrong, types.ModuleType(wrong))
    sys.modules[wrong].ladder = replace(scale.faulty, problem=replace(scale.problem, name="wrong"), ceiling=None)
    assert main(["record", wrong, TINY, "--records", str(tmp_path)]) == 1
    said = capfd.readouterr().err
    assert "tiny_ladder.wrong: measure failed: " in said and "WrongResult" in said and "1 of 2 steps done in" in said
    assert "A step that failed or was skipped has changed no record." in said
    assert len(records.load_record("scale", folder=tmp_path).points) == 14
    assert [p.name for p in tmp_path.iterdir()] == ["scale.json"]
    assert main(["record", wrong, "--records", str(tmp_path)]) == 1
    assert "MeasurementFailed" in capfd.readouterr().err


def test_the_command_leaves_the_record_alone_for_a_part_a_failure_and_an_interruption(
    on_a_gpu, tmp_path, capfd, monkeypatch
):
    records.save_record(made.record(), tmp_path / "scale.json")
    records.save_ceilings(made.ceilings(), tmp_path)
    before = (tmp_path / "scale.json").read_bytes()
    assert main(["record", TINY, "--records", str(tmp_path), "--rung", "plain", "--size", "n=64"]) == 0
    lines = capfd.readouterr().err
    # The record's ceilings tell how far from the limit it is: 512 bytes at 8.192 GB/s are 62.5 ns of the double's 4 ms.
    assert "no record is written" in lines and "0 % of the limit" in lines

    assert main(["record", "transpoze", "--records", str(tmp_path)]) == 2
    assert "no ladder 'transpoze'" in capfd.readouterr().err
    for wrong, says in (("--rung=padded", "no rung 'padded'"), ("--size=rows=5", "scale's size has the keys n; got")):
        assert main(["record", TINY, wrong]) == 2
        assert says in capfd.readouterr().err

    def interrupted(spec, out, meanwhile):
        os.kill(os.getpid(), signal.SIGTERM)  # as `timeout` does; Ctrl-C raises KeyboardInterrupt as well

    monkeypatch.setattr(measure, "run_child", interrupted)
    assert main(["record", TINY, "--records", str(tmp_path)]) == 130
    assert "interrupted" in capfd.readouterr().err
    assert (tmp_path / "scale.json").read_bytes() == before and len(list(tmp_path.iterdir())) == 2


def test_the_command_needs_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(cuda, "backend", "emulator")
    assert main(["record", "transpose"]) == 1
    assert "recording needs an NVIDIA GPU" in capsys.readouterr().err


# The steps, made up: what runs, in which order, and what a failure leaves.


def step(name, ran, *, fails=None, wanted=lambda ladder: True, missing=""):
    """A step that notes in ``ran`` that it ran."""

    def run(ladder, options):
        ran.append((ladder, name))
        if fails is not None:
            raise fails
        return f"{name}.json"

    return Step(name, run, wanted, lambda: missing)


@pytest.fixture
def options(tmp_path):
    return Options("nvidia-h200", Sampling(), tmp_path)


def test_steps_run_in_order_one_ladder_after_the_other(options):
    ran = []
    steps = [step("measure", ran), step("profile", ran, wanted=lambda ladder: ladder == "b"), step("repeats", ran)]
    outcomes = list(run_steps(["a", "b"], steps, options))
    assert ran == [("a", "measure"), ("a", "repeats"), ("b", "measure"), ("b", "profile"), ("b", "repeats")]
    assert {outcome.state for outcome in outcomes} == {"done"} and exit_status(outcomes) == 0
    assert str(outcomes[0]) == "a: measure done: measure.json"


def test_a_step_asked_for_by_name_runs_even_if_no_record_has_it(options):
    ran = []
    never = step("transfers", ran, wanted=lambda ladder: False)
    assert list(run_steps(["a"], [never], options)) == []
    assert [outcome.state for outcome in run_steps(["a"], [never], options, asked=True)] == ["done"]


def test_a_missing_tool_skips_its_step_and_the_status_says_so(options):
    ran = []
    steps = [step("measure", ran), step("profile", ran, missing="Nsight Compute (ncu)"), step("repeats", ran)]
    outcomes = list(run_steps(["a"], steps, options))
    assert ran == [("a", "measure"), ("a", "repeats")] and exit_status(outcomes) == 3
    assert str(outcomes[1]) == "a: profile skipped: it needs Nsight Compute (ncu)"


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        (measure.MeasurementFailed("plain is wrong"), "MeasurementFailed: plain is wrong"),
        (StepFailed("3 counts are missing"), "3 counts are missing"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_a_failing_step_does_not_lose_the_other_steps_results(options, fails, says):
    ran = []
    steps = [step("measure", ran, fails=fails), step("profile", ran, missing="ncu"), step("repeats", ran)]
    outcomes = list(run_steps(["a", "b"], steps, options))
    assert ran == [("a", "measure"), ("a", "repeats"), ("b", "measure"), ("b", "repeats")]
    assert [outcome.state for outcome in outcomes] == 2 * ["failed", "skipped", "done"]
    assert outcomes[0].message == says and exit_status(outcomes) == 1


def test_an_interruption_ends_all_steps(options):
    ran = []
    steps = [step("measure", ran), step("profile", ran, fails=KeyboardInterrupt()), step("repeats", ran)]
    with pytest.raises(KeyboardInterrupt):
        list(run_steps(["a"], steps, options))
    assert ran == [("a", "measure"), ("a", "profile")]


def test_the_steps_are_those_of_the_book():
    assert [one.name for one in STEPS] == [
        "measure", "profile", "agreement", "sanitize", "repeats", "spans", "transfers", "cpu", "search", "divergence"
    ]  # fmt: skip
    assert [one.name for one in CHAPTER_STEPS] == ["events"]


def test_chapter_steps_run_once_for_each_chapter_of_the_ladders(monkeypatch, capfd, on_a_gpu):
    ran = []
    monkeypatch.setattr(standalone, "chapters", lambda: ("conv-layers", "light-speed", "tiling"))
    monkeypatch.setattr(record_steps, "STEPS", (step("measure", ran),))
    monkeypatch.setattr(record_steps, "CHAPTER_STEPS", (step("events", ran),))
    assert main(["record", "copy", "fma", "convlayer"]) == 0
    measured = [(name, "measure") for name in ("copy", "fma", "convlayer")]
    assert ran == [*measured, ("conv-layers", "events"), ("light-speed", "events")]
    ran.clear()
    assert main(["record", "--only", "events"]) == 0
    assert ran == [(name, "events") for name in ("conv-layers", "light-speed", "tiling")]
    ran.clear()
    assert main(["record", "copy", "--only", "measure"]) == 0 and ran == [("copy", "measure")]
    assert main(["record", TINY, "--only", "events"]) == 0 and len(ran) == 1
    assert "light-speed: events done: events.json" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("ladder", "wanted"),
    [
        ("reduction", {"measure", "agreement", "sanitize", "repeats"}),
        ("conv3d", {"measure", "profile", "agreement", "sanitize", "transfers", "cpu"}),
        ("sgemm", {"measure", "profile", "agreement", "sanitize", "search"}),
        ("divergence", {"measure", "agreement", "sanitize", "divergence"}),
        (TINY, {"measure"}),
    ],
)
def test_each_ladder_wants_the_records_that_the_book_has_of_it(ladder, wanted):
    assert {one.name for one in STEPS if one.wanted(ladder)} == wanted


def test_the_command_runs_all_steps_of_a_ladder_and_reports_each(monkeypatch, capfd, on_a_gpu):
    ran = []
    steps = (step("measure", ran), step("profile", ran, missing="ncu"), step("repeats", ran, fails=StepFailed("no")))
    monkeypatch.setattr(record_steps, "STEPS", steps)
    monkeypatch.setattr(record_steps, "CHAPTER_STEPS", ())
    assert main(["record", "copy"]) == 1
    said = capfd.readouterr().err
    assert "copy: measure done: measure.json" in said and "1 of 3 steps done" in said
    assert said.count("copy: profile skipped: it needs ncu") == 2 and said.count("copy: repeats failed: no") == 2
    assert main(["record", "copy", "--only", "profile, measure"]) == 3
    assert ran == [("copy", "measure"), ("copy", "repeats"), ("copy", "measure")]


def test_tools_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setattr(record_steps.shutil, "which", lambda name: None)
    by_name = {one.name: one.missing() for one in STEPS}
    assert "Nsight Compute (ncu)" in by_name["profile"] and "compute-sanitizer" in by_name["sanitize"]
    assert by_name["repeats"] == ""
    monkeypatch.setattr(record_steps.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delitem(sys.modules, "cuda.bench", raising=False)
    assert {one.name: one.missing() for one in STEPS}["measure"].startswith("NVBench, the package cuda-bench")


def test_counts_that_are_missing_and_reports_on_rungs_are_failures(monkeypatch, options, tmp_path):
    from climb.validation.agreement import measuring
    from climb.validation.faults import clean

    steps = {one.name: one for one in STEPS}
    monkeypatch.setattr(measuring, "record_agreement", lambda *args: (tmp_path / "agreement.json", False))
    with pytest.raises(StepFailed, match="still lacks counts; run: climb agreement --ladder copy"):
        steps["agreement"].run("copy", options)
    monkeypatch.setattr(
        clean, "record_clean", lambda *args: (tmp_path / "clean.json", [{"tools": {"memcheck": "bad"}}])
    )
    with pytest.raises(StepFailed, match="memcheck"):
        steps["sanitize"].run("copy", options)
