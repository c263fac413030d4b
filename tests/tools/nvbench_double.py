"""A double of NVBench: it calls each benchmark, launches, and writes the files that NVBench writes.

It stands for the package cuda-bench alone. Verification, the order of points, failures and what becomes a record are
the real code. A test module gets the fixture ``nvbench`` by importing ``nvbench_double``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import pytest
from tiny_ladder import made

from climb.bench import bench_child, hardware, measure


class Gpu(bench_child.Gpu):
    """A GPU that has only a clock. It counts how often its cache was cleaned."""

    cleaned = 0

    def cleaner(self):
        def clean():
            Gpu.cleaned += 1

        return clean

    @contextlib.contextmanager
    def stream(self, handle):
        assert handle == 77
        yield

    def aligned(self, array):
        return array

    def synchronize(self):
        pass

    def seconds(self, launch):
        launch()
        return 1e-3

    def launches_to_check(self, seconds):
        return 2

    def kernels(self, launch):
        return ("one_kernel", "another")

    def release(self):
        pass


#: What the double says of one point after the other, in seconds; a batch takes nine tenths of it.
COLD = (4e-3, 1e-3, 2e-3, 3e-3)

CLOCK_HZ = 1.98e9


class State:
    """One run of a benchmark: each exec gives as many samples as were asked for."""

    def __init__(self, bench, name):
        self.bench, self.name, self.reason = bench, name, None
        self.asked = {}

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda value: self.asked.__setitem__(name[4:], value)

    def get_stream(self):
        return types.SimpleNamespace(addressof=lambda: 77)

    def skip(self, reason):
        self.reason = reason

    def is_skipped(self):
        return self.reason is not None

    def get_skip_reason(self):
        return self.reason

    def exec(self, launcher, /, *, batched):
        _, target, regime = self.name.split("-")
        assert batched == (regime == "batch")
        cleaned = Gpu.cleaned
        launcher(None)
        assert Gpu.cleaned == cleaned + (regime == "cold"), "cold samples start with a clean cache, no others"
        cold = COLD[int(target) % len(COLD)]
        dirty = 1.1 if regime == "dirty" else 1
        self.bench.write(np.full(self.asked["min_samples"], dirty * cold, "<f4"), 0.9 * cold if batched else None)


class Bench(types.ModuleType):
    """The calls of ``cuda.bench`` that the child uses."""

    def __init__(self):
        super().__init__("cuda.bench")
        self.__spec__ = ModuleSpec("cuda.bench", None)  # so that it counts as installed
        self.benchmarks, self.files, self.states = [], 0, []

    def register(self, function):
        benchmark = types.SimpleNamespace(function=function, parameters={})
        benchmark.set_name = lambda name: setattr(benchmark, "name", name)
        benchmark.set_stopping_criterion = lambda name: setattr(benchmark, "criterion", name)
        benchmark.set_criterion_param_float64 = benchmark.parameters.__setitem__
        self.benchmarks.append(benchmark)
        return benchmark

    def run_all_benchmarks(self, argv):
        assert argv[1:4] == ["--devices", "0", "--jsonbin"]
        self.json = Path(argv[4])
        entries = []
        for index, benchmark in enumerate(self.benchmarks):
            noise = bench_child.ANY_NOISE if benchmark.name.endswith("batch") else 0.005
            assert benchmark.criterion == "stdrel" and benchmark.parameters["max-noise"] == noise
            os.write(1, f"Run:  [{index + 1}/{len(self.benchmarks)}] {benchmark.name} [Device=0]\n".encode())
            self.summaries = []
            state = State(self, benchmark.name)
            self.states.append(state)
            benchmark.function(state)
            outcome = {"is_skipped": state.is_skipped(), "skip_reason": state.reason, "summaries": self.summaries}
            entries.append({"name": benchmark.name, "states": [outcome]})
        self.json.write_text(json.dumps({"benchmarks": entries}))

    def write(self, samples, batch):
        folder = self.json.with_name(self.json.name + "-bin")
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.files}.bin"
        clocks = self.json.with_name(self.json.name + "-freqs-bin") / path.name
        clocks.parent.mkdir(exist_ok=True)
        self.files += 1
        samples.tofile(path)
        np.full(len(samples), CLOCK_HZ, "<f4").tofile(clocks)
        if batch is not None:
            os.write(1, f"Pass: Batch: {1e3 * batch:.6f}ms GPU, 0.25s total GPU, 0.25s total wall, 9x\n".encode())

        def summary(tag, **values):
            data = [{"name": name, "type": "string", "value": str(value)} for name, value in values.items()]
            self.summaries.append({"tag": tag, "data": data})

        summary("nv/cold/sample_size", value=len(samples))
        os.write(1, f"Pass: Cold: 1.0ms GPU, 1.0ms CPU, 0.01s total GPU, 0.50s total wall, {len(samples)}x\n".encode())
        summary("nv/cold/walltime", value=0.5)
        summary("nv/cold/sm_clock_rate/mean", value=CLOCK_HZ)
        summary("nv/json/bin:nv/cold/sample_times", filename=path, size=len(samples))
        if batch is not None:
            summary("nv/batch/sample_size", value=9)
            summary("nv/batch/time/gpu/mean", value=batch)


@pytest.fixture(name="nvbench")
def nvbench_double(monkeypatch):
    """NVBench's double, and the child in this process."""
    bench = Bench()
    monkeypatch.setitem(sys.modules, "cuda.bench", bench)
    import cuda

    monkeypatch.setattr(cuda, "bench", bench, raising=False)
    monkeypatch.setattr(hardware, "device_block", lambda: made.DEVICE)

    def run_child(spec: Path, out: Path, meanwhile=None) -> int:
        bench.benchmarks.clear()  # each run is a new process
        return bench_child.main(spec, out, Gpu())

    monkeypatch.setattr(measure, "run_child", run_child)
    return bench
