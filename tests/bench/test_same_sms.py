"""Expectations for a GPU with the same SMs and another memory, and the table that chapters show of them."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import data_sheets, records, same_sms
from climb.bench.profiling import HardwareCounters
from climb.bench.same_sms import SECOND_GPU, expect
from climb.display import two_gpus
from climb.display.style import alt_text
from climb.display.two_gpus_figure import two_gpus_figure

#: A problem of 1024 floats moves its 8192 bytes in one microsecond, by the ceiling of the made-up record.
MEMORY_S = 1e-6
RATIO = 4800 / 3350


def save(folder, seconds, name="NVIDIA H200", sha=None):
    """Save a record of the tiny ladder whose kernels take ``seconds``, at 1024 floats."""
    points = tuple(
        made.point(p.name, p.kind, p.size, p.regime, seconds=seconds.get(p.name)) for p in made.record().points
    )
    if sha:
        points = tuple(replace(p, source_sha256=sha) if p.kind == "rung" else p for p in points)
    device = {**made.DEVICE, "name": name}
    records.save_record(replace(made.record(), device=device, points=points), folder / "scale.json")


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """On the book's GPU: ``vector`` at 80 % of the limit of memory, the other kernels below the ratio of bandwidths."""
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    save(tmp_path / records.BOOK_GPU, {"vector": MEMORY_S / 0.8, "library": MEMORY_S / 0.75})
    records.save_ceilings(made.ceilings(), tmp_path / records.BOOK_GPU)
    return tmp_path


def test_best_kernel_takes_longer_by_the_ratio_of_bandwidths(recorded):
    one = expect(scale.ladder, "vector")
    assert one.expected == pytest.approx(RATIO) and one.measured is None and one.off is None


def test_kernel_that_waits_for_something_else_stays_the_same(recorded):
    assert expect(scale.ladder, "plain").expected == 1


def test_no_kernel_comes_closer_to_the_limit_than_the_best_one(recorded):
    assert expect(scale.ladder, "library").expected_s == pytest.approx(MEMORY_S * RATIO / 0.8)


def test_ladder_far_from_the_limit_of_memory_is_held_to_the_limit_itself(recorded):
    save(recorded / records.BOOK_GPU, {})
    one = expect(scale.ladder, "vector")
    assert one.here_s == pytest.approx(2 * MEMORY_S) and one.expected == 1


def test_counted_bytes_replace_the_least_where_they_are_more(recorded, monkeypatch):
    counts = {"dram_bytes_read": 3 * 4096, "dram_bytes_written": 0}
    monkeypatch.setattr(HardwareCounters, "at", lambda self, rung, size: counts)
    monkeypatch.setattr(
        same_sms.profiling, "hardware_counters", lambda ladder, gpu: HardwareCounters(ladder, "", "", "", ())
    )
    copied, read = 2 * 4096 / 8.192e9, 2 * 4096 / 9e9
    assert expect(scale.ladder, "vector").expected_s == pytest.approx((copied + read) * RATIO / 0.8)


def test_measured_ratio_and_its_distance_from_the_expected_one(recorded):
    save(recorded / SECOND_GPU, {"vector": 1.2 * RATIO * MEMORY_S / 0.8}, "NVIDIA H100 80GB HBM3")
    one = expect(scale.ladder, "vector")
    assert one.measured == pytest.approx(1.2 * RATIO) and one.off == pytest.approx(0.2)


def test_time_of_other_code_is_not_compared(recorded):
    save(recorded / SECOND_GPU, {}, "NVIDIA H100 80GB HBM3", sha="0" * 64)
    assert expect(scale.ladder, "vector").measured_s is None
    assert expect(scale.ladder, "library").measured_s is not None


def test_kernel_without_a_time_and_gpu_with_other_sms_are_refused(recorded):
    with pytest.raises(LookupError, match="scale has no cold time of 'scalar'"):
        expect(scale.ladder, "scalar")
    with pytest.raises(records.PendingRung, match="scale has no cold time of 'vector' at n=7 on nvidia-h200"):
        expect(scale.ladder, "vector", {"n": 7})
    with pytest.raises(ValueError, match="A100 SXM 80GB has other SMs than H200 SXM"):
        expect(scale.ladder, "vector", target="nvidia-a100-sxm4-80gb")


def test_all_ladders_that_have_a_record_are_expected(recorded, monkeypatch):
    ladders = {
        name: dataclasses.replace(scale.ladder, problem=dataclasses.replace(scale.problem, name=name))
        for name in ("scale", "other", "pending")
    }
    record = records.find_record("scale", folder=recorded / records.BOOK_GPU)
    records.save_record(replace(record, ladder="other"), recorded / records.BOOK_GPU / "other.json")
    monkeypatch.setattr(same_sms, "ladder_names", lambda: list(ladders))
    monkeypatch.setattr(same_sms, "load_ladder", ladders.get)
    found = [(one.ladder, one.name) for one in same_sms.expect_all()]
    names = ("plain", "vector", "twice", "library")
    assert sorted(found) == sorted((ladder, name) for ladder in ("scale", "other") for name in names)
    assert {one.here_s for one in same_sms.expect_all() if one.name == "vector"} == {MEMORY_S / 0.8}


def test_the_two_sheets_differ_in_memory_alone():
    here, there = (data_sheets.sheet_of(folder) for folder in (records.BOOK_GPU, SECOND_GPU))
    differing = {"name", "folder", "bandwidth_gb_s", "l2_mb", "source"}
    known = dataclasses.asdict(there)
    assert {key for key, value in dataclasses.asdict(here).items() if value != known[key]} == differing


def test_times_on_both_are_those_of_each_gpu_s_record(recorded):
    with pytest.raises(records.MissingRecord, match=SECOND_GPU):
        same_sms.timings_on_both(scale.ladder)
    save(recorded / SECOND_GPU, {"vector": MEMORY_S}, "NVIDIA H100 80GB HBM3")
    here, there = same_sms.timings_on_both(scale.ladder)
    assert (here.seconds("vector"), there.seconds("vector")) == (MEMORY_S / 0.8, MEMORY_S)


def test_table_marks_what_is_pending_and_counts_what_came_as_expected(recorded, monkeypatch):
    monkeypatch.setattr(two_gpus, "load_ladder", lambda name: scale.ladder)
    chosen = {"scale": ("plain", "vector", "library")}
    before = two_gpus.two_gpus_table(chosen).text
    assert before.splitlines()[0].endswith(": expected, not measured yet") and before.count("pending") == 3
    assert "rl-two-gpus" in two_gpus.two_gpus_table(chosen).html
    save(recorded / SECOND_GPU, {"vector": RATIO * MEMORY_S / 0.8, "library": 5e-6}, "NVIDIA H100 80GB HBM3")
    after = two_gpus.two_gpus_table(chosen, sizes={"scale": {"n": 1024}}).text.splitlines()
    assert after[0].endswith(": 2 of 3 within 10 % of what was expected")
    assert after[3].split() == ["plain,", "n=1024", "4.00", "µs", "4.00", "µs", "1.00", "(1.00)"]
    ratios = two_gpus.gpu_ratios(chosen)
    assert ratios == pytest.approx({"plain": 1.0, "vector": RATIO, "library": 3.75})
    assert after[5].split()[-2:] == ["3.75", f"({RATIO * 0.75 / 0.8:.2f})"]


def test_table_of_a_ladder_that_nobody_has_recorded_is_pending(recorded, monkeypatch):
    monkeypatch.setattr(two_gpus, "load_ladder", lambda name: scale.ladder)
    (recorded / records.BOOK_GPU / "scale.json").unlink()
    shown = two_gpus.two_gpus_table({"scale": ("plain",)}).text.splitlines()
    assert shown[-1].split() == ["plain", "pending", "pending"]
    with pytest.raises(LookupError, match="scalar"):
        two_gpus.two_gpus({"scale": ("scalar",)})


def test_figure_draws_what_both_gpus_have_recorded(recorded):
    found = [expect(scale.ladder, name) for name in ("plain", "vector", "library")]
    with pytest.raises(ValueError, match="no kernel has a time on nvidia-h100"):
        two_gpus_figure(found)
    save(recorded / SECOND_GPU, {"vector": RATIO * MEMORY_S / 0.8, "library": 5e-6}, "NVIDIA H100 80GB HBM3")
    found = [expect(scale.ladder, name) for name in ("plain", "vector", "library")]
    figure = two_gpus_figure(found, {("scale", "vector"): "left"})
    assert alt_text(figure).startswith("3 dots, squares for libraries, along a line")
    assert "rises to 1.43" in alt_text(figure) and "2 dots are within 10 %" in alt_text(figure)
    assert [text.get_text() for text in figure.axes[0].texts] == ["scale: vector"]
