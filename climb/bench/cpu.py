"""The same problem on the CPU, for scale: ``climb record --only cpu LADDER ...``.

A ladder that has CPU times has a module ``cpu`` beside its rungs, with ``SIZES`` and ``METHODS``: the code that a user
of NumPy or PyTorch would write. Each method is verified, then timed by the host's clock, with caches as the previous
run left them. If the float64 reference of a size takes minutes, ``CHECKED`` names the sizes to verify at, the largest
last. The command writes ``records/<gpu>/cpu/<ladder>.json``, where the GPU is that of the same machine; a chapter reads
it with ``cpu_times(ladder)``.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from climb import paths
from climb.bench import hardware, records
from climb.bench.checking import WrongResult, compare
from climb.bench.ladder import Ladder
from climb.bench.problem import Size, size_label
from climb.bench.records.kinds import CpuPoint, CpuRecord
from climb.bench.registry import ladder_module, load_ladder

_COMMAND = "climb record --only cpu"
#: A method runs at least LEAST and at most MOST times; no run starts once SECONDS have passed.
LEAST, MOST, SECONDS = 2, 7, 4.0

#: Takes host arrays by name; returns a function that computes the output once and returns it.
Prepare = Callable[[dict[str, np.ndarray], Size], Callable[[], np.ndarray]]


@dataclass(frozen=True)
class Method:
    """One way to compute a problem's only output on the CPU.

    ``call`` is the code that readers see. ``prepare`` does the set-up of a program, outside the timed region. Above
    ``most_flops`` of the problem, the method is too slow to be worth the wait.
    """

    name: str
    call: str
    prepare: Prepare
    most_flops: float = math.inf


@dataclass(frozen=True)
class CpuTimes:
    """The CPU times of one ladder. ``seconds(name, size)`` is a median; ``processor`` names CPU and cores."""

    ladder: str
    record: CpuRecord

    @property
    def processor(self) -> str:
        """The CPU with the number of cores that were used: "AMD EPYC 7763, 16 cores"."""
        return f"{self.record.processor.name}, {self.record.processor.cores} cores"

    @property
    def gpu(self) -> str:
        """The GPU in the same machine."""
        return self.record.device["name"]

    def point(self, name: str, size: Size) -> CpuPoint:
        """The record of a method at a size. Raises LookupError."""
        for point in self.record.points:
            if point.name == name and point.size == dict(size):
                return point
        raise LookupError(f"no CPU time of {self.ladder} '{name}' at {size_label(size)}; {_how(self.ladder)}")

    def seconds(self, name: str, size: Size) -> float:
        """The median time of a method at a size in seconds. Raises LookupError."""
        return median(self.point(name, size).samples)


def cpu_times(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> CpuTimes:
    """Read a ladder's committed CPU times: those of the machine with this GPU, or else of any other machine.

    Raises LookupError if there are none, and RecordError.
    """
    name = ladder if isinstance(ladder, str) else ladder.name
    place = f"cpu/{name}.json"
    path = cpu_path(name, records.gpu_with(place, gpu))
    if not path.exists():
        path = min(records.RECORDS.glob(f"*/{place}"), default=path)
    if not path.exists():
        raise LookupError(f"no CPU times of {name} beside {gpu}; {_how(name)}")
    return CpuTimes(name, records.load(path, CpuRecord))


def _how(ladder: str) -> str:
    return f"on that machine: {_COMMAND} {ladder}"


def cpu_path(ladder: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's CPU times; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "cpu" / f"{ladder}.json"


def has_methods(ladder: str) -> bool:
    """Return whether a ladder has a module ``cpu``. Raises UnknownLadder."""
    paths.make_kernels_importable()
    module = importlib.import_module(ladder_module(ladder))
    return hasattr(module, "__path__") and importlib.util.find_spec(f"{module.__name__}.cpu") is not None


def record_cpu(name: str, folder: Path | None = None) -> Path:
    """Verify and time a ladder's methods, and write them below ``folder`` (``records/<gpu>``).

    Raises WrongResult for a method whose result is wrong, and ImportError if a library is missing.
    """
    ladder = load_ladder(name)
    module = importlib.import_module(f"{ladder_module(name)}.cpu")
    device = hardware.device_block()
    data = {
        "ladder": ladder.name,
        "command": f"{_COMMAND} {name}",
        **hardware.origin(),
        "device": device,
        "processor": processor_block(),
        "points": [p for size in module.SIZES for p in measure(ladder, size, module.METHODS, _checked(module))],
    }
    path = cpu_path(ladder.name, hardware.gpu_slug(device["name"]), folder)
    records.save(path, data, CpuRecord)
    return path


def _checked(module: ModuleType) -> tuple[Size, ...]:
    """Return the sizes to verify at: all timed sizes, unless the module names some."""
    return getattr(module, "CHECKED", module.SIZES)


def measure(
    ladder: Ladder, size: Size, methods: tuple[Method, ...], checked: Sequence[Size] = ()
) -> list[dict[str, Any]]:
    """Verify and time the methods at one size; verify at the last of ``checked`` if they do not include the size.

    Raises WrongResult before a wrong method is timed.
    """
    problem, host = ladder.problem, ladder.inputs(size)
    at = size if not checked or size in checked else checked[-1]
    known = host if at is size or at == size else ladder.inputs(at)
    (output,) = problem.outputs
    expected = problem.reference(known, at)[output.name]
    points = []
    for method in methods:
        if problem.flops(size) > method.most_flops:
            continue
        found = compare(np.ascontiguousarray(method.prepare(known, at)()), expected, problem.tolerance(at))
        if found.wrong:
            raise WrongResult(f"{ladder.name} '{method.name}' on the CPU at {size_label(at)}: {found.wrong} wrong")
        run = method.prepare(host, size)
        run()
        samples = list(records.rounded(_samples(run)))
        points.append({"name": method.name, "call": method.call, "size": dict(size), "samples": samples,
                       "max_rel_error": found.error})  # fmt: skip
    return points


def _samples(run: Callable[[], object]) -> list[float]:
    """Return the seconds of each run, after a warm-up run."""
    taken: list[float] = []
    while len(taken) < LEAST or (len(taken) < MOST and sum(taken) < SECONDS):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return taken


def processor_block() -> dict[str, Any]:
    """The ``processor`` of a record: the CPU, the cores that this process may use, and the libraries' versions."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    torch = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    return {
        "name": _processor_name(),
        "cores": usable_cores(),
        "numpy": np.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "torch": str(torch.__version__) if torch else None,
        "torch_threads": torch.get_num_threads() if torch else None,
    }


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """The cores that this process may use: by its affinity, and by the quota of its control group."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share, _, period = quota.read_text().partition(" ") if quota.is_file() else ("max", "", "")
    return cores if share == "max" else max(1, min(cores, math.ceil(int(share) / int(period))))


def _processor_name() -> str:
    info = Path("/proc/cpuinfo")
    found = re.search(r"(?m)^model name\s*:\s*(.+)$", info.read_text()) if info.is_file() else None
    return found[1].strip() if found else platform.processor() or platform.machine()
