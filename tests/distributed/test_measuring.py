"""Measuring on all ranks, with a clock that is made up: what is timed, verified, kept, and written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from climb.bench import records
from climb.bench.checking import WrongResult
from climb.bench.cuda import cp
from climb.bench.records import schema
from climb.bench.records.store import load
from climb.distributed import measuring, record
from climb.distributed.measuring import Measurer, Timed
from climb.distributed.rank import connect
from climb.distributed.record import folder_name, save
from climb.distributed.registry import load_shared_ladder
from climb.distributed.timelines import TimelineRecord, timeline_path
from climb.fake_cupy.ranks import RankFailed, run_ranks

pytestmark = pytest.mark.emulated
LADDER = load_shared_ladder("exchange")
HALO = load_shared_ladder("halo3d")
SIZE = {"n": 4}
SIZES: dict[str, Any] = {"exchange": SIZE}
DEVICE: dict[str, Any] = {
    "name": "NVIDIA H200",
    "compute_capability": "9.0",
    "sm_count": 132,
    "l2_bytes": 1,
    "driver": None,
    "cuda": "13.0",
    "nvrtc": "12.9",
    "cupy": "14",
    "clocks": {"max_sm_mhz": 1980},
    "gpus": 2,
    "link": "NV18",
    "nccl": "2.28.9",
}


@pytest.fixture(autouse=True)
def made_up_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every time is (1 + rank) milliseconds, and caches need no cleaning."""
    monkeypatch.setattr(measuring, "CacheCleaner", lambda: lambda: None)
    monkeypatch.setattr(measuring, "HELD_NS", 0)
    monkeypatch.setattr(measuring, "BATCH", 2)
    monkeypatch.setattr(measuring, "WARM", 1)
    monkeypatch.setattr(cp.cuda, "get_elapsed_time", lambda start, stop: 1.0 + cp.cuda.runtime.getDevice())


def measured(name: str, ladder: Any = LADDER) -> list[Timed | None]:
    size = SIZES[ladder.name]
    return run_ranks(lambda rank: Measurer(ladder, connect(), samples=2).measure(name, size, timeline=True), 2)


def test_sample_is_the_time_of_the_slowest_rank() -> None:
    zero, one = measured("nccl")
    assert zero.points == one.points
    cold, batch = zero.points
    assert cold.samples == (0.002,) * 2 and cold.gpus == 2 and cold.bytes == 16
    assert batch.samples == (0.002 / measuring.BATCH,)
    assert zero.timeline == [("exchange", "message", "compute", 0.001, 0.001)]
    schema.check_point(cold, "cold")
    schema.check_point(batch, "batch")


def test_rung_of_one_gpu_runs_on_rank_0() -> None:
    ladder = replace(LADDER, rungs=(replace(LADDER["nccl"], alone=True),))
    zero, one = measured("nccl", ladder)
    assert one is None and zero.points[0].gpus == 1 and zero.points[0].samples == (0.001,) * 2


def test_rung_that_is_wrong_is_not_measured() -> None:
    wrong = replace(LADDER["nccl"], plan=lambda place, size: ())
    with pytest.raises(RankFailed, match=r"rank . of 2: target is wrong in 4 of 4 elements") as failed:
        measured("nccl", replace(LADDER, rungs=(wrong,)))
    assert isinstance(failed.value.error, WrongResult)


def test_output_that_changes_after_it_was_verified_is_found() -> None:
    execution = measuring.Execution

    class Forgets(execution):
        """Writes something else from the second run on."""

        def __call__(self) -> None:
            super().__call__()
            self.ran = getattr(self, "ran", 0) + 1
            if self.ran > 1:
                self.arrays["target"][0] = -1.0

    measuring.Execution = Forgets
    try:
        with pytest.raises(RankFailed, match=r"rank .: target has changed"):
            measured("nccl")
    finally:
        measuring.Execution = execution


@pytest.mark.thorough
def test_many_outputs_are_compared_in_spots_and_then_bit_by_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"planes": 12, "n": 4, "k": 3, "filters": 1}
    monkeypatch.setattr(measuring, "MANY", 1)
    monkeypatch.setitem(SIZES, "halo3d", size)
    zero, _ = measured("exchange", HALO)
    assert 0 < zero.points[0].max_rel_error < HALO.problem.tolerance(size)
    spots = HALO.problem.spots
    off = replace(HALO.problem, spots=lambda inputs, size: (spots(inputs, size)[0], {"target": np.zeros((12, 4, 4))}))
    with pytest.raises(RankFailed, match=r"'one_gpu' at .* target is wrong in"):
        measured("exchange", replace(HALO, problem=off))
    late = replace(HALO["exchange"], plan=lambda place, size: HALO["exchange"].plan(place, size)[:-1])
    rungs = tuple(late if rung.name == "exchange" else rung for rung in HALO.rungs)
    with pytest.raises(RankFailed, match="target is not what one GPU computes"):
        measured("exchange", replace(HALO, rungs=rungs))


@pytest.mark.thorough
def test_outputs_that_cutting_rounds_differently_are_compared_within_the_tolerance(monkeypatch) -> None:
    size = {"planes": 12, "n": 4, "k": 3, "filters": 1}
    monkeypatch.setattr(measuring, "MANY", 1)
    monkeypatch.setitem(SIZES, "halo3d", size)
    whole, rounded = measuring.Measurer._whole, 1 + 2.0**-22

    def differs(measurer: Measurer, size: Any) -> dict[str, Any]:
        return {name: array * np.float32(rounded) for name, array in whole(measurer, size).items()}

    monkeypatch.setattr(measuring.Measurer, "_whole", differs)
    with pytest.raises(RankFailed, match="target is not what one GPU computes"):
        measured("exchange", HALO)
    close = replace(HALO, problem=replace(HALO.problem, same_bits=False))
    zero, _ = measured("exchange", close)
    assert 2.0**-23 < zero.points[0].max_rel_error < HALO.problem.tolerance(size)
    rounded = 1.01
    with pytest.raises(RankFailed, match="target is not what one GPU computes"):
        measured("exchange", close)


def test_record_is_written_and_read_again(tmp_path: Path) -> None:
    found = [measured(name)[0] for name in ("nccl", "peer_loads")]
    folder = tmp_path / folder_name(DEVICE)
    assert folder.name == "nvidia-h200-x2"
    made = records.load_record("exchange", folder=save(LADDER, found, DEVICE, folder).parent)
    assert made.device["link"] == "NV18" and [point.gpus for point in made.points] == [2] * 4
    lines = load(timeline_path("exchange", folder), TimelineRecord)
    assert [one.name for one in lines.points] == ["nccl", "peer_loads"]
    assert made.points[0].source_sha256 == LADDER.sha256("nccl", 2, SIZE) == lines.points[0].source_sha256


def test_link_is_read_from_the_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\x1b[0m\nGPU0\t X \tNV18\t0-31\nGPU1\tNV18\t X \t0-31\n"
    monkeypatch.setattr(record.hardware, "output", lambda *command: matrix)
    assert record.link() == "NV18"
    monkeypatch.setattr(record.hardware, "output", lambda *command: None)
    assert record.link() == ""
