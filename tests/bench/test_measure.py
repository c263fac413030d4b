"""Measuring without a GPU: NVBench's output is read from a sample of its format, NVBench itself is a double."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tiny_ladder import made, scale
from tools.nvbench_double import State, nvbench_double  # noqa: F401

from climb.bench import alignment, cuda, hardware, measure, nvbench_results, recording, records, targets
from climb.bench.cuda import missing_gpu
from climb.bench.ladder import BoundRung
from climb.bench.measure import MeasurementFailed, Sampling, Target
from climb.bench.nvbench_results import ResultsError
from climb.bench.records.ceilings import MEANING, Ceiling
from climb.bench.registry import load_ladder
from climb.bench.targets import choose_targets

SAMPLE = Path(__file__).parent / "nvbench_sample"
TINY = "tiny_ladder.scale"


# Reading NVBench's files.


def test_samples_and_means_are_read():
    found = nvbench_results.read_results(SAMPLE / "nvbench.json")
    assert list(found) == ["point-0", "point-1"]
    first = found["point-0"]
    assert len(first.cold) == 12 and 4.9e-4 < min(first.cold) <= max(first.cold) < 5.1e-4
    assert (first.batch_mean_s, first.batch_launches, first.cold_wall_s) == (0.00050139, 498, 0.31)
    assert round(first.sm_clock_hz / 1e6) == 1965


def test_the_log_is_read_by_benchmark():
    log = nvbench_results.read_log(SAMPLE / "nvbench.log")
    assert [nvbench_results.throttled_samples(log[f"point-{i}"]) for i in range(3)] == [0, 2, 0]
    assert nvbench_results.batch_mean_s(log["point-1"]) == pytest.approx(1.0953e-5)
    assert nvbench_results.batch_mean_s(log["point-2"]) is None


def copy_sample(folder: Path, **summary: str) -> Path:
    """The sample in another folder, with values of the first benchmark's summaries replaced by tag; None removes."""
    (folder / "nvbench.json-bin").mkdir()
    for file in SAMPLE.glob("nvbench.json-bin/*.bin"):
        (folder / "nvbench.json-bin" / file.name).write_bytes(file.read_bytes())
    data = json.loads((SAMPLE / "nvbench.json").read_text())
    state = data["benchmarks"][0]["states"][0]
    state["summaries"] = [s for s in state["summaries"] if s["tag"] not in summary or summary[s["tag"]] is not None]
    for entry in state["summaries"]:
        if entry["tag"] in summary:
            entry["data"][0]["value"] = summary[entry["tag"]]
    (folder / "nvbench.json").write_text(json.dumps(data))
    return folder / "nvbench.json"


@pytest.mark.parametrize("summary", [{"nv/cold/sample_size": "0"}, {"nv/json/bin:nv/cold/sample_times": None}])
def test_no_accepted_sample_is_an_error_that_names_the_benchmark(tmp_path, summary):
    with pytest.raises(ResultsError, match="point-0: NVBench accepted no sample"):
        nvbench_results.read_results(copy_sample(tmp_path, **summary))


def test_samples_that_are_lost_or_cut_short_are_an_error(tmp_path):
    path = copy_sample(tmp_path)
    binary = tmp_path / "nvbench.json-bin" / "0.bin"
    binary.write_bytes(binary.read_bytes()[:-4])
    with pytest.raises(ResultsError, match="holds 11 samples, expected 12"):
        nvbench_results.read_results(path)
    binary.unlink()
    with pytest.raises(ResultsError, match="samples is missing"):
        nvbench_results.read_results(path)


# From NVBench's results to points.

RESULT = {
    "max_rel_error": 1.23456e-8,
    "max_component_error": 2.34567e-8,
    "library": None,
    "min_samples": 10,
    "timeout_s": 2.0,
}


def points_of(index: int, throttled: int = 0):
    measured = nvbench_results.read_results(SAMPLE / "nvbench.json")[f"point-{index}"]
    target = Target(TINY, "rung", "twice", {"n": 1024})
    regimes = dict.fromkeys(target.regimes, measured)
    return measure.make_points(target, RESULT, regimes, dict.fromkeys(regimes, throttled), Sampling())


def test_a_point_holds_all_that_a_record_needs():
    cold, batch = points_of(0)
    assert (cold.regime, len(cold.samples), batch.regime, batch.samples) == ("cold", 12, "batch", (0.0005014,))
    assert cold.p25_s <= cold.median_s <= cold.p75_s
    assert cold.source_sha256 == scale.ladder["twice"].sha256({"n": 1024})
    assert (cold.flops, cold.bytes, cold.dtype, cold.max_rel_error) == (2048, 8192, "float32", 1.235e-8)
    assert cold.max_component_error == 2.346e-8 and cold.sm_clock_mhz == 1965
    assert cold.launch["kernel"] == "doubled" and [t["kernel"] for t in cold.launch["then"]] == ["plus_one"]
    assert cold.launch["grid"] == [16] and cold.launch["options"] == ["-std=c++17", "-ftz=true"]
    assert batch.sampling == {"launches": 498, "statistic": "mean"}


def test_a_met_criterion_and_an_unmet_one_are_told_apart():
    met, _ = points_of(0)
    assert met.sampling["not_met"] == [] and not met.sampling["timed_out"]
    unmet, _ = points_of(1, throttled=2)
    assert unmet.sampling["not_met"] == ["min-samples", "max-noise"] and unmet.sampling["timed_out"]
    assert unmet.sampling["throttled_discarded"] == 2 and unmet.sampling["noise"] > 0.005


@pytest.mark.parametrize(
    ("estimate", "samples", "timeout"),
    [(1e-6, 200, 2.0), (1e-3, 200, 2.0), (0.02, 50, 2.0), (0.09, 11, 2.0), (0.4, 3, 2.0), (3.0, 3, 5.0)],
)
def test_sampling_is_bounded(estimate, samples, timeout):
    assert Sampling().samples_for(estimate) == samples
    assert Sampling().timeout_for(estimate) == timeout


# The child, with NVBench's double.


def test_a_whole_ladder_becomes_a_record(nvbench, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("WORKLOG_COMMIT", "abc123")
    made_now = recording.record_ladder(TINY, Sampling(), [tmp_path], keep=tmp_path / "kept")
    records.save_record(made_now, tmp_path / "scale.json")
    assert records.load_record("scale", folder=tmp_path) == made_now
    assert records.stale_points(made_now, scale.ladder) == []
    assert (made_now.commit, made_now.gpu) == ("abc123", "NVIDIA H200")
    found = [(p.name, p.regime, p.median_s) for p in made_now.points[:4]]
    times = [("plain", "cold", 4e-3), ("plain", "batch", 3.6e-3), ("vector", "cold", 1e-3), ("vector", "batch", 9e-4)]
    assert found == times
    assert made_now.ceilings == {}, "no folder has ceilings"
    assert made_now.find("library", {"n": 1023}, "cold").library["name"] == "None"
    assert nvbench.states[0].asked["min_samples"] == 200 and nvbench.states[0].asked["timeout"] == 2.0

    *lines, total = capfd.readouterr().err.splitlines()
    assert len(lines) == len(made_now.points)
    assert all(re.search(r"; \d+\.\d s", line) for line in lines[1::2]), "what each point took"
    phases = "case|prepare|check|check again|trace|sample|other"
    assert re.match(rf"7 points: [\d.]+ s: (\d+\.\d ({phases})(, |$)){{7}}", total)
    assert lines[0].startswith("[1/7] scale plain n=1024") and "cold" in lines[0] and "4000.00 us" in lines[0]
    assert "200 samples" in lines[0] and "batch" in lines[1] and "3600.00 us" in lines[1]


def test_the_percentage_of_the_limit_is_reported_once_the_ceilings_are_known(nvbench, tmp_path, monkeypatch, capfd):
    problem = scale.problem.__class__(**{**vars(scale.problem), "flops": lambda s: 0})
    monkeypatch.setattr(scale, "ladder", scale.Ladder(problem, scale.FOLDER, (scale.plain,), (), scale.ladder.ceiling))
    # 8192 bytes at 4096 GB/s are 2 ns, and the floor 1998 us; the double's cold time is 4 ms, its batch 3.6 ms.
    ceilings = {"copy_gb_s": 4096.0, "floor_us": 1998.0}
    measure.run([Target(TINY, "rung", "plain", {"n": 1024})], Sampling(), keep=tmp_path, ceilings=ceilings)
    cold, batch, _ = capfd.readouterr().err.splitlines()
    assert "50 % of the limit" in cold and "of the limit" not in batch


def test_a_ladder_may_be_measured_after_nvbenchs_flush_alone_too(nvbench, tmp_path, monkeypatch):
    regimes = ("cold", "batch", "dirty")
    monkeypatch.setattr(scale, "ladder", dataclasses.replace(scale.ladder, regimes=regimes))
    made_now = recording.record_ladder(TINY, Sampling(), [tmp_path])
    found = [(p.name, p.regime, p.median_s) for p in made_now.points[:3]]
    assert found == [("plain", "cold", 4e-3), ("plain", "batch", 3.6e-3), ("plain", "dirty", 4.4e-3)]
    assert records.stale_points(made_now, scale.ladder) == []
    without = msgspec.structs.replace(made_now, points=tuple(p for p in made_now.points if p.regime != "dirty"))
    assert "missing in the regime 'dirty'" in str(records.stale_points(without, scale.ladder)[0])


def test_a_wrong_rung_refuses_the_whole_ladder(nvbench, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "ladder", scale.faulty)
    targets = [Target(TINY, "rung", name, {"n": 100}) for name in ("last_missing", "one_wrong")]
    with pytest.raises(MeasurementFailed, match=r"last_missing n=100: WrongResult: .*never written, first y\[99\]"):
        measure.run(targets, Sampling(), keep=tmp_path)
    assert [s.reason for s in nvbench.states] == ["failed", *3 * ["an earlier point failed"]]
    assert nvbench.files == 0


def test_a_rung_that_is_right_once_and_wrong_later_refuses_the_ladder(nvbench, tmp_path, monkeypatch):
    prepare, launched = BoundRung.prepare, []

    def spoiled(self, arrays, size):
        launch = prepare(self, arrays, size)

        def spoil_the_sixth():
            launch()
            launched.append(self.name)
            if len(launched) == 6:  # the check, three for the estimate, and one that was compared were right
                arrays["y"][17:18].fill(5.0)

        return spoil_the_sixth

    monkeypatch.setattr(BoundRung, "prepare", spoiled)
    with pytest.raises(MeasurementFailed, match=r"plain n=1024: WrongResult: .*\[17\].*\(in launch 2 of 2 after one"):
        measure.run([Target(TINY, "rung", "plain", {"n": 1024})], Sampling(), keep=tmp_path)
    assert launched == ["plain"] * 6


def test_a_point_that_nvbench_gives_no_sample_for_is_an_error(nvbench, tmp_path, monkeypatch):
    monkeypatch.setattr(State, "exec", lambda self, launcher, /, *, batched: None)
    with pytest.raises(MeasurementFailed, match="scale plain n=1024: NVBench accepted no sample"):
        measure.run([Target(TINY, "rung", "plain", {"n": 1024})], Sampling(), keep=tmp_path)


def test_a_child_that_dies_is_an_error_with_the_end_of_the_log(tmp_path, monkeypatch):
    def dies(spec, out, meanwhile):
        (out / "nvbench.log").write_text("Run:  [1/1] point-0\nsegmentation fault\n")
        return -11

    monkeypatch.setattr(measure, "run_child", dies)
    with pytest.raises(MeasurementFailed, match=r"status -11\nNVBench's log ends:\n.*\nsegmentation fault"):
        measure.run([Target(TINY, "rung", "plain", {"n": 1024})], Sampling(), keep=tmp_path)


def test_a_child_that_cannot_measure_for_want_of_nvbench_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(cuda, "_has_nvbench", lambda: False)
    monkeypatch.setattr(measure, "run_child", lambda spec, out, meanwhile: 1)
    with pytest.raises(MeasurementFailed, match=r"status 1\nNVBench's package cuda-bench is not .*`make gpu`"):
        measure.run([Target(TINY, "rung", "plain", {"n": 1024})], Sampling(), keep=tmp_path)


def test_an_interruption_ends_the_child(tmp_path, monkeypatch):
    started = []

    class Sleeper(subprocess.Popen):
        def __init__(self, command, **keywords):
            super().__init__([sys.executable, "-c", "import time; time.sleep(60)"], **keywords)
            started.append(self)

        def wait(self, timeout=None):
            if not getattr(self, "interrupted", False):
                self.interrupted = True
                raise KeyboardInterrupt
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Sleeper)
    with pytest.raises(KeyboardInterrupt):
        measure.run_child(tmp_path / "spec.json", tmp_path)
    assert started[0].returncode == -signal.SIGKILL  # it was still asleep, or it would have ended with 0


# Which points make the ceilings.


def test_all_rungs_are_candidates_for_a_ceiling_until_a_record_says_which_are_fast(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "ladder_names", lambda: (TINY,))
    everything = measure.ceiling_targets([tmp_path])
    assert [t.name for _, t in everything] == ["plain", "vector", "twice"], "a peer is no ceiling"
    assert {(name, t.size["n"], t.regimes) for name, t in everything} == {("copy_gb_s", 1024, ("cold",))}
    records.save_record(made.record(), tmp_path / "scale.json")
    assert [t.name for _, t in measure.ceiling_targets([tmp_path / "none", tmp_path])] == ["vector", "plain"]
    monkeypatch.setattr(scale, "ladder", dataclasses.replace(scale.ladder, ceiling=None))
    assert measure.ceiling_targets([tmp_path]) == []
    with pytest.raises(ValueError, match="no ladder measures a ceiling"):
        measure.record_ceilings(Sampling(), [tmp_path])


def test_the_floor_is_measured_first():
    names = [name for name, _ in measure.ceiling_targets([records.RECORDS / records.DEFAULT_GPU])]
    assert names[0] == "floor_us" and "launch_us" in names and set(names) == set(MEANING) - {"kept_mb"}


def test_ceilings_come_from_the_fastest_rung_with_every_sample(nvbench, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "ladder_names", lambda: (TINY,))
    monkeypatch.setenv("WORKLOG_COMMIT", "abc123")
    found = measure.record_ceilings(Sampling(), [tmp_path])
    # The double's times of the three rungs are 4, 1 and 2 ms; 8 bytes are moved for each of 1024 floats.
    assert found.values == {"copy_gb_s": pytest.approx(8 * 1024 / 1e-3 / 1e9)} and found.commit == "abc123"
    assert [(one.ladder, one.point.name, len(one.point.samples)) for one in found.points] == [
        ("scale", "plain", 200), ("scale", "vector", 200), ("scale", "twice", 200)
    ]  # fmt: skip
    records.save_ceilings(found, tmp_path)
    assert records.load_ceilings(tmp_path) == found and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\dZ", found.session)
    assert bool(found.board) == (missing_gpu() == ""), "the driver says which board this is"
    # A later session is added, also in another folder; a record finds its own.
    later = msgspec.structs.replace(found, session="2099-01-01T00:00Z", ceilings={"copy_gb_s": Ceiling(1.0, 0.0)})
    records.save_ceilings(later, tmp_path / "new", [tmp_path / "none", tmp_path])
    for session, value in ((found.session, found.values["copy_gb_s"]), (later.session, 1.0), ("unknown", 1.0)):
        assert records.ceilings_of(tmp_path / "new", session)["copy_gb_s"] == value
    assert (
        len(records.load_sessions(tmp_path / "new").sessions) == 2 == 1 + len(records.load_sessions(tmp_path).sessions)
    )
    assert "write_gb_s" in found.values.pending


def test_sessions_of_boards_that_are_measured_side_by_side_have_names_of_their_own(nvbench, tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "ladder_names", lambda: (TINY,))
    for chosen, board, end in (("0", "0123abcd", "Z 0123abcd"), ("1", "89abcdef", "Z 89abcdef"), ("", "0123abcd", "Z")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
        monkeypatch.setattr(hardware, "board", lambda board=board: board)
        found = measure.record_ceilings(Sampling(), [tmp_path])
        assert found.session.endswith(end) and found.board == board
        records.save_ceilings(found, tmp_path)
    assert len(records.load_sessions(tmp_path).sessions) == 3


def test_a_ceiling_whose_ladder_fails_stays_pending_and_no_floor_is_an_error(nvbench, tmp_path, monkeypatch):
    wrong = dataclasses.replace(scale.faulty, ceiling="floor_us")
    monkeypatch.setattr(measure, "ladder_names", lambda: (TINY,))
    monkeypatch.setattr(scale, "ladder", wrong)
    with pytest.raises(MeasurementFailed, match="WrongResult"):
        measure.record_ceilings(Sampling(), [tmp_path], failures={})


def test_several_ladders_are_measured_in_one_run_and_held_to_the_folders_ceilings(tmp_path, monkeypatch):
    asked = []

    def run(targets, sampling, **options):
        asked.extend(targets)
        options["skipped"].extend((target, "not here") for target in targets)
        return [() for _ in targets], made.DEVICE

    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setenv("WORKLOG_COMMIT", "f00")
    records.save_ceilings(made.ceilings(), tmp_path)
    written = recording.record_ladders(["saxpy", "transpose"], Sampling(), [tmp_path / "none", tmp_path])
    assert [record.ladder for record in written] == ["saxpy", "transpose"]
    assert list(dict.fromkeys(target.ladder for target in asked)) == ["saxpy", "transpose"]
    for name, record in zip(("saxpy", "transpose"), written, strict=True):
        assert [t for t in asked if t.ladder == name] == measure.targets_of(load_ladder(name), name)
        assert record.ceilings == made.ceilings().values and record.session == ""


# A part of a ladder.


def test_a_part_of_a_ladder_is_chosen_by_rung_and_size():
    size = {"n": 4096}
    assert choose_targets(TINY, ["vector"], [size]) == [Target(TINY, "rung", "vector", size)]
    assert [t.name for t in choose_targets(TINY, [], [{"n": 5}])] == ["plain", "twice", "library"]
    with pytest.raises(KeyError, match="no rung 'padded'"):
        choose_targets(TINY, ["padded"], [])
    with pytest.raises(ValueError, match="scale's size has the keys n; got"):
        choose_targets(TINY, [], [{"rows": 5}])


def test_a_size_that_names_a_kind_of_data(monkeypatch):
    tiny = load_ladder(TINY)
    problem = replace(tiny.problem, size_keys=("n", "data"), kinds={"data": ("random", "zeros")})
    monkeypatch.setattr(targets, "load_ladder", lambda name: replace(tiny, problem=problem))
    size = {"n": 5, "data": "zeros"}
    assert choose_targets(TINY, ["plain"], [size]) == [Target(TINY, "rung", "plain", size)]
    with pytest.raises(ValueError, match="scale: data is 'noise'; expected one of random, zeros"):
        choose_targets(TINY, ["plain"], [{"n": 5, "data": "noise"}])
    with pytest.raises(ValueError, match="scale: n is 'zeros'; expected a whole number"):
        choose_targets(TINY, ["plain"], [{"n": "zeros", "data": "zeros"}])


# The head of a record.


def test_a_gpu_has_one_folder_name():
    assert hardware.gpu_slug("NVIDIA H200") == "nvidia-h200"
    assert hardware.gpu_slug("NVIDIA GeForce RTX 4090") == "nvidia-geforce-rtx-4090"


def test_the_commit_is_given_or_read(monkeypatch):
    monkeypatch.setenv("WORKLOG_COMMIT", "abc")
    assert hardware.commit() == "abc"
    assert hardware.origin() == {"date": hardware.today(), "commit": "abc"}
    assert datetime.date.fromisoformat(hardware.today()).isoformat() == hardware.today()
    monkeypatch.delenv("WORKLOG_COMMIT")
    answers = {"rev-parse": "f00\n", "status": " M kernels/light_speed/copy/01_scalar.cu\n"}
    monkeypatch.setattr(hardware, "output", lambda *command: answers[command[3]])
    assert hardware.commit() == "f00+dirty"
    answers["status"] = ""
    assert hardware.commit() == "f00"
    monkeypatch.setattr(hardware, "output", lambda *command: None)
    assert hardware.commit() == "unknown"


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5)])
def test_measured_arrays_begin_on_the_boundary(shape):
    import cupy

    held = cupy.empty(129, dtype=cupy.float32)  # so that the next small array does not begin on it by chance
    array = cupy.arange(int(np.prod(shape)), dtype=cupy.float32).reshape(shape)
    moved = alignment.aligned(array)
    assert moved.size == 0 or moved.data.ptr % alignment.BOUNDARY == 0
    assert moved.flags.c_contiguous and moved.dtype == array.dtype and cupy.array_equal(moved, array)
    assert held.size and alignment.aligned(moved) is moved
