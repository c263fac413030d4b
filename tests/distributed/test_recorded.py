"""The committed records of several GPUs: of their schema, fresh, and as good as the book promises."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from climb.bench import records
from climb.bench.record_folders import SEVERAL, folders
from climb.distributed import recorded
from climb.distributed.registry import load_shared_ladder, shared_ladder_names

FOLDERS = [folder for folder in records.RECORDS.iterdir() if folder.is_dir() and SEVERAL.search(folder.name)]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_folder_can_be_shown(folder: Path) -> None:
    assert recorded.problems(folder) == []
    assert folder not in folders()


@pytest.mark.parametrize("name", shared_ladder_names())
def test_no_point_is_stale(name: str) -> None:
    """Pending points are listed as warnings."""
    ladder, record = load_shared_ladder(name), recorded.shared_record(name)
    for text in recorded.pending_points(ladder, record):
        warnings.warn(f"pending: {name} {text}", stacklevel=1)
    assert record is None or recorded.stale_points(ladder, record) == []


def test_changed_plan_makes_its_points_stale_and_a_new_size_is_pending(tmp_path: Path) -> None:
    ladder, record = load_shared_ladder("halo3d"), recorded.shared_record("halo3d")
    if record is None:
        pytest.skip("halo3d is pending")
    before = recorded.stale_points(ladder, record)
    shorter = replace(ladder["exchange"], plan=lambda place, size: ladder["exchange"].plan(place, size)[:-1])
    rungs = tuple(shorter if rung.name == "exchange" else rung for rung in ladder.rungs)
    found = recorded.stale_points(replace(ladder, rungs=rungs), record)
    assert set(found) - set(before) and all(text.startswith("exchange at") for text in set(found) - set(before))
    fewer = msgspec.structs.replace(record, points=tuple(p for p in record.points if p.name != "gather"))
    assert any(text.startswith("gather at") for text in recorded.pending_points(ladder, fewer))
    records.save_record(msgspec.structs.replace(record, ladder="exchange"), tmp_path / "nvidia-h200-x2" / "halo3d.json")
    assert "it is the record of exchange" in recorded.problems(tmp_path / "nvidia-h200-x2")[0]


def speedup(name: str, position: int, rung: str | None = None) -> float:
    """One GPU's time at a headline size over that of a rung, by default the fastest on two GPUs."""
    record = recorded.shared_record(name)
    if record is None:
        pytest.skip(f"{name} is pending")
    size = load_shared_ladder(name).problem.headline[position]
    points = [p for p in record.points if (p.size, p.regime, p.gpus) == (dict(size), "cold", 2)]
    best = min(p.median_s for p in points if rung is None or p.name == rung)
    return record.find("one_gpu", size, "cold").median_s / best


def test_strong_scaling_of_the_volume_on_two_gpus() -> None:
    assert speedup("halo3d", 0) >= 1.95


def test_weak_scaling_of_the_volume_on_two_gpus() -> None:
    record = recorded.shared_record("halo3d")
    if record is None:
        pytest.skip("halo3d is pending")
    strong, weak, _ = load_shared_ladder("halo3d").problem.headline
    best = min(p.median_s for p in record.points if (p.size, p.regime, p.gpus) == (dict(weak), "cold", 2))
    assert record.find("one_gpu", strong, "cold").median_s / best >= 0.98


def test_product_on_two_gpus() -> None:
    assert speedup("split_matmul", 0) >= 1.9
    assert speedup("split_tgemm", 0) >= 1.9


def test_second_gpu_still_pays_with_the_fast_kernel_and_both_together_make_ten_of_the_slow_one() -> None:
    assert speedup("halo_fft", 0) >= 1.8
    slow, fast = (recorded.shared_record(name) for name in ("halo3d", "halo_fft"))
    assert slow is not None and fast is not None
    size = load_shared_ladder("halo_fft").problem.headline[0]
    best = min(p.median_s for p in fast.points if (p.size, p.regime, p.gpus) == (dict(size), "cold", 2))
    assert slow.find("one_gpu", size, "cold").median_s / best >= 9.5


def test_layer_on_two_gpus_pays_from_the_first_of_vgg_on_and_not_for_the_second() -> None:
    assert speedup("split_classifier", 0) > 1.5
    assert speedup("split_classifier", 1) < 1
