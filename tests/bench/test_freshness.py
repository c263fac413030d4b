"""Stale points of a record, and pending rungs: new, without any point, and without a time."""

from __future__ import annotations

import dataclasses
import warnings
from types import SimpleNamespace

import msgspec
import pytest
from tiny_ladder import made, scale

from climb.bench import events, records, report
from climb.bench.records import PendingRung, Record, pending_peers, pending_rungs, save_record, stale_points
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.timings import Timings, timings
from climb.cli import main

RECORDED = sorted(path.parent.name for path in records.RECORDS.glob("*/*.json"))


@pytest.mark.parametrize("name", ladder_names())
def test_no_point_of_the_book_is_stale(name):
    """Fails with what to run when a kernel was changed after it was measured; lists rungs without a record."""
    record, ladder = records.find_record(name), load_ladder(name)
    stale = stale_points(record, ladder)
    assert not stale, "\n".join(str(point) for point in stale)
    peers = pending_peers(record, ladder) if record else ()
    for rung in (*pending_rungs(record, ladder), *peers):
        warnings.warn(str(records.Pending(name, rung, records.DEFAULT_GPU)), stacklevel=1)


def test_a_rung_that_is_not_swept_is_expected_at_the_headline_alone():
    problem = dataclasses.replace(scale.problem, sweep=({"n": 4096},))
    rungs = (scale.plain, dataclasses.replace(scale.twice, swept=False))
    ladder = dataclasses.replace(scale.ladder, problem=problem, rungs=rungs, peers=())
    names = {n: {name for _, name, size in records.expected_points(ladder) if size["n"] == n} for n in (1024, 4096)}
    assert names == {1024: {"plain", "twice"}, 4096: {"plain"}}


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


def as_measured(ladder, name: str, rung: str) -> SimpleNamespace:
    """A point of a record that calls today's ``rung`` by another ``name``."""
    (size,) = ladder.problem.headline[:1]
    return SimpleNamespace(name=name, size=size, source_sha256=ladder[rung].sha256(size))


def test_a_renamed_rung_is_recognised_by_its_code_and_only_by_it():
    ladder = scale.ladder
    old, other = as_measured(ladder, "before", "vector"), as_measured(ladder, "plain", "plain")
    assert records.todays_names([old, other], ladder) == {"before": "vector"}
    assert records.todays_names([old, as_measured(ladder, "vector", "vector")], ladder) == {}  # has a point of its own
    changed = SimpleNamespace(**{**vars(old), "source_sha256": "0" * 64})
    assert records.todays_names([changed], ladder) == {}
    assert records.todays_names([old, changed], ladder) == {}  # one of its points is stale, so it is reported
    twin = dataclasses.replace(ladder["vector"].rung, name="twin", source=str(ladder["vector"].path))
    assert records.todays_names([old], dataclasses.replace(ladder, rungs=(*ladder.rungs, twin))) == {}  # which of two?


def test_a_record_under_a_rungs_old_name_is_fresh_and_has_its_times(tmp_path):
    text = records.record_path("saxpy").read_text(encoding="utf-8")
    assert text.count('"name": "float4"') > 1
    (tmp_path / "saxpy.json").write_text(text.replace('"name": "float4"', '"name": "before"'), encoding="utf-8")
    found, known = records.load_record("saxpy", folder=tmp_path), records.load_record("saxpy")
    assert stale_points(found, load_ladder("saxpy")) == []
    assert "float4" not in pending_rungs(found, load_ladder("saxpy"))  # a rung that was added since may be pending
    assert [point.name for point in found.points] == [point.name for point in known.points]


def without(record: Record, drop) -> Record:
    """The record without the points for which ``drop`` is true."""
    return msgspec.structs.replace(record, points=tuple(p for p in record.points if not drop(p)))


def test_a_missing_batch_point_is_stale():
    record = without(made.record(), lambda p: (p.name, p.regime, p.size["n"]) == ("library", "batch", 1023))
    (stale,) = stale_points(record, scale.ladder)
    assert (stale.name, stale.size, stale.reason) == ("library", "n=1023", "missing in the regime 'batch'")


def test_a_rung_that_lacks_one_size_is_stale_and_not_pending():
    record = without(made.record(), lambda p: p.name == "plain" and p.size["n"] == 1023)
    (stale,) = stale_points(record, scale.ladder)
    assert (stale.name, stale.size, stale.reason) == ("plain", "n=1023", "missing in the regime 'cold'")
    assert pending_rungs(record, scale.ladder) == ()


@pytest.mark.parametrize("regime", ["cold", "batch"])
def test_a_rung_that_lacks_one_regime_is_stale_and_not_pending(regime):
    record = without(made.record(), lambda p: (p.name, p.regime) == ("vector", regime))
    assert [(s.name, s.reason) for s in stale_points(record, scale.ladder)] == [
        ("vector", f"missing in the regime '{regime}'")
    ]
    assert pending_rungs(record, scale.ladder) == ()


def test_a_peer_without_any_point_is_pending_and_not_stale():
    record = without(made.record(), lambda p: p.kind == "peer")
    assert pending_peers(record, scale.ladder) == ("library",)
    assert stale_points(record, scale.ladder) == []


def test_a_peer_that_lacks_one_size_is_stale_unless_the_record_says_why():
    record = without(made.record(), lambda p: (p.name, p.size["n"]) == ("library", 1023))
    (stale,) = stale_points(record, scale.ladder)
    assert (stale.name, stale.size, stale.reason) == ("library", "n=1023", "missing in the regime 'cold'")
    assert pending_peers(record, scale.ladder) == ()
    explained = msgspec.structs.replace(record, skipped=(records.Skipped("library", {"n": 1023}, "n is odd"),))
    assert stale_points(explained, scale.ladder) == []


def test_a_peer_that_was_skipped_everywhere_is_neither_pending_nor_stale():
    record = without(made.record(), lambda p: p.kind == "peer")
    skipped = tuple(records.Skipped("library", dict(size), "not installed") for size in scale.problem.recorded)
    record = msgspec.structs.replace(record, skipped=skipped)
    assert pending_peers(record, scale.ladder) == () and stale_points(record, scale.ladder) == []


def test_points_of_a_rung_that_is_gone_are_stale():
    shorter = dataclasses.replace(scale.ladder, rungs=scale.ladder.rungs[:2])
    found = stale_points(made.record(), shorter)
    assert {(s.name, s.size, s.reason) for s in found} == {
        ("twice", "n=1024", "it is no longer in the ladder"),
        ("twice", "n=1023", "it is no longer in the ladder"),
    }
    only_batch = without(made.record(), lambda p: p.name == "twice" and p.regime == "cold")
    assert {s.name for s in stale_points(only_batch, shorter)} == {"twice"}


def changed_in(regime: str, **fields) -> Record:
    """The record in which the points of ``vector`` in one regime hold other fields."""
    points = tuple(
        msgspec.structs.replace(p, **fields) if (p.name, p.regime) == ("vector", regime) else p
        for p in made.record().points
    )
    return msgspec.structs.replace(made.record(), points=points)


@pytest.mark.parametrize("regime", ["cold", "batch"])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source_sha256": "0" * 64}, "its kernel, options or launch have changed since it was measured"),
        ({"flops": 1}, "the problem counts other FLOPs or bytes than when it was measured"),
        ({"bytes": 1}, "the problem counts other FLOPs or bytes than when it was measured"),
        ({"kind": "peer"}, "recorded as a peer"),
    ],
)
def test_a_point_that_is_stale_in_one_regime_alone_is_reported(regime, fields, reason):
    """Both regimes hold the hash and the work of what was measured: a look at the first alone would miss the second."""
    (stale,) = stale_points(changed_in(regime, **fields), scale.ladder)
    assert (stale.name, stale.size) == ("vector", "n=1024") and stale.reason.startswith(reason)


def test_other_work_is_stale():
    problem = dataclasses.replace(scale.problem, flops=lambda s: 3 * s["n"])
    counted = dataclasses.replace(scale.ladder, problem=problem)
    assert "counts other FLOPs" in stale_points(made.record(), counted)[0].reason


# A rung without a record.


@pytest.fixture
def longer(tmp_path):
    """The tiny ladder with one more rung, in a folder of its own, and the record that does not know it."""
    for path in scale.FOLDER.glob("*.cu*"):
        (tmp_path / path.name).write_text(path.read_text())
    (tmp_path / "dummy.cu").write_text((tmp_path / "plain.cu").read_text())
    dummy = dataclasses.replace(scale.plain, name="dummy", source="dummy.cu")
    return dataclasses.replace(scale.ladder, folder=tmp_path, rungs=(*scale.ladder.rungs, dummy))


def test_a_new_rung_is_pending_and_nothing_is_stale(longer):
    assert pending_rungs(made.record(), longer) == ("dummy",)
    assert stale_points(made.record(), longer) == []


def test_a_stale_point_after_a_pending_rung_is_reported(longer):
    first = dataclasses.replace(longer, rungs=(longer.rungs[-1], *longer.rungs[:-1]))
    assert first.names[0] == "dummy"
    (lacking,) = stale_points(without(made.record(), lambda p: p.name == "twice" and p.size["n"] == 1023), first)
    assert (lacking.name, lacking.size) == ("twice", "n=1023")


def test_a_ladder_without_a_record_is_pending_as_a_whole(longer, tmp_path):
    assert stale_points(None, longer) == []
    assert pending_rungs(None, longer) == records.pending(longer, folder=tmp_path / "none") == longer.names
    empty = records.empty_record("scale")
    assert {name: value for name, value in empty.device.items() if value} == {"name": records.DEFAULT_GPU}
    assert pending_rungs(empty, longer) == longer.names


def test_a_rung_that_no_recorded_size_fits_is_not_pending(longer):
    refused = dataclasses.replace(longer.rungs[-1], requires=lambda size: "no size at all")
    assert pending_rungs(made.record(), dataclasses.replace(longer, rungs=(*longer.rungs[:-1], refused))) == ()


def test_a_measured_rung_is_no_longer_pending(longer, tmp_path):
    save_record(made.record(), tmp_path / "scale.json")
    assert records.pending(longer, folder=tmp_path) == ("dummy",)
    record = made.record(longer, seconds={"dummy": 1e-6})
    save_record(record, tmp_path / "scale.json")
    assert records.pending(longer, folder=tmp_path) == () and stale_points(record, longer) == []


def test_a_time_of_a_pending_rung_cannot_be_cited(longer):
    times = Timings(longer, "cold", made.record())
    assert times.pending == ("dummy",)
    for cited in (
        lambda: times.seconds("dummy"),
        lambda: times.rate("dummy"),
        lambda: times.ratio("plain", "dummy"),
        lambda: times.ratio("dummy", "plain"),
        lambda: times.of_limit("dummy"),
        lambda: times.compare("plain", "dummy"),
    ):
        with pytest.raises(PendingRung) as caught:
            cited()
        assert str(caught.value) == (
            "scale 'dummy' is pending: it has no time on NVIDIA H200 yet; on that GPU run: make record LADDER=scale"
        )
    assert times.best() == "vector" and times.ratio("vector", "plain") == pytest.approx(2.0)


def test_a_misspelt_rung_is_not_pending(longer):
    with pytest.raises(LookupError, match="no cold time of 'dumy'") as caught:
        Timings(longer, "cold", made.record()).seconds("dumy")
    assert not isinstance(caught.value, PendingRung)


def test_a_ladder_without_a_record_has_timings_that_cite_nothing(longer, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    with pytest.raises(records.MissingRecord, match="no record of any ladder on nvidia-h200"):
        timings(longer)
    other = dataclasses.replace(longer, problem=dataclasses.replace(longer.problem, name="other"))
    save_record(made.record(), tmp_path / "nvidia-h200" / "scale.json")
    times = timings(other)
    assert times.pending == other.names and times.mine is None
    with pytest.raises(PendingRung, match="other 'plain' is pending: it has no time on nvidia-h200 yet"):
        times.seconds("plain")
    with pytest.raises(PendingRung):
        times.best()


def test_the_report_names_pending_rungs_and_never_a_time_of_them(longer):
    first, _ = report.rows_of(longer, made.record())
    assert (first.state, first.pending, first.best.name) == ("fresh", ("dummy",), "vector")
    line = report.table([first]).splitlines()[2]
    assert line.endswith("| fresh, pending: dummy: `make record LADDER=scale` |") and "2.00 µs" in line
    for row in report.rows_of(longer, None):
        assert (row.state, row.best, row.of_limit) == ("pending", None, None)
        assert report.table([row]).splitlines()[2].endswith(f"{7 * '|  '}| pending: `make record LADDER=scale` |")


def test_the_check_accepts_pending_rungs_and_lists_them(longer, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    monkeypatch.setattr(report, "README", tmp_path / "README.md")
    monkeypatch.setattr(report, "ladder_names", lambda: ("scale",))
    monkeypatch.setattr(report, "load_ladder", lambda name: longer)
    monkeypatch.setattr(events, "pending_cells", lambda gpu: [])
    report.README.write_text("<!-- report -->\n<!-- /report -->\n", encoding="utf-8")
    save_record(made.record(), tmp_path / "nvidia-h200" / "scale.json")
    assert main(["report", "--readme"]) == 0
    capsys.readouterr()
    assert main(["report", "--check"]) == 0
    assert capsys.readouterr().err == (
        "pending: scale 'dummy' has no record on nvidia-h200; there run: make record LADDER=scale\n"
    )
