"""Records are written whole or not at all, and read only when they follow their schema."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tiny_ladder import made

from climb.bench import records
from climb.bench.records import MissingRecord, RecordError, kinds, load_record, parse_record, save_record
from climb.bench.shown_code import ShownCode
from climb.distributed.timelines import TimelineRecord
from climb.validation import schema

ROOT = Path(__file__).resolve().parents[2]
#: The kind of each committed file, by its place below records/<gpu>.
KIND_OF = {
    "code/*.json": ShownCode,
    "cpu/*.json": kinds.CpuRecord,
    "emulator/agreement.json": schema.AgreementRecord,
    "emulator/clean.json": schema.CleanRecord,
    "emulator/fuzz.json": schema.FuzzRecord,
    "emulator/programs.json": schema.ProgramRecord,
    "emulator/sanitizer.json": schema.SanitizerRecord,
    "emulator/stages.json": schema.StagesRecord,
    "emulator/tensor.json": schema.TensorRecord,
    "emulator/code/*.json": schema.KeptCode,
    "events/*.json": kinds.EventsRecord,
    "hardware/*.json": kinds.HardwareRecord,
    "profiles/divergence.json": schema.DivergenceRecord,
    "profiles/occupancy.json": kinds.OccupancyRecord,
    "repeats/*.json": kinds.RepeatsRecord,
    "spans/*.json": kinds.SpansRecord,
    "search/*.json": kinds.SearchRecord,
    "timelines/*.json": TimelineRecord,
    "tuning/*.json": kinds.TuningRecord,
    "transfers/*.json": kinds.TransfersRecord,
}
FILES = [(path, kind) for place, kind in KIND_OF.items() for path in sorted(records.RECORDS.glob(f"*/{place}"))]


def test_a_record_survives_writing_and_reading(tmp_path):
    record = made.record()
    save_record(record, tmp_path / "deep" / "scale.json")
    assert load_record("scale", folder=tmp_path / "deep") == replace(record, ceilings={})
    records.save_ceilings(made.ceilings(), tmp_path / "deep")
    assert load_record("scale", folder=tmp_path / "deep") == record
    assert records.recorded(tmp_path / "deep") == ["scale"]
    assert "ceilings" not in json.loads((tmp_path / "deep" / "scale.json").read_text())


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

    monkeypatch.setattr(records.store.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_record(replace(made.record(), date="2027-01-01"), path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("field", "message"),
    [("median_s", "median_s is 1.0, but its samples give"), ("regime", "regime is 'hot'; expected one of cold, batch")],
)
def test_a_record_whose_points_contradict_themselves_is_not_loaded(field, message, tmp_path):
    data = broken(**{field: {"median_s": 1.0, "regime": "hot"}[field]})
    (tmp_path / "scale.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(RecordError, match=rf"scale\.json: points\[0\]: {message}"):
        load_record("scale", folder=tmp_path)


def test_a_missing_record_says_what_makes_it(tmp_path):
    with pytest.raises(MissingRecord, match=r"no record of scale on nvidia-h200 .* make record LADDER=scale"):
        load_record("scale", folder=tmp_path)


def broken(**changes):
    data = msgspec.to_builtins(made.record())
    data["points"][0].update(changes)
    return data


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regime": "hot"}, r"points\[0\]: regime is 'hot'; expected one of cold, batch"),
        ({"kind": "ring"}, r"points\[0\]: kind is 'ring'"),
        ({"samples": []}, r"points\[0\]: no samples"),
        ({"samples": [1e-6, 0]}, r"points\[0\]\.samples\[1\]: Expected `float` > 0\.0"),
        ({"samples": [1e-6, -1.0]}, r"points\[0\]\.samples\[1\]: Expected `float` > 0\.0"),
        ({"samples": [float("nan")]}, r"points\[0\]\.samples\[0\]: Expected `float` > 0\.0"),
        ({"samples": [1e-6, float("inf")]}, r"points\[0\]: a sample is inf; expected a positive number"),
        ({"samples": [True]}, r"points\[0\]\.samples\[0\]: Expected `float`, got `bool`"),
        ({"flops": "many"}, r"points\[0\]\.flops: Expected `int`, got `str`"),
        ({"median_s": 1.0}, r"points\[0\]: median_s is 1.0, but its samples give"),
        ({"source_sha256": None}, r"points\[0\]: a rung needs 'source_sha256'"),
        ({"p25_s": 1e-9}, r"points\[0\]: p25_s is 1e-09, but its samples give"),
        ({"p75_s": 1e-9}, r"points\[0\]: p75_s is 1e-09, but its samples give"),
        ({"kind": "peer", "library": None}, r"points\[0\]: a peer needs 'library'"),
        ({"colour": "red"}, r"points\[0\]: Object contains unknown field `colour`"),
        ({"regime": "batch"}, "two points are 'plain' at n=1024, batch"),
    ],
)
def test_a_point_that_breaks_the_schema_is_refused(changes, message):
    with pytest.raises(RecordError, match=message):
        parse_record(broken(**changes))


def test_a_field_that_is_missing_is_named():
    data = broken()
    del data["points"][2]["bytes"]
    with pytest.raises(RecordError, match=r"points\[2\]: Object missing required field `bytes`"):
        parse_record(data)
    data = broken()
    del data["device"]["driver"]
    with pytest.raises(RecordError, match="device: Object missing required field `driver`"):
        parse_record(data)
    with pytest.raises(RecordError, match="Expected `object`, got `array`"):
        parse_record([])


def test_file_that_is_not_json_is_named(tmp_path):
    (tmp_path / "scale.json").write_text('{"ladder": ')
    with pytest.raises(RecordError, match=r"scale\.json"):
        load_record("scale", folder=tmp_path)


def test_record_that_could_not_be_read_again_is_not_written(tmp_path):
    bad = replace(made.record(), points=(replace(made.record().points[0], median_s=-1.0),))
    with pytest.raises(RecordError):
        save_record(bad, tmp_path / "scale.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("path", "kind"), FILES, ids=[f"{path.parent.name}-{path.stem}" for path, _ in FILES])
def test_every_committed_record_of_another_kind_follows_its_schema(path, kind):
    assert records.load(path, kind)


def test_no_committed_file_is_left_out():
    """A record without a schema would be read unchecked."""
    summaries = {"agreement": "compared.json", "programs": "programs_compared.json"}
    known = {path for path, _ in FILES} | {p.with_name(summaries[p.stem]) for p, _ in FILES if p.stem in summaries}
    assert {path for path in records.RECORDS.glob("*/*/**/*.json") if "local" not in path.parts} == known


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.pop("date"), r"hardware\.json: Object missing required field `date`"),
        (lambda data: data["points"][1].pop("counts"), r"points\[1\]: Object missing required field `counts`"),
        (lambda data: data["points"][0]["counts"].update(l2_busy="high"), r"points\[0\]\.counts\[\.\.\.\]: Expected `"),
        (lambda data: data["device"].update(sm_count=1.5), r"device\.sm_count: Expected `int`, got `float`"),
        (lambda data: data.update(colour="red"), "unknown field `colour`"),
    ],
)  # fmt: skip
def test_a_record_of_another_kind_names_file_field_and_expectation(tmp_path, change, message):
    data = json.loads((records.RECORDS / records.DEFAULT_GPU / "hardware" / "transpose.json").read_text("utf-8"))
    change(data)
    path = tmp_path / "hardware.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        records.load(path, kinds.HardwareRecord)


def test_every_kind_is_written_as_it_was_read(tmp_path):
    """The bytes of a committed record, read and saved again, are the same."""
    path = records.RECORDS / records.DEFAULT_GPU / "hardware" / "transpose.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    records.save(tmp_path / "deep" / "again.json", data, kinds.HardwareRecord)
    assert (tmp_path / "deep" / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("wrong", [{"points": [{}]}, {"device": {"name": "a GPU"}}, {"date": float("nan")}])
def test_a_record_of_another_kind_that_could_not_be_read_again_is_not_written(tmp_path, wrong):
    path = records.RECORDS / records.DEFAULT_GPU / "hardware" / "transpose.json"
    data = json.loads(path.read_text(encoding="utf-8")) | wrong
    with pytest.raises(RecordError, match=r"again\.json: not written: "):
        records.save(tmp_path / "again.json", data, kinds.HardwareRecord)
    assert not list(tmp_path.iterdir())
