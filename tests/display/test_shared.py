"""Tables and pictures of ladders over several GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from climb.bench.cuda import backend
from climb.bench.records import Point, Record
from climb.display.shared_figures import messages_figure, timeline_figure
from climb.display.shared_tables import shared_check_table, shared_times_table, steps_table
from climb.display.style import alt_text
from climb.distributed.registry import load_shared_ladder
from climb.distributed.timelines import Timeline, TimelineStep

LADDER = load_shared_ladder("exchange")
HALO = load_shared_ladder("halo3d")
SIZE = {"n": 1024}
DEVICE: Any = {
    "name": "NVIDIA H200", "compute_capability": "9.0", "sm_count": 132, "l2_bytes": 1, "driver": None, "cuda": "13",
    "nvrtc": "12", "cupy": "14", "clocks": {}, "gpus": 2,
}  # fmt: skip


def point(name: str, seconds: float, gpus: int) -> Point:
    return Point(
        name, "rung", SIZE, "float32", "cold", (seconds,), seconds, seconds, seconds, 0, 4096, 0.0,
        source_sha256="x", gpus=gpus,
    )  # fmt: skip


@pytest.mark.emulated
def test_check_table_lists_messages_and_bytes_of_every_rung() -> None:
    assert backend == "emulator"
    text = str(shared_check_table(LADDER, SIZE))
    rows = [line.split() for line in text.splitlines()]
    assert any(row[:1] == ["nccl"] and row[-4:] == ["2", "8.00", "KiB", "right"] for row in rows), text
    assert all(any(row[:1] == [name] for row in rows) for name in LADDER.names)


def test_times_table_has_the_speed_up_over_one_gpu() -> None:
    record = Record("exchange", "2026-11-23", "c", DEVICE, (point("one_gpu", 3e-3, 1), point("nccl", 2e-3, 2)))
    text = str(shared_times_table(LADDER, record, SIZE))
    assert "2.00 ms" in text and "1.50x" in text and "2 x NVIDIA H200, 2026-11-23" in text
    assert "peer_loads" not in text  # not measured


def test_messages_figure_names_each_message() -> None:
    figure = messages_figure(HALO, "exchange", {"planes": 512, "n": 512, "k": 9, "filters": 1})
    assert "rank 0 to rank 1, 4 MiB; rank 1 to rank 0, 4 MiB" in alt_text(figure)
    with pytest.raises(ValueError, match="sends no message"):
        messages_figure(HALO, "peer_loads", {"planes": 512, "n": 512, "k": 9, "filters": 1})


def test_timeline_figure_says_when_steps_end() -> None:
    steps = (
        TimelineStep("halos", "message", "messages", 0.0, 3e-5),
        TimelineStep("conv3d_slab", "kernel", "compute", 0.0, 2e-3),
    )
    figure = timeline_figure([Timeline("overlap", {"n": 1}, "x", steps)])
    assert "overlap: halos to 30.0 µs, conv3d_slab to 2.00 ms" in alt_text(figure)
    with pytest.raises(ValueError, match="no timeline"):
        timeline_figure([])


def test_steps_table_has_a_row_for_each_step_of_a_rank() -> None:
    size = {"planes": 512, "n": 512, "k": 9, "filters": 1}
    text = str(steps_table(HALO, "overlap", size, rank=1))
    assert len(HALO.plans("overlap", 2, size)[1]) == text.count(" compute ") + text.count(" messages ")
    assert "send source[1048576:2097152] to 0; receive source[0:1048576]" in text and "wait for the stream" in text
