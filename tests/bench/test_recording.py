"""A recording that is killed goes on where it was, if everything that moves a time is as before."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tiny_ladder import made, scale
from tools import nvbench_double as double
from tools.nvbench_double import State, nvbench_double  # noqa: F401
from tools.thorough import thorough

from climb.bench import bench_child, cuda, measure, records
from climb.bench.measure import MeasurementFailed, Sampling
from climb.bench.recording import record_ladder, record_ladders
from climb.bench.records import parts

TINY = "tiny_ladder.scale"
TARGETS = 7
#: Seconds by name.
SECONDS = {"plain": 4e-3, "vector": 1e-3, "twice": 2e-3, "library": 3e-3}


@pytest.fixture
def dies(nvbench, monkeypatch):
    """The child as a process that kills itself when it is to sample the n-th point; ``dies(0)``: it does not.

    Its times are ``SECONDS``.
    """
    if cuda.backend == "cupy":
        pytest.skip("a process that uses a GPU cannot be forked")
    whole = State.exec

    def at(number: int) -> None:
        def sampled(self, launcher, /, *, batched):
            if len(nvbench.states) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            whole(self, launcher, batched=batched)

        monkeypatch.setattr(State, "exec", sampled)

    def forked(spec: Path, out: Path, meanwhile) -> int:
        nvbench.benchmarks.clear()
        nvbench.states.clear()
        times = tuple(SECONDS[target["name"]] for target in json.loads(spec.read_text())["targets"])
        monkeypatch.setattr(double, "COLD", times)
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                os._exit(bench_child.main(spec, out, double.Gpu()))
            os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    monkeypatch.setattr(measure, "run_child", forked)
    return at


def recorded(folder: Path, **sampling: float):
    return record_ladder(TINY, Sampling(**sampling), [folder], parts_in=folder)


@pytest.fixture
def killed(dies, tmp_path, capfd):
    """A folder with the part of a recording that was killed in the second regime of its fourth target."""
    dies(8)
    with pytest.raises(MeasurementFailed, match="status -9"):
        recorded(tmp_path)
    dies(0)
    assert f"{tmp_path / 'scale.part'}: keeps 3 of 7 targets; the same command continues" in capfd.readouterr().err
    return tmp_path


def test_killed_recording_is_continued(killed, capfd):
    whole = recorded(killed)
    said = capfd.readouterr().err
    assert "3 of 7 targets are taken over from" in said
    assert "[1/5] scale vector n=1024" in said, "the fastest rung is measured again, then the four that were left"
    assert records.stale_points(whole, scale.ladder) == [] and len(whole.points) == 2 * TARGETS
    first, second = whole.runs
    assert (first.points, second.points, first.again) == (4, 10, None) and first.started < second.started
    assert second.again == 1.0
    records.save_record(whole, killed / "scale.json")
    assert records.load_record("scale", folder=killed) == whole


def test_points_are_kept_as_a_whole_run_records_them(nvbench, tmp_path):
    whole = recorded(tmp_path)
    assert whole.runs == () and whole.points[0].sm_clock_mhz == 1980
    _, lines = parts.read(tmp_path / "scale.part")
    assert tuple(point for line in lines for point in line.points) == whole.points


def test_part_of_another_board_is_not_taken_over(killed, capfd):
    head, lines = parts.read(killed / "scale.part")
    parts.begin(killed / "scale.part", msgspec.structs.replace(head, board="0123abcd"), lines)
    whole = recorded(killed)
    said = capfd.readouterr().err
    assert "scale.part: measured anew: it was measured on another board" in said and whole.runs == ()
    assert "[1/7] scale plain n=1024" in said


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, ""),
        ({"started": "2026-11-23T01:00:00.000Z"}, ""),
        ({"session": "2026-11-20T00:00Z"}, "the ceilings have been measured anew since"),
        ({"sampling": {"seconds": 9.0}}, "it was sampled differently"),
        ({"device": {**made.DEVICE, "driver": "1"}}, "driver is not the same"),
        ({"device": {**made.DEVICE, "differs": {"torch": "2.12"}}}, "differs is not the same"),
        (
            {"device": {**made.DEVICE, "clocks": {"max_sm_mhz": 1500, "max_memory_mhz": 3201}}},
            "the highest clock is not",
        ),
        ({"device": {**made.DEVICE, "clocks": {**made.DEVICE["clocks"], "sm_mhz": 345}}}, ""),
        ({"started": "2026-11-22T23:59:59.000Z"}, "it did not begin in the last 3 hours"),
        ({"started": "2026-11-23T03:00:01.000Z"}, "it did not begin in the last 3 hours"),
        ({"ladder": "other"}, "it is of other"),
    ],
)
def test_conditions_of_taking_over(changed, says):
    today = parts.Head("scale", "2026-11-23T03:00:00.000Z", "", "", made.DEVICE, {"seconds": 2.0})
    assert parts.why_not(msgspec.structs.replace(today, **changed), today).startswith(says)
    assert bool(parts.why_not(msgspec.structs.replace(today, **changed), today)) == bool(says)


def test_changed_kernel_is_measured_anew_and_the_others_are_taken_over(killed, capfd, monkeypatch):
    changed = replace(scale.plain, source="vector.cu", launches=scale.vector.launches)
    monkeypatch.setattr(scale, "ladder", replace(scale.ladder, rungs=(changed, scale.vector, scale.twice)))
    with pytest.raises(MeasurementFailed):
        recorded(killed)  # 1023 numbers are not for that kernel
    assert "2 of 7 targets are taken over" in capfd.readouterr().err


def test_times_of_a_gpu_that_has_become_slower_are_measured_anew(killed, capfd, monkeypatch):
    for name, seconds in SECONDS.items():
        monkeypatch.setitem(SECONDS, name, 1.03 * seconds)
    whole = recorded(killed)
    assert "the GPU is not as fast as it was: 2 targets anew" in capfd.readouterr().err
    times = {point.name: point.median_s for point in whole.points if point.regime == "cold"}
    assert times == pytest.approx(SECONDS, rel=1e-3)
    assert [(run.points, run.again) for run in whole.runs] == [(8, None), (6, 1.0)], "none is of the killed run"


@pytest.fixture
def three(monkeypatch):
    """Three ladders like the tiny one, by the names that ``load_ladder`` takes."""
    names = [f"tiny_ladder.{name}" for name in ("first", "middle", "last")]
    for name in names:
        problem = replace(scale.problem, name=name.rpartition(".")[2])
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        sys.modules[name].ladder = replace(scale.ladder, problem=problem, ceiling=None)
    return names


def test_ladder_that_ends_the_process_fails_alone(dies, three, tmp_path, monkeypatch, capfd):
    saved, failures = [], {}
    dies(20)  # in the middle one
    run_child = measure.run_child

    def once(*arguments):
        status = run_child(*arguments)
        dies(0)
        return status

    monkeypatch.setattr(measure, "run_child", once)
    found = record_ladders(three, Sampling(), [tmp_path], failures=failures, parts_in=tmp_path, save=saved.append)
    assert [record.ladder for record in found] == ["first", "last"]
    assert all(len(record.points) == 2 * TARGETS and not record.runs for record in found)
    assert list(failures) == [three[1]] and "status -9" in failures[three[1]]
    assert [record.ladder for record in saved] == ["first", "last"]
    said = capfd.readouterr().err
    assert "middle.part: keeps 2 of 7 targets" in said and "ended with status -9" in said
    assert "[1/7] last plain n=1024" in said, "the first ladder is whole, and is not measured again"
    assert "first: its record is saved" in said


def test_what_the_ended_process_found_unavailable_is_not_tried_again(dies, three, tmp_path, monkeypatch):
    first = sys.modules[three[0]]
    first.ladder = replace(first.ladder, peers=(replace(scale.library, prepare=lambda *_: __import__("no_such")),))
    dies(20)
    failures = {}
    found = record_ladders(three[:2], Sampling(), [tmp_path], failures=failures, parts_in=tmp_path)
    assert list(failures) == [three[1]]
    assert [(one.name, one.size) for one in found[0].skipped] == [("library", size) for size in scale.problem.headline]
    assert found[0].runs == ()


def test_without_parts_an_ended_process_ends_the_recording(dies, three, tmp_path, monkeypatch):
    runs, failures, run_child = [], {}, measure.run_child
    monkeypatch.setattr(measure, "run_child", lambda *given: runs.append(given) or run_child(*given))
    dies(20)
    with pytest.raises(MeasurementFailed, match="status -9"):
        record_ladders(three, Sampling(), [tmp_path], failures=failures)
    assert len(runs) == 1 and list(failures) == [three[1]]


def test_process_that_measures_nothing_fails_the_ladders_that_are_left(dies, three, tmp_path, monkeypatch):
    """The first process ends in the second ladder, the next one before it has measured anything."""
    run_child, failures = measure.run_child, {}

    def once(*arguments):
        monkeypatch.setattr(measure, "run_child", lambda *_: 3)
        return run_child(*arguments)

    monkeypatch.setattr(measure, "run_child", once)
    dies(20)
    (found,) = record_ladders(three, Sampling(), [tmp_path], failures=failures, parts_in=tmp_path)
    assert found.ladder == "first" and list(failures) == three[1:]
    assert "status -9" in failures[three[1]] and "status 3" in failures[three[2]]


@pytest.mark.parametrize("alone", [True, thorough(False)])
def test_gpu_that_is_slower_in_each_run_is_given_up_after_three(killed, three, alone, monkeypatch):
    """If a ladder fails alone, the caller asks for failures and there is nothing to return; otherwise the caller does
    not ask, and the other ladder is complete."""
    names, runs, run_child = [TINY, *([] if alone else three[:1])], [], measure.run_child

    def slower(*given):
        runs.append(given)
        for name, seconds in SECONDS.items():
            monkeypatch.setitem(SECONDS, name, 1.03 * seconds)
        return run_child(*given)

    monkeypatch.setattr(measure, "run_child", slower)
    with pytest.raises(MeasurementFailed, match=r"^the GPU does not keep its speed from run to run: scale$"):
        record_ladders(names, Sampling(), [killed], failures={} if alone else None, parts_in=killed)
    assert len(runs) == 3 + len(names), "three, and one for each ladder that may end a process"


def test_ladders_without_parts_are_recorded_whole(nvbench, three, tmp_path):
    found = record_ladders(three, Sampling(), [tmp_path], save=pytest.fail)
    assert [(one.ladder, len(one.points)) for one in found] == [(n, 2 * TARGETS) for n in ("first", "middle", "last")]


def test_record_whose_last_peer_is_unavailable_is_saved_while_the_run_goes_on(nvbench, three, tmp_path, monkeypatch):
    """A machine may lack a library: a complete record is saved after a look that saw all but the last target."""
    lacking = replace(scale.library, prepare=lambda arrays, size: __import__("no_such_library"))
    first = sys.modules[three[0]]
    first.ladder = replace(first.ladder, peers=(lacking,))
    looks, saved = [], []
    settle = bench_child.Run._settle

    def settled(run, index, result):
        if run.targets[index].ladder == three[0] and "skipped" in result:
            looks[0]()  # the part has its last line, the outcome of the peer is not yet written
            settle(run, index, result)
            looks[0]()
        else:
            settle(run, index, result)
            if run.targets[index].ladder == three[2]:
                looks[0]()

    def run_child(spec, out, meanwhile):
        looks[:] = [meanwhile]
        return bench_child.main(spec, out, double.Gpu())

    monkeypatch.setattr(bench_child.Run, "_settle", settled)
    monkeypatch.setattr(measure, "run_child", run_child)

    def save(record):
        saved.append((record.ladder, len(nvbench.states)))

    record_ladders(three, Sampling(), [tmp_path], failures={}, parts_in=tmp_path, save=save)
    assert saved[0] == ("first", 13), "at the first regime of its last target, and not at the end of the run"
    assert saved[1] == ("middle", 30), "at the second regime of the next ladder's first target"


@pytest.mark.parametrize(
    ("launch", "says"),
    [(lambda: None, "WrongResult"), (lambda: __import__("no_such_library"), "No module named 'no_such_library'")],
)
def test_peer_that_fails_its_check_is_skipped_and_its_ladder_recorded(nvbench, three, tmp_path, launch, says):
    first = sys.modules[three[0]]
    first.ladder = replace(first.ladder, peers=(replace(scale.library, prepare=lambda arrays, size: launch),))
    (record,) = record_ladders(three[:1], Sampling(), [tmp_path], parts_in=tmp_path)
    assert {point.name for point in record.points} == set(first.ladder.names)
    assert record.skipped and {one.name for one in record.skipped} == {"library"}
    assert all(one.reason.startswith("it fails its check: ") and says in one.reason for one in record.skipped)


def test_rung_with_a_wrong_result_is_not_skipped(nvbench, three, tmp_path):
    first = sys.modules[three[0]]
    faulty = scale.faulty["last_missing"].rung
    first.ladder = replace(first.ladder, rungs=(*first.ladder.rungs, faulty), peers=())
    with pytest.raises(MeasurementFailed, match=r"last_missing.*is wrong"):
        record_ladders(three[:1], Sampling(), [tmp_path], parts_in=tmp_path)


def test_fault_that_leaves_no_gpu_ends_the_process_and_fails_its_ladder(dies, three, tmp_path, monkeypatch):
    dies(0)
    failures, lost = {}, []
    prepare = measure.find_peer

    def faulty(ladder, name):
        if ladder.name == "first":
            lost.append(name)
            raise RuntimeError("an illegal memory access was encountered")
        return prepare(ladder, name)

    monkeypatch.setattr(measure, "find_peer", faulty)
    monkeypatch.setattr(double.Gpu, "synchronize", lambda self: 1 / 0 if lost else None)
    found = record_ladders(three, Sampling(), [tmp_path], failures=failures, parts_in=tmp_path)
    assert [record.ladder for record in found] == ["middle", "last"]
    assert "illegal memory access" in failures.pop(three[0]) and not failures


def test_line_that_was_cut_off_is_left_out(killed):
    path = killed / "scale.part"
    path.write_bytes(path.read_bytes()[:-20])
    head, lines = parts.read(path)
    assert (head.ladder, len(lines)) == ("scale", 2)
    path.write_bytes(b"")
    assert parts.read(path) is None


def test_measuring_process_ends_with_its_parent():
    child = "from climb.bench.processes import end_with_parent as e; e(); print('ready', flush=True); input()"
    code = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=subprocess.PIPE); "
    parent = subprocess.Popen(
        [sys.executable, "-c", code + "print(p.pid, flush=True); p.wait()"], stdout=subprocess.PIPE, text=True
    )
    said = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
    (pid,) = said - {"ready"}
    parent.kill()
    parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return
        os.sched_yield()
        signal.sigtimedwait([], 0.01)
    pytest.fail("it still runs")


def test_a_target_that_was_measured_in_one_regime_is_known_by_its_only_point():
    point = made.point("library", "peer", {"n": 1024}, "cold")
    finished = parts.Finished("2026-11-23T03:00:00.000Z", (point,))
    assert finished.target == parts.target_key("peer", "library", {"n": 1024})


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        ({"plain": 6e-6, "vector": 5e-6}, "plain"),
        ({"plain": 6e-6, "vector": 5e-3, "twice": 6e-5}, "twice"),
        ({"library": 6e-5, "vector": 5e-6}, "vector"),
    ],
)
def test_a_later_run_measures_a_rung_again_that_takes_longer_than_clocks_take_to_rise(seconds, says):
    points = [
        made.point(name, "peer" if name == "library" else "rung", {"n": 1024}, "cold", seconds=time)
        for name, time in seconds.items()
    ]
    again = parts.anchor([parts.Finished("2026-11-23T03:00:00.000Z", (point,)) for point in points])
    assert again.points[0].name == says


def test_isolated_peers_are_measured_after_the_others_in_a_process_of_their_own(dies, three, tmp_path, monkeypatch):
    last = sys.modules[three[1]]
    last.ladder = replace(last.ladder, peers=(replace(scale.library, isolated=True),))
    specs, run_child = [], measure.run_child
    monkeypatch.setattr(
        measure, "run_child", lambda spec, *rest: specs.append(json.loads(spec.read_text())) or run_child(spec, *rest)
    )
    dies(0)
    plain, apart = record_ladders(three[:2], Sampling(), [tmp_path], parts_in=tmp_path)
    together, alone = ([(one["ladder"], one["name"]) for one in spec["targets"]] for spec in specs)
    assert len(together) == 2 * TARGETS - 2 and (three[0], "library") in together
    assert alone == [(three[1], "vector"), (three[1], "library"), (three[1], "library")]
    assert len(plain.points) == len(apart.points) == 2 * TARGETS and not plain.runs
    assert [(run.points, run.again) for run in apart.runs] == [(8, None), (6, 1.0)]
