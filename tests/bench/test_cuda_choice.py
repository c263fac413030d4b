"""CuPy or the emulator: the choice is made once, needs no CuPy, and can be forced."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from climb.bench import announcement, cuda

ROOT = Path(__file__).resolve().parents[2]
NO_GPU = bool(cuda.missing_gpu())
needs_no_gpu = pytest.mark.skipif(not NO_GPU, reason="says what happens where there is no GPU")


@dataclass(frozen=True)
class Recorded:
    gpu: str = "NVIDIA H200"
    date: str = "2026-11-21T10:00:00"


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`code` in a fresh Python, with only the given WORKLOG_ variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WORKLOG_")}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean | environment, cwd=ROOT, capture_output=True, text=True, check=False
    )


class Driver:
    """A CUDA driver: what cuInit gives, and how many GPUs there are."""

    def __init__(self, status: int = 0, count: int = 1) -> None:
        self.status, self.count = status, count

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGetCount(self, pointer: object) -> int:
        pointer._obj.value = self.count  # type: ignore[attr-defined]
        return 0


def fake_cupy(broken: bool = False) -> SimpleNamespace:
    def device_count() -> int:
        if broken:
            raise RuntimeError("cudaErrorInsufficientDriver")
        return 1

    runtime = SimpleNamespace(
        getDeviceCount=device_count,
        getDeviceProperties=lambda device: {"name": b"NVIDIA H200"},
    )
    return SimpleNamespace(
        __version__="14.2.0", cuda=SimpleNamespace(runtime=runtime, Device=lambda: SimpleNamespace(id=0))
    )


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU, CuPy and NVBench, as far as the decision can see."""
    monkeypatch.setattr(cuda, "_has_nvbench", lambda: True)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver())
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.delenv("WORKLOG_BACKEND", raising=False)
    monkeypatch.delenv("WORKLOG_TIMINGS", raising=False)


def choose(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decide again, as a fresh import would, for this test alone."""
    chosen = cuda._choose()
    monkeypatch.setattr(cuda, "_choice", chosen)
    monkeypatch.setattr(cuda, "cp", chosen.module)
    monkeypatch.setattr(cuda, "backend", chosen.backend)


@needs_no_gpu
class TestWithoutGpu:
    def test_the_import_loads_nothing_but_numpy_and_the_emulator(self) -> None:
        """The choice is quick because it loads little: no CuPy, no other library, nothing of ours above fake_cupy."""
        code = (
            "import numpy, sys; before = set(sys.modules); import climb.bench.cuda as cuda; "
            "print(cuda.backend, *{name for name in set(sys.modules) - before})"
        )
        backend, *loaded = run(code).stdout.split()
        assert backend == "emulator"
        packages = {name.split(".")[0] for name in loaded if "cython" not in name} - sys.stdlib_module_names
        assert packages <= {"climb", "cuda", "numpy"}  # cuda: the folder in which NVIDIA's packages lie
        ours = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("climb.")}
        assert ours == {"climb.bench", "climb.emulator", "climb.fake_cupy", "climb.rings", "climb.toolchain"}
        assert {name for name in loaded if name.startswith("climb.bench.")} == {"climb.bench.cuda"}

    def test_no_compiler_is_loaded_before_it_is_needed(self) -> None:
        assert run("import climb.bench.cuda, sys; print('cuda.bindings.nvrtc' in sys.modules)").stdout.split() == [
            "False"
        ]

    def test_forced_cupy_without_a_gpu_says_why_not(self) -> None:
        done = run("import climb.bench.cuda", WORKLOG_BACKEND="cupy")
        assert done.returncode != 0
        last = done.stderr.strip().splitlines()[-1]
        assert last.startswith("climb.bench.cuda.BackendError: WORKLOG_BACKEND=cupy asks for a GPU, but ")
        assert "NVIDIA driver" in last

    def test_live_timings_need_a_gpu(self) -> None:
        done = run("from climb.bench import cuda; cuda.replaying()", WORKLOG_TIMINGS="live")
        assert "BackendError: WORKLOG_TIMINGS=live asks for live timings" in done.stderr


class TestEnvironment:
    def test_emulator_can_be_forced_without_a_gpu(self) -> None:
        done = run("from climb.bench.cuda import backend, cp; print(backend, cp.__name__)", WORKLOG_BACKEND="emulator")
        assert done.stdout.split() == ["emulator", "climb.fake_cupy"]

    @pytest.mark.parametrize(
        ("name", "value", "expected"),
        [("WORKLOG_BACKEND", "gpu", "'cupy', 'emulator'"), ("WORKLOG_TIMINGS", "replay", "'record' or 'live'")],
    )
    def test_unknown_value_of_a_variable_is_an_error(self, name: str, value: str, expected: str) -> None:
        done = run("import climb.bench.cuda", **{name: value})
        assert done.returncode != 0
        assert f"{name} is {value!r}; expected {expected}" in done.stderr

    def test_timings_can_be_replayed_on_a_gpu(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        choose(monkeypatch)
        assert not cuda.replaying()
        monkeypatch.setenv("WORKLOG_TIMINGS", "live")
        assert not cuda.replaying()
        monkeypatch.setenv("WORKLOG_TIMINGS", "record")
        assert cuda.replaying()


class TestWithGpu:
    def test_cupy_is_chosen_if_there_is_a_gpu(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        choose(monkeypatch)
        assert cuda.backend == "cupy"
        assert cuda.cp is sys.modules["cupy"]
        assert announcement.describe() == "running on NVIDIA H200 through CuPy 14.2"

    def test_description_names_the_replayed_record(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        choose(monkeypatch)
        monkeypatch.setenv("WORKLOG_TIMINGS", "record")
        assert announcement.describe(Recorded()) == (
            "running on NVIDIA H200 through CuPy 14.2; timings replayed from the record of an NVIDIA H200, 2026-11-21"
        )

    def test_times_are_the_records_where_nvbench_is_missing(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        choose(monkeypatch)
        assert cuda.can_measure()
        monkeypatch.setattr(cuda, "_has_nvbench", lambda: False)
        assert not cuda.can_measure() and not cuda.replaying()
        assert announcement.describe(Recorded()) == (
            "running on NVIDIA H200 through CuPy 14.2; timings replayed from the record of an NVIDIA H200, 2026-11-21 "
            "(to measure here, install NVBench)"
        )
        monkeypatch.setenv("WORKLOG_TIMINGS", "live")  # insists: then the measurement says what is missing
        assert cuda.can_measure() and announcement.describe(Recorded()) == "running on NVIDIA H200 through CuPy 14.2"
        monkeypatch.setattr(cuda, "_has_nvbench", lambda: True)
        monkeypatch.setenv("WORKLOG_TIMINGS", "record")
        assert not cuda.can_measure()

    def test_cupy_that_does_not_work_is_reported(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy(broken=True))
        choose(monkeypatch)
        assert cuda.backend == "emulator"
        assert (
            "there is a GPU, but CuPy does not work here (RuntimeError: cudaErrorInsufficientDriver)"
            in announcement.describe()
        )
        monkeypatch.setenv("WORKLOG_BACKEND", "cupy")
        with pytest.raises(cuda.BackendError, match="cudaErrorInsufficientDriver"):
            cuda._choose()

    def test_missing_cupy_is_reported(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "cupy", None)
        choose(monkeypatch)
        assert cuda.backend == "emulator"
        assert "CuPy does not work here" in announcement.describe()

    def test_the_emulator_can_be_forced(self, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORKLOG_BACKEND", "emulator")
        choose(monkeypatch)
        assert cuda.backend == "emulator"
        assert cuda.replaying()


class TestDriver:
    @pytest.mark.parametrize(
        ("status", "count", "why"), [(100, 0, "cuInit gives 100"), (0, 0, "finds no GPU"), (0, 2, "")]
    )
    def test_driver_without_a_usable_gpu_is_explained(
        self, status: int, count: int, why: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(status, count))
        said = cuda.missing_gpu()
        assert why in said
        assert bool(said) == bool(why)


class TestDescribe:
    @pytest.fixture(autouse=True)
    def emulated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORKLOG_BACKEND", "emulator")
        monkeypatch.delenv("WORKLOG_TIMINGS", raising=False)
        choose(monkeypatch)

    def test_description_names_the_given_record(self, capsys: pytest.CaptureFixture[str]) -> None:
        sentence = "running on the emulator; timings replayed from the record of an NVIDIA H200, 2026-11-21"
        assert announcement.describe(Recorded()) == sentence
        announcement.announce(Recorded())
        assert capsys.readouterr().out == sentence + "\n"

    @pytest.mark.parametrize("gpu", ["a Tesla T4", "an A100-SXM4-80GB", "an NVIDIA H200"])
    def test_description_uses_the_article_of_the_gpu(self, gpu: str) -> None:
        assert f"of {gpu}, 2026-11-21" in announcement.describe(Recorded(gpu.split(" ", 1)[1]))

    def test_description_names_the_newest_record_by_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from climb.bench import records

        monkeypatch.setattr(records, "RECORDS", tmp_path)
        assert "no record" in announcement.describe()
        folder = tmp_path / records.DEFAULT_GPU
        folder.mkdir()
        for name, date in (("copy", "2026-11-20"), ("fma", "2026-11-22"), ("transpose", "2026-11-21")):
            (folder / f"{name}.json").write_text(json.dumps({"date": date, "device": {"name": "NVIDIA H200"}}))
        assert announcement.describe().endswith("of an NVIDIA H200, 2026-11-22")
