"""Predictions for GPUs without records: the same limit and shares, from the data sheets' numbers."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace
from tiny_ladder import made, scale

from climb.bench import predictions, records
from climb.bench.data_sheets import SHEETS, sheet_of
from climb.bench.predictions import predict, predicted_ceilings
from climb.bench.records import Ceilings
from climb.display import gpu_tables

H200 = sheet_of(records.BOOK_GPU)
SIZE = {"n": 1024}


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """The tiny ladder's record on the book's GPU, with a ceiling that makes ``vector`` reach 50 % of its limit."""
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    records.save_record(made.record(), tmp_path / records.BOOK_GPU / "scale.json")
    records.save_ceilings(made.ceilings(), tmp_path / records.BOOK_GPU)
    return tmp_path


def sheet(**changes):
    return dataclasses.replace(H200, **{"name": "X", "folder": "x", **changes})


def test_the_same_data_sheet_predicts_the_recorded_time(recorded):
    one = predict(scale.ladder, sheet())
    assert one.rung == "vector" and one.seconds == pytest.approx(made.SECONDS["vector"])
    assert one.limited_by == "memory" and one.error is None


def test_time_of_memory_goes_with_bandwidth_and_not_with_arithmetic(recorded):
    half = predict(scale.ladder, sheet(bandwidth_gb_s=H200.bandwidth_gb_s / 2, fp32_tflop_s=2 * H200.fp32_tflop_s))
    assert half.seconds == pytest.approx(2 * made.SECONDS["vector"])


def test_arithmetic_can_become_the_limit(recorded):
    one = predict(scale.ladder, sheet(fp32_tflop_s=H200.fp32_tflop_s / 1e6))
    assert one.limited_by == "FMA pipe" and one.seconds > made.SECONDS["vector"]


def test_the_floor_is_taken_over_and_other_pipes_are_not():
    known = Ceilings({"floor_us": 2.0, "copy_gb_s": 4000.0, "kept_mb": 20.0, "fma_tflop_s": 60.0, "shared_tb_s": 30.0})
    target = sheet(bandwidth_gb_s=H200.bandwidth_gb_s / 4, fp32_tflop_s=H200.fp32_tflop_s * 2, l2_mb=H200.l2_mb / 2)
    assert predicted_ceilings(known, H200, target) == pytest.approx(
        {"floor_us": 2.0, "copy_gb_s": 1000.0, "kept_mb": 10.0, "fma_tflop_s": 120.0}
    )


def test_prediction_is_compared_where_the_gpu_has_a_record(recorded):
    twice = replace(made.record(seconds=None), device={**made.DEVICE, "name": "X"})
    points = tuple(made.point(p.name, p.kind, p.size, p.regime, seconds=2 * made.SECONDS[p.name]) for p in twice.points)
    records.save_record(replace(twice, points=points), recorded / "x" / "scale.json")
    one = predict(scale.ladder, sheet())
    assert one.measured_s == pytest.approx(2 * one.seconds) and one.error == pytest.approx(-0.5)


def test_what_a_data_sheet_does_not_tell_is_not_predicted(recorded, monkeypatch):
    integers = dataclasses.replace(scale.problem, operations=lambda size: {"int32": 10})
    assert predict(dataclasses.replace(scale.ladder, problem=integers), sheet()) is None
    monkeypatch.setattr(predictions, "LEAST_SHARE", 0.51)
    assert predict(scale.ladder, sheet()) is None
    assert predict(scale.ladder, sheet(), origin="nvidia-t4") is None


def test_a_rung_that_the_gpu_cannot_run_is_passed_over(recorded):
    rungs = tuple(dataclasses.replace(r, capability="9.0") if r.name == "vector" else r for r in scale.ladder.rungs)
    monkey = dataclasses.replace(scale.ladder, rungs=rungs)
    found = predict(monkey, sheet(capability="80"))
    assert found is None or found.rung == "plain"


def test_every_data_sheet_has_a_source_and_plausible_numbers():
    assert len({one.folder for one in SHEETS}) == len({one.name for one in SHEETS}) == len(SHEETS)
    for one in SHEETS:
        assert one.source.startswith("NVIDIA ") and 200 < one.bandwidth_gb_s < 2e4 and 5 < one.fp32_tflop_s < 200
    with pytest.raises(LookupError, match="no data sheet of nvidia-t4; there are nvidia-h200, "):
        sheet_of("nvidia-t4")


def test_tables_show_each_gpu_and_mark_what_is_predicted(monkeypatch):
    for module in (predictions, gpu_tables):
        monkeypatch.setattr(module, "ladder_names", lambda: ("saxpy", "conv2d", "reduction"))
    shown = gpu_tables.predictions_table()
    assert "Predicted, not measured" in shown.text
    assert all(one.name in shown.text for one in gpu_tables.unrecorded())
    assert "H200" not in [one.name for one in gpu_tables.unrecorded()]
    assert records.BOOK_GPU in gpu_tables.gpu_shares_table().text
