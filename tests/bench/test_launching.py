"""Launches that start early: what the driver is told, and what the emulator does instead."""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from climb import cp, load_ladder
from climb.bench import launching
from climb.bench.problem import Launch

LAUNCH = Launch("add", (7, 2), (64,), ("source", np.int32(9), np.uint64(5)), 2048, pdl=True)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The arguments of each call of cuLaunchKernelEx, which no GPU runs; it returns the status in the first element."""
    driver = pytest.importorskip("cuda.bindings.driver")
    calls: list[tuple] = [(driver.CUresult.CUDA_SUCCESS,)]
    monkeypatch.setattr(launching, "backend", "cupy")
    monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *args: (calls.append(args), calls[0])[1])
    stream = SimpleNamespace(ptr=11)
    monkeypatch.setattr(
        launching, "cp", SimpleNamespace(ndarray=Pointed, cuda=SimpleNamespace(get_current_stream=lambda: stream))
    )
    return calls


class Pointed:
    """An array of a GPU; a launch needs its address alone."""

    data = SimpleNamespace(ptr=0x7000)


FUNCTION = SimpleNamespace(kernel=SimpleNamespace(ptr=77))


def test_driver_is_asked_for_a_launch_that_may_start_early(told: list[tuple]) -> None:
    launching.starter(FUNCTION, LAUNCH, (Pointed(), np.int32(9), np.uint64(5)))()
    config, kernel, addresses, extra = told[1]
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (7, 2, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (64, 1, 1)
    assert (config.sharedMemBytes, int(config.hStream), int(kernel), extra) == (2048, 11, 77, 0)
    (attribute,) = config.attrs
    assert attribute.id.name == "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION"
    assert attribute.value.programmaticStreamSerializationAllowed == 1
    pointers = (ctypes.c_void_p * 3).from_address(addresses)
    kinds = (ctypes.c_uint64, ctypes.c_int32, ctypes.c_uint64)
    assert [kind.from_address(at).value for kind, at in zip(kinds, pointers, strict=True)] == [0x7000, 9, 5]


def test_a_grid_of_one_dimension_has_one_block_in_the_others(told: list[tuple]) -> None:
    launching.starter(FUNCTION, Launch("add", (7,), (64, 2, 2), (), pdl=True), ())()
    config = told[1][0]
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (7, 1, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (64, 2, 2)


def test_arrays_of_a_launch_live_as_long_as_its_function(told: list[tuple]) -> None:
    array = Pointed()
    alive = weakref.ref(array)
    start = launching.starter(FUNCTION, LAUNCH, (array, np.int32(9), np.uint64(5)))
    del array
    assert alive() is not None, "another array may be made in its memory, and the kernel would write there"
    del start
    assert alive() is None


def test_failure_of_the_driver_is_raised_with_the_launch(told: list[tuple]) -> None:
    from cuda.bindings import driver

    told[0] = (driver.CUresult.CUDA_ERROR_INVALID_VALUE,)
    with pytest.raises(RuntimeError, match=r"CUDA_ERROR_INVALID_VALUE for add<<<"):
        launching.starter(FUNCTION, LAUNCH, (Pointed(), np.int32(9), np.uint64(5)))()


def test_tensor_map_of_a_launch_that_starts_early_is_refused(told: list[tuple]) -> None:
    with pytest.raises(TypeError, match="takes arrays and numbers, not a SimpleNamespace"):
        launching.starter(FUNCTION, LAUNCH, (SimpleNamespace(),))


def test_launch_says_that_it_starts_early_and_others_keep_their_records() -> None:
    early, usual = load_ladder("async_reduction")["dependent"].rung.launches({"n": 100})[::-1]
    assert early.as_json()["pdl"] is True and str(early).endswith(", starts early (pdl)")
    assert "pdl" not in usual.as_json()


@pytest.mark.emulated
def test_emulator_starts_it_when_the_launch_before_has_ended() -> None:
    source = cp.asarray(np.arange(1500, dtype=np.float32))
    assert float(load_ladder("async_reduction")["dependent"](source)[0]) == 1500 * 1499 / 2


class Graphs:
    """CuPy's streams and graphs: what is captured, and what is launched where."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def Stream(self, non_blocking: bool) -> Graphs:
        assert non_blocking
        return self

    def __enter__(self) -> None:
        self.log.append("enter")

    def __exit__(self, *_: object) -> None:
        self.log.append("exit")

    def begin_capture(self) -> None:
        self.log.append("begin")

    def end_capture(self) -> Graphs:
        self.log.append("end")
        return self

    def launch(self, stream: str) -> None:
        self.log.append(f"graph on {stream}")


def test_neighbours_in_a_graph_are_captured_once_and_started_together(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = Graphs()
    cuda = SimpleNamespace(Stream=graphs.Stream, get_current_stream=lambda: "current")
    monkeypatch.setattr(launching, "cp", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(launching, "backend", "cupy")
    launches = [replace(LAUNCH, graph=name != "c") for name in "abcd"]
    starts = launching.in_order(launches, [lambda name=name: graphs.log.append(name) for name in "abcd"])
    captured = ["enter", "begin", "a", "b", "end", "exit", "enter", "begin", "d", "end", "exit"]
    assert graphs.log == captured
    for start in starts:
        start()
    assert graphs.log[len(captured) :] == ["graph on current", "c", "graph on current"]


def test_without_a_gpu_a_graph_is_its_launches_one_after_the_other() -> None:
    ran: list[str] = []
    launches = [replace(LAUNCH, graph=True)] * 2
    for start in launching.in_order(launches, [lambda name=name: ran.append(name) for name in "ab"]):
        start()
    assert ran == ["a", "b"]


def test_a_graph_belongs_to_what_a_record_says_of_a_launch() -> None:
    assert "graph" not in LAUNCH.as_json() and replace(LAUNCH, graph=True).as_json()["graph"] is True
    assert str(replace(LAUNCH, graph=True)).endswith(", starts early (pdl), in a graph")
