"""Records: written whole or not at all, read only when they follow the schema, stale when a kernel has changed."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tiny_ladder import made, scale

from climb.bench import records
from climb.bench.records import MissingRecord, RecordError, load_record, parse_record, save_record, stale_points
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.timings import Timings, timings
from climb.bench.timings import verdict as verdict_of


@pytest.mark.parametrize("name", ladder_names())
def test_the_records_of_the_book_are_fresh(name):
    """Fails with what to run when a kernel was changed after it was measured."""
    try:
        record = load_record(name)
    except MissingRecord:
        record = None
    stale = stale_points(record, load_ladder(name))
    assert not stale, "\n".join(str(point) for point in stale)


def test_a_rung_that_is_not_swept_is_expected_at_the_headline_alone():
    problem = dataclasses.replace(scale.problem, sweep=({"n": 4096},))
    rungs = (scale.plain, dataclasses.replace(scale.twice, swept=False))
    ladder = dataclasses.replace(scale.ladder, problem=problem, rungs=rungs, peers=())
    names = {n: {name for _, name, size in records.expected_points(ladder) if size["n"] == n} for n in (1024, 4096)}
    assert names == {1024: {"plain", "twice"}, 4096: {"plain"}}


def test_a_record_survives_writing_and_reading(tmp_path):
    record = made.record()
    save_record(record, tmp_path / "deep" / "scale.json")
    assert load_record("scale", folder=tmp_path / "deep") == record


def test_samples_stand_on_one_line_and_each_field_on_its_own(tmp_path):
    save_record(made.record(), tmp_path / "scale.json")
    lines = (tmp_path / "scale.json").read_text().splitlines()
    samples = [line for line in lines if '"samples"' in line]
    assert len(samples) == len(made.record().points) and all(line.endswith("],") for line in samples)
    assert sum('"median_s"' in line for line in lines) == len(samples)
    assert all(line.count('": ') == 1 or "{" in line for line in lines if '"' in line)


def test_samples_are_kept_to_four_digits():
    assert records.rounded([0.000123456, 12.34567, 1.0]) == (0.0001235, 12.35, 1.0)


def test_an_interrupted_write_leaves_the_old_record(tmp_path, monkeypatch):
    path = tmp_path / "scale.json"
    save_record(made.record(), path)
    before = path.read_bytes()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(records.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_record(dataclasses.replace(made.record(), date="2027-01-01"), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_a_missing_record_says_what_makes_it(tmp_path):
    with pytest.raises(MissingRecord, match=r"no record of scale on nvidia-h200 .* make record LADDER=scale"):
        load_record("scale", folder=tmp_path)


def broken(**changes):
    data = json.loads(json.dumps(dataclasses.asdict(made.record())))
    data["points"][0].update(changes)
    return data


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regime": "hot"}, r"points\[0\]: regime is 'hot'; expected one of cold, batch"),
        ({"kind": "ring"}, r"points\[0\]: kind is 'ring'"),
        ({"samples": []}, r"points\[0\]: no samples"),
        ({"samples": [1e-6, 0]}, r"points\[0\]: a sample is 0; expected a positive number"),
        ({"samples": [float("nan")]}, r"a sample is nan"),
        ({"median_s": 1.0}, r"points\[0\]: median_s is 1.0, but its samples give"),
        ({"source_sha256": None}, r"points\[0\]: a rung needs 'source_sha256'"),
        ({"colour": "red"}, r"points\[0\] has unknown fields: colour"),
        ({"regime": "batch"}, "two points are 'plain' at n=1024, batch"),
    ],
)
def test_a_point_that_breaks_the_schema_is_refused(changes, message):
    with pytest.raises(RecordError, match=message):
        parse_record(broken(**changes))


def test_a_field_that_is_missing_is_named():
    data = broken()
    del data["points"][2]["bytes"]
    with pytest.raises(RecordError, match=r"points\[2\] lacks bytes"):
        parse_record(data)
    data = broken()
    del data["device"]["driver"]
    with pytest.raises(RecordError, match="device lacks 'driver'"):
        parse_record(data)
    data = broken()
    data["ceilings"]["copy_gb_s"] = 0
    with pytest.raises(RecordError, match=r"ceilings\['copy_gb_s'\] is 0"):
        parse_record(data)
    with pytest.raises(RecordError, match="the record is list; expected an object"):
        parse_record([])


def test_a_file_that_is_no_json_is_named(tmp_path):
    (tmp_path / "scale.json").write_text('{"ladder": ')
    with pytest.raises(RecordError, match=r"scale\.json"):
        load_record("scale", folder=tmp_path)


def test_what_cannot_be_read_again_is_not_written(tmp_path):
    bad = dataclasses.replace(made.record(), ceilings={"copy_gb_s": -1.0})
    with pytest.raises(RecordError):
        save_record(bad, tmp_path / "scale.json")
    assert not list(tmp_path.iterdir())


def test_a_fresh_record_has_no_stale_point():
    assert stale_points(made.record(), scale.ladder) == []


def test_a_changed_kernel_is_stale_and_says_what_mends_it(tmp_path):
    for path in scale.FOLDER.glob("*.cu*"):
        (tmp_path / path.name).write_text(path.read_text())
    edited = dataclasses.replace(scale.ladder, folder=tmp_path)
    assert stale_points(made.record(), edited) == []
    (tmp_path / "vector.cu").write_text((tmp_path / "vector.cu").read_text() + "__device__ int changed;\n")
    (stale,) = stale_points(made.record(), edited)
    assert str(stale) == (
        "stale record: scale 'vector' at n=1024: its kernel, options or launch have changed since it was measured; "
        "on the GPU run: make record LADDER=scale"
    )


def test_a_changed_include_makes_every_rung_that_has_it_stale(tmp_path):
    for path in scale.FOLDER.glob("*.cu*"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "affine.cuh").write_text("#pragma once\n__device__ float affine(float x) { return x; }\n")
    edited = dataclasses.replace(scale.ladder, folder=tmp_path)
    assert {s.name for s in stale_points(made.record(), edited)} == {"plain", "vector"}


def without(record, drop):
    return dataclasses.replace(record, points=tuple(p for p in record.points if not drop(p)))


def test_points_that_are_missing_or_gone_are_stale():
    record = made.record()
    (stale,) = stale_points(without(record, lambda p: p.name == "vector"), scale.ladder)
    assert (stale.name, stale.reason) == ("vector", "missing in the regime 'cold'")
    missing_batch = without(record, lambda p: p.name == "library" and p.regime == "batch" and p.size["n"] == 1023)
    (stale,) = stale_points(missing_batch, scale.ladder)
    assert (stale.name, stale.size, stale.reason) == ("library", "n=1023", "missing in the regime 'batch'")
    shorter = dataclasses.replace(scale.ladder, rungs=scale.ladder.rungs[:2])
    assert {(s.name, s.reason) for s in stale_points(record, shorter)} == {("twice", "the ladder has it no more")}
    assert [s.name for s in stale_points(None, scale.ladder)] == ["plain", "vector", "twice"]


def test_other_work_is_stale():
    problem = dataclasses.replace(scale.problem, flops=lambda s: 3 * s["n"])
    counted = dataclasses.replace(scale.ladder, problem=problem)
    assert "counts other FLOPs" in stale_points(made.record(), counted)[0].reason


# What chapters read from records.


@pytest.fixture
def times():
    return Timings(scale.ladder, "cold", made.record())


def test_times_ratios_and_shares(times):
    assert times.seconds("plain") == pytest.approx(4e-6)
    assert times.ratio("vector", "plain") == pytest.approx(2.0)
    assert times.rate("vector") == pytest.approx(8 * 1024 / 2e-6)
    assert times.rate("vector", per="flops") == pytest.approx(2 * 1024 / 2e-6)
    # 8192 bytes at 8.192 GB/s take 1 us.
    assert times.limit_s() == pytest.approx(1e-6) and times.of_limit("vector") == pytest.approx(0.5)
    assert times.best() == "vector" and times.best({"n": 1023}) == "plain"


def test_what_was_not_measured_is_named(times):
    with pytest.raises(LookupError, match="no cold time of 'vector' at n=1023; there are: library at n=1023; "):
        times.seconds("vector", {"n": 1023})
    with pytest.raises(LookupError, match="scale was not measured on this machine"):
        times.seconds("plain", mine=True)


def test_my_own_times_stand_beside_the_reference():
    slower = made.record()
    mine = dataclasses.replace(
        slower, points=tuple(dataclasses.replace(p, median_s=2 * p.median_s) for p in slower.points)
    )
    both = Timings(scale.ladder, "cold", made.record(), mine)
    assert both.seconds("plain", mine=True) == pytest.approx(2 * both.seconds("plain"))
    assert both.points is mine.points and both.ratio("vector", "plain", mine=True) == pytest.approx(2.0)


def interval(p25, median, p75):
    return dataclasses.replace(made.record().points[0], p25_s=p25, median_s=median, p75_s=p75)


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ((1.0, 1.1, 1.2), (1.3, 1.4, 1.5), "faster"),
        ((1.3, 1.4, 1.5), (1.0, 1.1, 1.2), "slower"),
        ((1.0, 1.1, 1.2), (1.0, 1.15, 1.3), "same"),
        ((1.0, 1.1, 1.2), (1.15, 1.3, 1.5), "ambiguous"),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0), "same"),
    ],
)
def test_verdicts(a, b, verdict):
    assert verdict_of(interval(*a), interval(*b)) == verdict


def test_an_unknown_regime_is_refused():
    with pytest.raises(ValueError, match="regime is 'hot'; expected one of cold, batch"):
        timings(scale.ladder, "hot")
