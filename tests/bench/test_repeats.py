"""The frequency of each result of a rung, the place of such a record, and the reasons to refuse it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_ladder import made

from climb import load_ladder
from climb.bench import hardware, records, repeats
from climb.bench.records.kinds import RepeatsRecord


@pytest.fixture
def small(monkeypatch):
    """The reduction of 1000 floats by two rungs, and a GPU's name to record."""
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)
    monkeypatch.setenv("WORKLOG_COMMIT", "f00")
    ladder = load_ladder("reduction")
    return replace(ladder, problem=replace(ladder.problem, headline=({"n": 1000},)), rungs=ladder.rungs[:2])


def test_each_launch_of_each_rung_is_counted_by_its_result(small):
    data = repeats.repeat(small, launches=3)
    assert [point["name"] for point in data["points"]] == list(small.names)
    assert (data["size"], data["launches"], data["commit"]) == ({"n": 1000}, 3, "f00")
    for point in data["points"]:
        ((value, count),) = point["results"].items()
        assert count == 3 and float.fromhex(value) == pytest.approx(data["reference"], rel=1e-5)
        assert point["source_sha256"] == small[point["name"]].sha256({"n": 1000})


def test_a_file_of_repeats_is_below_its_gpu_or_the_folder_given(tmp_path):
    assert repeats.repeats_path("scale", "a-gpu") == records.RECORDS / "a-gpu" / "repeats" / "scale.json"
    assert repeats.repeats_path("scale", "a-gpu", tmp_path) == tmp_path / "repeats" / "scale.json"


def test_repeats_are_read_by_rung_and_refused_when_they_are_missing_or_old(small, tmp_path, monkeypatch):
    data = repeats.repeat(small, launches=2)
    data["points"][1]["source_sha256"] = "0" * 64
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    records.save(repeats.repeats_path("reduction", "a-gpu"), data, RepeatsRecord)
    found = repeats.repeated(small, "a-gpu")
    first, second = small.names
    assert (found.gpu, found.size, found.launches) == ("NVIDIA H200", {"n": 1000}, 2)
    assert sum(found.of(first).values()) == 2 and found.reference == pytest.approx(min(found.of(first)), rel=1e-5)
    with pytest.raises(LookupError, match=f"stale repeats of {second}: .*climb repeats reduction"):
        found.of(second)
    with pytest.raises(LookupError, match="no repeats of atomics; on that GPU: climb repeats reduction"):
        found.of("atomics")
    with pytest.raises(LookupError, match="no repeats of reduction on another-gpu"):
        repeats.repeated(small, "another-gpu")
