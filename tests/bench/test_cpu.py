"""CPU times: every method computes the problem, nothing wrong is timed, and a record is read by method and size."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from tiny_ladder import made, scale

from climb.bench import cpu, hardware, records
from climb.bench.checking import WrongResult, compare
from climb.bench.records.kinds import CpuRecord
from climb.bench.registry import ladder_module, ladder_names, load_ladder
from climb.bench.timings import Timings
from climb.display.cpu_table import cpu_table

LADDERS = [name for name in ladder_names() if cpu.has_methods(name)]
SIZE = {"n": 1024}
HOW = "on that machine: climb record --only cpu scale"
PROCESSOR = {"name": "A CPU", "cores": 4, "numpy": "2.0", "blas": "openblas 0.3", "torch": None, "torch_threads": None}


def method(name="NumPy", added=1.0, most_flops=1e9, ran=None):
    """2 x + 1 as a method, or something wrong; each run is noted in ``ran``."""

    def prepare(arrays, size):
        def run():
            if ran is not None:
                ran.append(name)
            return 2 * arrays["x"] + np.float32(added)

        return run

    return cpu.Method(name, "2 * x + 1", prepare, most_flops)


@pytest.mark.parametrize("name", LADDERS)
def test_numpy_method_computes_the_problem_and_sizes_are_recorded(name):
    ladder, module = load_ladder(name), importlib.import_module(f"{ladder_module(name)}.cpu")
    assert {"NumPy", "PyTorch"} == {one.name for one in module.METHODS}
    assert all(size in ladder.problem.recorded for size in module.SIZES)
    numpy_ = next(one for one in module.METHODS if one.name == "NumPy")
    for size in ladder.problem.check:
        # A border other than zeros is a size of the GPU alone.
        if min(value for value in size.values() if isinstance(value, int)) and size.get("border", "zero") == "zero":
            host = ladder.inputs(size)
            (expected,) = ladder.problem.reference(host, size).values()
            found = compare(numpy_.prepare(host, size)(), expected, ladder.problem.tolerance(size))
            assert found.wrong == 0, size


def test_ladders_of_the_sources_have_cpu_times():
    assert set(LADDERS) >= {"conv1d", "conv2d", "conv3d", "matmul"}
    assert not cpu.has_methods("saxpy") and not cpu.has_methods("tiny_ladder.scale")


def test_right_method_is_run_to_verify_and_then_to_time(monkeypatch):
    clock = iter(np.arange(0, 100, 0.5))
    monkeypatch.setattr(cpu.time, "perf_counter", lambda: float(next(clock)))
    ran = []
    (point,) = cpu.measure(scale.ladder, SIZE, (method(ran=ran), method("slow", most_flops=1, ran=ran)))
    assert (point["name"], point["size"], point["samples"]) == ("NumPy", SIZE, [0.5] * 7)
    assert ran == ["NumPy"] * 9 and 0 <= point["max_rel_error"] < 1e-6


def test_slow_method_is_run_twice(monkeypatch):
    clock = iter(np.arange(0, 1000, 50.0))
    monkeypatch.setattr(cpu.time, "perf_counter", lambda: float(next(clock)))
    (point,) = cpu.measure(scale.ladder, SIZE, (method(),))
    assert point["samples"] == [50.0, 50.0]


def test_size_whose_reference_takes_too_long_is_verified_at_the_largest_that_is_checked():
    sizes = []

    def prepare(arrays, size):
        sizes.append(size["n"])
        return lambda: 2 * arrays["x"] + np.float32(1)

    checked = ({"n": 16}, {"n": 64})
    (point,) = cpu.measure(scale.ladder, SIZE, (cpu.Method("NumPy", "2 * x + 1", prepare),), checked)
    assert sizes == [64, 1024] and point["size"] == SIZE
    with pytest.raises(WrongResult, match=r"at n=64: 64 wrong"):
        cpu.measure(scale.ladder, SIZE, (method(added=1.5),), checked)


def test_wrong_method_is_not_timed():
    ran = []
    with pytest.raises(WrongResult, match=r"scale 'NumPy' on the CPU at n=1024: 1024 wrong"):
        cpu.measure(scale.ladder, SIZE, (method(added=1.5, ran=ran),))
    assert ran == ["NumPy"]


def test_record_has_the_processor_and_is_read_by_method_and_size(tmp_path, monkeypatch):
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    small = importlib.import_module("kernels.conv1d.conv1d.cpu")
    monkeypatch.setattr(small, "SIZES", small.SIZES[:1])
    monkeypatch.setattr(small, "METHODS", small.METHODS[:1])
    path = cpu.record_cpu("conv1d")
    assert path == tmp_path / "nvidia-h200" / "cpu" / "conv1d.json"
    found = cpu.cpu_times("conv1d")
    assert found.seconds("NumPy", small.SIZES[0]) > 0 and found.processor.endswith(" cores")
    assert found.record.processor.cores >= 1 and "openblas" in found.record.processor.blas
    with pytest.raises(LookupError, match="no CPU time of conv1d 'NumPy' at n=1; on that machine: climb record"):
        found.point("NumPy", {"n": 1})
    with pytest.raises(LookupError, match="no CPU times of saxpy beside nvidia-h200"):
        cpu.cpu_times("saxpy")


@pytest.mark.parametrize(("text", "at_most"), [("200000 100000", 2), ("50000 100000", 1), ("max 100000", 1 << 20)])
def test_quota_of_the_control_group_limits_the_cores(tmp_path, text, at_most):
    (tmp_path / "cpu.max").write_text(text)
    assert 1 <= cpu.usable_cores(tmp_path / "cpu.max") <= at_most


def test_table_has_the_ratio_to_the_best_rung_and_says_what_is_pending(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    times = Timings(scale.ladder, "cold", made.record())
    assert cpu_table(times).text.splitlines()[::2] == ["pending", f"no CPU times of scale beside nvidia-h200; {HOW}"]
    point = {"name": "NumPy", "call": "2 * x + 1", "size": SIZE, "samples": [1e-3, 2e-3, 9e-3], "max_rel_error": 0.0}
    head = {"ladder": "scale", "command": "c", "date": "2026-11-20", "commit": "f00", "device": made.DEVICE}
    data = {**head, "processor": PROCESSOR, "points": [point]}
    records.save(cpu.cpu_path("scale"), data, CpuRecord)
    assert cpu_table(times).text.splitlines()[0] == "A CPU, 4 cores; 2026-11-20; n=1024"
    assert "NumPy: 2 * x + 1  2.00 ms      2.00 µs  1000x" in cpu_table(times).text
    assert "NumPy" not in cpu_table(times, [{"n": 1023}]).text
    other = {**point, "size": {"n": 1023}, "samples": [1e-3]}
    records.save(cpu.cpu_path("scale"), {**data, "points": [point, other]}, CpuRecord)
    assert cpu_table(times).text.splitlines()[0] == "A CPU, 4 cores; 2026-11-20"
    assert "NumPy: 2 * x + 1  n=1024  2.00 ms      2.00 µs  1000x" in cpu_table(times).text
    assert "NumPy: 2 * x + 1  n=1023  1.00 ms" in cpu_table(times).text


def test_times_of_another_machine_stand_in_under_the_name_of_its_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    point = {"name": "NumPy", "call": "2 * x + 1", "size": SIZE, "samples": [2e-3], "max_rel_error": 0.0}
    head = {"ladder": "scale", "command": "c", "date": "2026-11-20", "commit": "f00"}
    data = {**head, "device": {**made.DEVICE, "name": "NVIDIA Other"}, "processor": PROCESSOR, "points": [point]}
    records.save(cpu.cpu_path("scale", "nvidia-other"), data, CpuRecord)
    shown = cpu_table(Timings(scale.ladder, "cold", made.record())).text
    assert shown.splitlines()[0] == "A CPU, 4 cores, in a machine with an NVIDIA Other; 2026-11-20; n=1024"
