"""Cases that other processes make are those that the measuring process would make, and none is missed if they fail."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from tiny_ladder import scale
from tools.nvbench_double import nvbench_double  # noqa: F401

from climb.bench import bench_child, cases_ahead, measure
from climb.bench.cases_ahead import CasesAhead
from climb.bench.checking import Case
from climb.bench.measure import Sampling
from climb.bench.registry import load_ladder

TINY = "tiny_ladder.scale"
MATMUL = {"m": 8, "n": 5, "k": 3}
CASES = [(TINY, {"n": 64}), ("matmul", MATMUL), (TINY, {"n": 1000}), (TINY, {"n": 64}), (TINY, {"n": 7})]


@pytest.fixture
def ahead():
    two = CasesAhead(CASES, seed=3, workers=2)
    yield two
    two.close()


def test_cases_are_those_of_the_measuring_process_in_order_with_some_left_out(ahead):
    with ahead.paused():
        pass
    for name, size in (CASES[0], CASES[1], CASES[3], CASES[4]):
        ladder = load_ladder(name)
        here, there = Case.make(ladder, size, 3), ahead.take(name, size)
        assert there["inputs"].keys() == ladder.inputs(size, 3).keys()
        for array, value in ladder.inputs(size, 3).items():
            assert np.array_equal(there["inputs"][array], value) and there["inputs"][array].dtype == value.dtype
        for output, value in here.reference.items():
            assert np.allclose(there["reference"][output], value, rtol=1e-14, atol=0)
        assert there["magnitudes"].keys() == here.magnitudes().keys()
        taken = Case.make(ladder, size, 3, ahead=there)
        assert taken.reference.keys() == here.reference.keys() and taken.magnitudes() is there["magnitudes"]
    assert ahead.take(*CASES[0]) is None, "it is not in the order"


@pytest.mark.parametrize(
    ("backend", "cores", "bytes_of_memory", "workers"),
    [
        ("cupy", 16, 101e9, cases_ahead.WORKERS),
        ("cupy", 16, 99e9, 0),
        ("cupy", 15, 101e9, 0),
        ("cupy", None, 101e9, 0),
        ("emulator", 16, 101e9, 0),
    ],
)
def test_cases_are_made_ahead_on_machines_with_a_gpu_cores_and_memory(
    monkeypatch, backend, cores, bytes_of_memory, workers
):
    monkeypatch.setattr(cases_ahead.cuda, "backend", backend)
    monkeypatch.setattr(cases_ahead.os, "cpu_count", lambda: cores)
    values = {"SC_PHYS_PAGES": int(bytes_of_memory / 4096), "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(cases_ahead.os, "sysconf", values.__getitem__)
    assert cases_ahead.workers_here() == workers


@pytest.mark.thorough
def test_cases_that_are_done_with_leave_no_file_open(ahead):
    gc.collect()  # what earlier tests have left may hold files open
    gc.freeze()  # what is still alive need not be searched once more
    before = len(os.listdir("/proc/self/fd"))
    taken = [ahead.take(name, size) for name, size in CASES]
    assert all(each is not None for each in taken)
    del taken
    gc.collect()
    gc.unfreeze()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_process_that_ends_leaves_its_cases_to_the_measuring_process(ahead, capfd):
    for worker in ahead._workers:
        worker.process.kill()
        worker.process.wait()
    assert ahead.take(*CASES[0]) is None and ahead.take(*CASES[1]) is None
    assert capfd.readouterr().err.count("cases are not made ahead any more") == 1


def test_a_large_case_and_one_that_fails_are_left_to_the_measuring_process(monkeypatch):
    assert cases_ahead.make(TINY, {"n": 10}, 0) is not None
    monkeypatch.setattr(cases_ahead, "MOST_BYTES", 79)
    assert cases_ahead.make(TINY, {"n": 10}, 0) is None
    one = CasesAhead([(TINY, {"m": 10})], 0, 1)
    assert one.take(TINY, {"m": 10}) is None
    one.close()


def test_a_ladder_is_recorded_from_cases_made_ahead(nvbench, tmp_path, monkeypatch):
    taken = []
    take = CasesAhead.take

    def noted(self, ladder, size):
        taken.append(take(self, ladder, size))
        return taken[-1]

    monkeypatch.setattr(CasesAhead, "take", noted)
    monkeypatch.setattr(bench_child, "workers_here", lambda: 1)
    points, _ = measure.run(measure.targets_of(scale.ladder, TINY), Sampling(), keep=tmp_path)
    assert len(taken) == 2 and all(taken) and all(points)
