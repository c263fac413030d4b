"""The launches of the profiled process: each case once, on zeros or on the problem's own inputs."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from tiny_ladder import scale

from climb.bench import alignment, cuda, profiling
from climb.bench.ladder import BoundRung
from climb.bench.records import PendingRung
from climb.bench.registry import load_ladder


@pytest.fixture
def launched(monkeypatch):
    """The launches, as (rung, size, arrays), on a double of CuPy whose arrays are NumPy's."""
    found = []

    def prepare(self, arrays, size):
        return lambda: found.append((self.name, dict(size), arrays))

    pool = SimpleNamespace(free_all_blocks=lambda: None)
    double = SimpleNamespace(
        zeros=np.zeros,
        asarray=np.asarray,
        cuda=SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None)),
        get_default_memory_pool=lambda: pool,
    )
    monkeypatch.setattr(cuda, "cp", double)
    monkeypatch.setattr(alignment, "aligned", lambda array: array)
    monkeypatch.setattr(BoundRung, "prepare", prepare)
    return found


def test_each_rung_is_launched_once_at_each_size_that_it_takes(launched):
    profiling.launch_all(scale.ladder)
    assert [(rung, size["n"]) for rung, size, _ in launched] == [
        ("plain", 1024), ("vector", 1024), ("twice", 1024), ("plain", 1023), ("twice", 1023)
    ]  # fmt: skip
    for _, size, arrays in launched:
        assert set(arrays) == {"x", "y"}
        assert all((a.shape, a.dtype, a.any()) == ((size["n"],), np.float32, False) for a in arrays.values())


def test_inputs_whose_kind_of_data_matters_are_the_problems(launched):
    problem = replace(
        scale.problem,
        size_keys=("n", "data"),
        kinds={"data": ("random", "ones")},
        headline=({"n": 5, "data": "ones"},),
        make_inputs=lambda size, rng: {"x": np.ones(size["n"], np.float32)},
    )
    profiling.launch_all(replace(scale.ladder, problem=problem, rungs=(scale.plain,)))
    ((rung, size, arrays),) = launched
    assert (rung, size) == ("plain", {"n": 5, "data": "ones"})
    assert arrays["x"].tolist() == [1.0] * 5 and arrays["y"].tolist() == [0.0] * 5


def test_further_sizes_are_those_of_ladders_of_the_book_that_some_rung_takes():
    for name, sizes in {**profiling.ALSO, **profiling.INSTEAD}.items():
        ladder = load_ladder(name)
        for size in sizes:
            assert any(rung.rung.requires(size) is None for rung in ladder), (name, size)
            assert set(size) == set(ladder.problem.headline[0]), (name, size)
            assert all(value > 0 for value in size.values() if isinstance(value, int)), (name, size)


def test_counters_under_a_rungs_old_name_are_those_of_the_rung(tmp_path, monkeypatch):
    known = profiling.hardware_counters("matmul")
    text = profiling.counters_path("matmul").read_text(encoding="utf-8")
    older = tmp_path / "matmul.json"
    older.write_text(text.replace('"name": "double_buffered"', '"name": "before"'), encoding="utf-8")
    assert "before" in older.read_text(encoding="utf-8")
    monkeypatch.setattr(profiling, "counters_path", lambda *_: older)
    found, size = profiling.hardware_counters("matmul"), known.ladder.problem.headline[0]
    assert found.at("double_buffered", size) == known.at("double_buffered", size)


def _ncu(nanoseconds: list[int], status: int = 0):
    """A double of the function that runs ncu in ``profiling``. It reports launches of these durations; the other
    counts of each are its number."""
    metrics = [metric for metric, _ in profiling.METRICS.values()]
    duration, _ = profiling.METRICS["nanoseconds"]
    rows = [[str(time if one == duration else number) for one in metrics] for number, time in enumerate(nanoseconds)]
    page = [metrics, [""] * len(metrics), *rows]
    text = "==PROF== Connected\n" + "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in page)
    return lambda *_, **__: SimpleNamespace(returncode=status, stdout=text, stderr="ncu's words")


def test_profile_takes_the_longest_launch_of_each_case_and_refuses_another_number_of_launches(monkeypatch):
    monkeypatch.setattr(
        profiling,
        "hardware",
        SimpleNamespace(origin=lambda: {"date": "d", "commit": "c"}, device_block=lambda: {"name": "d"}),
    )
    ladder = replace(scale.ladder, rungs=(scale.plain, scale.twice))
    first, second = (launch.kernel for launch in scale.twice.launches({"n": 1024}))
    monkeypatch.setattr(profiling, "load_ladder", lambda name: ladder)
    monkeypatch.setattr(profiling.subprocess, "run", _ncu([9, 5, 7, 9, 8, 6]))
    points = profiling.profile("scale")["points"]
    assert [(one["name"], one["size"]["n"], one["counts"]["cycles"]) for one in points] == [
        ("plain", 1024, 0), ("twice", 1024, 2), ("plain", 1023, 3), ("twice", 1023, 4),
    ]  # fmt: skip
    assert points[1]["launches"] == [[first, 5], [second, 7]]
    assert points[3]["counts"]["nanoseconds"] == 8
    for launches, status in ((5, 0), (7, 0), (6, 1)):
        monkeypatch.setattr(profiling.subprocess, "run", _ncu([1] * launches, status))
        with pytest.raises(RuntimeError, match=rf"profiled {launches} of 6 launches:\n(.|\n)*ncu's words"):
            profiling.profile("scale")


def test_a_ladder_without_sizes_to_profile_is_refused(monkeypatch):
    ladder = replace(scale.ladder, problem=replace(scale.problem, headline=(), sweep=()))
    monkeypatch.setattr(profiling, "load_ladder", lambda name: ladder)
    with pytest.raises(RuntimeError, match="scale: the ladder has no recorded sizes"):
        profiling.profile("scale")


def test_the_launches_of_a_rung_are_read_back():
    known = profiling.hardware_counters("matmul")
    point = known.points[0]
    older = msgspec.structs.replace(point, launches=())
    with pytest.raises(PendingRung, match=f"{point.name}'s launches were counted together"):
        replace(known, points=(older,)).launches_at(point.name, point.size)
    timed = msgspec.structs.replace(point, launches=(("first", 5), ("second", 7)))
    assert replace(known, points=(timed,)).launches_at(point.name, point.size) == (("first", 5), ("second", 7))
    with pytest.raises(PendingRung, match=f"no hardware counters of {point.name} at m=3"):
        known.launches_at(point.name, {"m": 3})
    with pytest.raises(KeyError, match="has no rung 'nothing'"):
        known.launches_at("nothing", point.size)
