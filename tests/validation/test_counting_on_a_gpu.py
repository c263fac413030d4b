"""The commands that run on a GPU: portions, resumption and interruption, with the tools replaced by fakes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_ladder import made

from climb.bench.problem import Launch
from climb.cli import common, main
from climb.validation import nsight
from climb.validation.agreement import measuring, summary
from climb.validation.agreement.measuring import METRICS, Step, known_points, measure, portions, to_count
from climb.validation.faults import measuring as sanitizing
from climb.validation.faults.catalogue import FAULTS
from climb.validation.fuzzing import measuring as fuzzing
from climb.validation.fuzzing import program

COMPILED = SimpleNamespace(nvrtc_version=(12, 9))
NUMBER = 7


def steps(metrics=(METRICS[:1], METRICS[1:2])) -> list[Step]:
    """Seven patterns, which ask for two sets of metrics in turn."""
    launch = Launch("k", (1,), (32,), ())
    return [
        Step({"label": f"pattern {n}"}, f"pattern {n}", COMPILED, launch, f"code {n}", True, {}, metrics[n % 2])
        for n in range(NUMBER)
    ]


@pytest.fixture
def counted(monkeypatch) -> list[list[str]]:
    """The labels of each portion that was counted, two launches at a time."""
    seen: list[list[str]] = []

    def count(portion, seconds):
        seen.append([step.names["label"] for step in portion])
        return [dict.fromkeys(portion[0].metrics, len(seen)) for _ in portion]

    monkeypatch.setattr(measuring, "AT_ONCE", 2)
    monkeypatch.setattr(measuring, "count", count)
    monkeypatch.setattr(nsight, "version", lambda: "a tool")
    monkeypatch.setattr(measuring.hardware, "commit", lambda: "a commit")
    return seen


def test_portions_hold_whole_groups_that_ask_for_the_same_metrics(monkeypatch):
    monkeypatch.setattr(measuring, "AT_ONCE", 2)
    each = steps()
    found = list(portions([[step] for step in each]))
    assert [[step.names["label"][-1] for step in portion] for portion in found] == [
        ["0", "2"], ["1", "3"], ["4", "6"], ["5"],
    ]  # fmt: skip
    group = [each[0], each[2], each[4]]
    assert list(portions([group, [each[6]]])) == [group, [each[6]]]


def test_groups_counted_often_enough_are_left_out():
    each = steps()
    points = {("pattern 1",): {"counts": [[1]]}, ("pattern 2",): {"counts": [[1], [2]]}}
    assert [group[0].group for group in to_count(each[:3], points, 1)] == ["pattern 0"]
    assert [group[0].group for group in to_count(each[:3], points, 2)] == ["pattern 0", "pattern 1"]


def test_interrupted_count_is_resumed_where_it_stopped(counted, tmp_path, monkeypatch):
    path, every = tmp_path / "agreement.json", {"patterns": steps()}
    whole = measuring.count

    def interrupted(portion, seconds):
        if len(counted) == 2:
            raise TimeoutError("no time")
        return whole(portion, seconds)

    monkeypatch.setattr(measuring, "count", interrupted)
    assert measure(every, path, made.DEVICE, 100) is False
    assert len(known_points(path, every)) == 4
    monkeypatch.setattr(measuring, "count", whole)
    assert measure(every, path, made.DEVICE, 100) is True
    assert sorted(label for portion in counted for label in portion) == [f"pattern {n}" for n in range(NUMBER)]
    assert measure(every, path, made.DEVICE, 100) is True and len(counted) == 4
    assert len(json.loads(path.read_text())["patterns"]) == NUMBER


def test_changed_code_another_compiler_and_missing_metrics_are_counted_again(counted, tmp_path):
    path, every = tmp_path / "agreement.json", {"patterns": steps()}
    measure(every, path, made.DEVICE, 100)
    data = json.loads(path.read_text())
    data["patterns"][0]["code_sha256"] = "another"
    data["patterns"][1]["counts"] = [[None] * len(METRICS)]
    path.write_text(json.dumps(data))
    points = known_points(path, every)
    assert ("pattern 0",) not in points and points[("pattern 1",)]["counts"] == [] and len(points) == NUMBER - 1
    path.write_text(json.dumps(data | {"nvrtc": "1.0"}))
    assert known_points(path, every) == {}


def test_failed_portion_leaves_the_record_incomplete_but_does_not_stop_the_others(counted, tmp_path, monkeypatch):
    path, every, whole = tmp_path / "agreement.json", {"patterns": steps()}, measuring.count

    def failing(portion, seconds):
        if portion[0].group == "pattern 0":
            raise RuntimeError("ncu failed")
        return whole(portion, seconds)

    monkeypatch.setattr(measuring, "count", failing)
    assert measure(every, path, made.DEVICE, 100) is False
    assert len(known_points(path, every)) == NUMBER - 2


def test_no_launch_is_started_without_time(counted, tmp_path):
    assert measure({"patterns": steps()}, tmp_path / "agreement.json", made.DEVICE, measuring.STARTING / 2) is False
    assert counted == []


@pytest.mark.parametrize(
    ("complete", "counts_only", "compared"), [(True, False, 1), (True, True, 0), (False, False, 0)]
)
def test_agreement_command_compares_after_a_complete_count(
    monkeypatch, tmp_path, capsys, complete, counts_only, compared
):
    summaries: list[int] = []
    monkeypatch.setattr(common, "need_gpu", lambda what: None)
    monkeypatch.setattr(common, "need_tool", lambda name: None)
    monkeypatch.setattr(measuring, "prepare", lambda kinds, ladders: {kind: steps() for kind in kinds})
    monkeypatch.setattr(measuring.hardware, "device_block", lambda: made.DEVICE)
    monkeypatch.setattr(measuring, "measure", lambda steps, path, gpu, seconds: complete)
    monkeypatch.setattr(summary, "write_summary", lambda: summaries.append(1) or "written")
    records = ["--records", str(tmp_path)]
    code = main(["agreement", "--only", "patterns", *records, *["--counts-only"] * counts_only])
    assert (code, len(summaries)) == (0 if complete else 1, compared)
    assert main(["agreement", "--compare"]) == 0 and len(summaries) == compared + 1


def test_sanitizer_runs_faults_in_parts_and_asks_again_about_those_that_a_process_did_not_reach(monkeypatch, tmp_path):
    """Each process reaches only its first two launches, as if the second had destroyed the context."""
    chosen = [fault for fault in FAULTS if fault.name in {"negative index", "null pointer", "use after free"}]
    prepared = [
        sanitizing.Prepared(fault, faulty, f"fault_{index}", b"")
        for index, fault in enumerate(chosen)
        for faulty in (True, False)
    ]
    asked: list[tuple[str, int]] = []

    def under(tool, launches, folder):
        asked.append((tool, len(launches)))
        said = {"says": "", "driver": ""}
        return {one.kernel: {"errors": int(one.faulty), **said} for one in launches[:2]}

    monkeypatch.setattr(sanitizing, "ALL", tuple(chosen))
    monkeypatch.setattr(sanitizing, "AT_ONCE", dict.fromkeys(sanitizing.TOOLS, 3))
    monkeypatch.setattr(sanitizing, "under", under)
    monkeypatch.setattr(sanitizing, "sanitizer_version", lambda: "a tool")
    found = sanitizing.measure(prepared, 1, tmp_path / "sanitizer.json", 100)
    assert sorted({number for tool, number in asked if tool == "memcheck"}) == [1, 3]
    for one in found["faults"]:
        for said in one["tools"].values():
            assert (said["errors"], said["mended"], said["mended_driver"]) == (1, 0, "")
    late = sanitizing.measure(prepared, 1, tmp_path / "sanitizer.json", 0)
    assert all(said == {} for one in late["faults"] for said in one["tools"].values())


def test_random_programs_in_several_files_are_compared_word_by_word(monkeypatch, tmp_path):
    jobs = [("control", seed) for seed in range(5)]
    wrong = program("control", 3)
    monkeypatch.setattr(fuzzing, "PART", 2)
    monkeypatch.setattr(fuzzing, "KEPT", 3)
    monkeypatch.setattr(fuzzing.hardware, "device_block", lambda: made.DEVICE)
    for number in range(0, len(jobs), fuzzing.PART):
        part = fuzzing._part(jobs[number : number + fuzzing.PART])
        (tmp_path / f"{number}.pickle").write_bytes(part)

    def on_gpu(one, cubin):
        outputs = fuzzing.emulate(one)
        if one.seed == wrong.seed:
            outputs[0][5] ^= np.uint32(1)
        return outputs

    monkeypatch.setattr(fuzzing, "on_gpu", on_gpu)
    found = fuzzing.compare(tmp_path)
    ran = found["kinds"]["control"]
    assert (ran["programs"], ran["seeds"], ran["refused"]) == (5, [0, 4], [])
    assert list(found["hashes"]["control"]) == ["0", "1", "2"]
    ((seed, ((place, ours, theirs),)),) = ran["different"]
    assert (seed, place, ours ^ theirs) == (3, 5, 1)
