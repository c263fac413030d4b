"""The times at which each launch of a rung began and ended on the GPU: ``climb spans LADDER ...`` on a GPU.

Every block reads ``%globaltimer``, which all SMs share, when it begins, when it has passed ``griddepcontrol.wait`` and
each barrier, and when it ends (``climb.bench.probes``). Nothing else is changed: the rung is started as always, as
launches or as a graph, with an L2 cache that holds none of its data. The probes themselves cost time; a point has the
time with probes, by CUDA events, so that it can be compared with the record's. The command writes
``records/<gpu>/spans/<ladder>.json``; a chapter reads it with ``spans(ladder)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from climb.bench import hardware, probes, records
from climb.bench.binding import bound
from climb.bench.cuda import cp
from climb.bench.holding import Hold
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.launching import in_order, starter
from climb.bench.problem import Launch, Size, size_label
from climb.bench.records.kinds import Span, SpansPoint, SpansRecord
from climb.bench.registry import load_ladder

_COMMAND = "climb spans"
#: The number of runs after one warm-up run. The run with the median extent is kept.
RUNS = 9

#: The time for which a kernel holds back the launches of a run: the host enqueues all of them before the first one
#: starts.
_HOLD_NS = 1_000_000

#: Takes PTX with probes and the lowered names of kernels; returns functions that are called like CuPy's kernels.
Loader = Callable[[BoundRung, str, Sequence[Launch], Size], Sequence[Callable[..., None]]]


@dataclass(frozen=True)
class Spans:
    """The spans of a ladder's rungs on one GPU; ``resolution_s`` is the least difference of two readings."""

    ladder: Ladder
    gpu: str
    date: str
    resolution_s: float
    points: tuple[SpansPoint, ...]

    @property
    def fresh(self) -> tuple[str, ...]:
        """The rungs whose spans fit today's kernel, in the ladder's order."""
        found = {point.name for point in self.points if not self._stale(point)}
        return tuple(name for name in self.ladder.names if name in found)

    def __getitem__(self, rung: str) -> SpansPoint:
        """Return the spans of a rung. Raises LookupError if there are none, or only those of an earlier kernel."""
        for point in self.points:
            if point.name == rung:
                if self._stale(point):
                    raise LookupError(f"stale spans of {rung}: the kernel has changed; on that GPU: {self._again}")
                return point
        raise LookupError(f"no spans of {rung} on {self.gpu}; on that GPU: {self._again}")

    def _stale(self, point: SpansPoint) -> bool:
        names = self.ladder.names
        return point.name not in names or point.source_sha256 != self.ladder[point.name].sha256(point.size)

    @property
    def _again(self) -> str:
        return f"{_COMMAND} {self.ladder.name}"


def spans(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> Spans:
    """Read a ladder's committed spans. Raises LookupError if there are none, and RecordError."""
    ladder = load_ladder(ladder) if isinstance(ladder, str) else ladder
    path = spans_path(ladder.name, records.gpu_with(f"spans/{ladder.name}.json", gpu))
    if not path.exists():
        raise LookupError(f"no spans of {ladder.name} on {gpu}; on that GPU: {_COMMAND} {ladder.name}")
    found = records.load(path, SpansRecord)
    return Spans(ladder, found.device["name"], found.date, found.resolution_s, found.points)


def spans_path(ladder: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's spans; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "spans" / f"{ladder}.json"


def spans_of(times: np.ndarray, kernel: str, zero: int) -> Span:
    """Return the times stored by a launch's blocks, ``times`` (blocks, ``probes.COLUMNS``) in ns, as seconds since
    ``zero``."""

    def extremes(column: np.ndarray) -> tuple[float, float] | None:
        """Return the least and the greatest time of the blocks that have stored one."""
        stored = column[column > 0]
        return (_seconds(stored.min() - zero), _seconds(stored.max() - zero)) if stored.size else None

    began, ended = extremes(times[:, probes.BEGAN]), extremes(times[:, probes.ENDED])
    if began is None or ended is None:
        raise ValueError(f"no block of {kernel} has stored its times")
    marks = (extremes(times[:, column]) for column in range(probes.FIRST_MARK, probes.COLUMNS))
    went_on = extremes(times[:, probes.WENT_ON])
    return Span(
        kernel=kernel,
        blocks=len(times),
        began=began,
        went_on=went_on,
        barriers=tuple(mark for mark in marks if mark is not None),
        ended=ended,
    )


def _seconds(nanoseconds: Any) -> float:
    return round(int(nanoseconds) * 1e-9, 9)


def resolution(times: Iterable[np.ndarray]) -> float:
    """Return the least difference, in seconds, of two different readings of the clock."""
    values = np.unique(np.concatenate([each.ravel() for each in times]))
    differences = np.diff(values[values > 0])
    return _seconds(differences.min()) if differences.size else 0.0


def run(rung: BoundRung, size: Size, load: Loader, clean: Callable[[], None], runs: int = RUNS) -> _Measured:
    """Start the rung ``runs`` times with probes, each after ``clean``; return the run of median extent, checked for
    NaN.

    Raises ValueError for a result that differs from the problem's reference by more than its tolerance.
    """
    problem, ladder = rung.ladder.problem, rung.ladder
    host = ladder.inputs(size)
    arrays = {name: cp.asarray(value) for name, value in host.items()}
    outputs = {a.name: cp.empty(a.extents(size), dtype=a.dtype) for a in problem.outputs}
    scratch = {name: cp.empty(shape, dtype=dtype) for name, (shape, dtype) in rung.rung.workspace(size).items()}
    arrays |= {**outputs, **scratch}
    launches = rung.launches(size)
    ptx = probes.with_probes(rung.compiled(size, whole=False).ptx)
    times = [cp.zeros((int(np.prod(launch.grid)), probes.COLUMNS), dtype=np.uint64) for launch in launches]
    probed = [replace(launch, args=(*launch.args, own)) for launch, own in zip(launches, times, strict=True)]
    starts = [
        starter(kernel, launch, tuple(bound(arg, arrays) for arg in launch.args))
        for kernel, launch in zip(load(rung, ptx, probed, size), probed, strict=True)
    ]
    started = in_order(probed, starts)
    found = []
    for _ in range(runs + 1):
        for own in times:
            own.fill(0)
        clean()
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        for launch in started:
            launch()
        stop.record()
        stop.synchronize()
        seconds = cp.cuda.get_elapsed_time(start, stop) * 1e-3
        found.append(_Measured([cp.asnumpy(own) for own in times], seconds, [launch.kernel for launch in launches]))
    expected = problem.reference(host, size)
    for name, array in outputs.items():
        error = np.abs(cp.asnumpy(array) - expected[name]).max() / max(np.abs(expected[name]).max(), 1e-300)
        if not error <= problem.tolerance(size):
            raise ValueError(f"{rung.name} with probes is wrong: {name} differs by {error:.1e}")
    return sorted(found[1:], key=lambda one: one.extent)[runs // 2]


@dataclass(frozen=True)
class _Measured:
    """One run: the times stored by the blocks of each launch, the time by events, and the kernels."""

    times: list[np.ndarray]
    seconds: float
    kernels: list[str]

    @property
    def zero(self) -> int:
        """The time when the first block began."""
        return min(int(own[:, probes.BEGAN].min()) for own in self.times)

    @property
    def extent(self) -> int:
        """Nanoseconds from ``zero`` to the end of the last block."""
        return max(int(own[:, probes.ENDED].max()) for own in self.times) - self.zero

    @property
    def launches(self) -> tuple[Span, ...]:
        pairs = zip(self.times, self.kernels, strict=True)
        return tuple(spans_of(own, kernel.partition("<")[0], self.zero) for own, kernel in pairs)


def _loaded(rung: BoundRung, ptx: str, launches: Sequence[Launch], size: Size) -> list[Callable[..., None]]:
    """Load the kernels of PTX on a GPU, whose driver compiles it: a Loader."""
    from types import SimpleNamespace

    from cuda.bindings import driver

    compiled, module = rung.compiled(size, whole=False), cp.cuda.function.Module()
    module.load(ptx.encode() + b"\0")
    found = []
    for launch in launches:
        function = module.get_function(compiled.lowered(launch.kernel))
        if launch.shared_mem:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            driver.cuFuncSetAttribute(driver.CUfunction(function.ptr), attribute, launch.shared_mem)
        found.append(_Function(function, SimpleNamespace(ptr=function.ptr), module))
    return found


@dataclass(frozen=True)
class _Function:
    """A kernel of a module of the driver, called like a ``cp.RawKernel``."""

    function: Any
    kernel: Any
    module: Any  # lives as long as its kernels

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int) -> None:
        self.function(tuple(grid), tuple(block), tuple(args), shared_mem=shared_mem)


def record_spans(name: str, rungs: Sequence[str] = (), folder: Path | None = None) -> Path:
    """Record the spans of a ladder's rungs, all by default, at its first headline size, below ``folder``.

    ``folder`` replaces ``records/<gpu>``. Fresh points of other rungs stay in the file.
    """
    from climb.bench.cold import CacheCleaner

    ladder, cleaner, hold = load_ladder(name), CacheCleaner(), Hold()

    def clean() -> None:
        cleaner()
        hold(_HOLD_NS)

    size = ladder.problem.headline[0]
    device = hardware.device_block()
    path = spans_path(ladder.name, hardware.gpu_slug(device["name"]), folder)
    points, least = _kept(ladder, path, rungs)
    for rung in (one for one in ladder if not rungs or one.name in rungs):
        measured = run(rung, size, _loaded, clean)
        least = min(least, resolution(measured.times))
        hashed = rung.sha256(size)
        points[rung.name] = SpansPoint(rung.name, dict(size), hashed, measured.seconds, measured.launches)
        print(f"{rung.name} at {size_label(size)}: {measured.extent * 1e-3:.1f} us from first block to last")
    data = {
        "ladder": ladder.name,
        "command": f"{_COMMAND} {name}",
        **hardware.origin(),
        "device": device,
        "resolution_s": least,
        "points": [msgspec.to_builtins(points[name]) for name in ladder.names if name in points],
    }
    records.save(path, data, SpansRecord, as_text(data))
    return path


def _kept(ladder: Ladder, path: Path, rungs: Sequence[str]) -> tuple[dict[str, SpansPoint], float]:
    """Return the fresh points of the rungs that are not measured now, and the resolution that they had."""
    if not rungs or not path.exists():
        return {}, float("inf")
    old = records.load(path, SpansRecord)
    found = Spans(ladder, "", old.date, old.resolution_s, old.points)
    return {name: found[name] for name in found.fresh if name not in rungs}, old.resolution_s


def as_text(data: dict[str, Any]) -> str:
    """Format the record as JSON with one line per launch."""
    import json

    head = {name: value for name, value in data.items() if name != "points"}
    points = []
    for point in data["points"]:
        own = {name: value for name, value in point.items() if name != "launches"}
        launches = ",\n".join(f"    {json.dumps(launch)}" for launch in point["launches"])
        points.append("  {" + json.dumps(own)[1:-1] + ',\n   "launches": [\n' + launches + "\n   ]}")
    fields = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in head.items())
    return "{\n" + fields + ',\n "points": [\n' + ",\n".join(points) + "\n ]\n}\n"
