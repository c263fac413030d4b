"""Count on the hardware: launch the rungs and patterns once each under Nsight Compute.

The GPU runs the machine code that the toolchain here makes, so that the counts and the marks belong to the same code.
Counts of unchanged code are kept. ncu profiles a portion of the launches at a time, and the record is written after
each portion, so that an interrupted command loses little.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import hardware, records
from climb.bench.identity import expand_includes
from climb.bench.problem import Launch
from climb.bench.registry import ladder_names, load_ladder
from climb.emulator import DeviceMemory
from climb.emulator.counters.cost_model import PERIOD
from climb.toolchain import Compiled
from climb.validation import nsight
from climb.validation.agreement import (
    METRICS,
    QUANTITIES,
    all_rungs,
    code_sha256,
    compiled_patterns,
    measured_size,
    pattern_launch,
    record_path,
)
from climb.validation.agreement.cases import cases
from climb.validation.agreement.code import NONDETERMINISTIC, code_path, counted_code, keep_code
from climb.validation.schema import AgreementRecord

#: The number of times that each launch is counted: rungs twice, since some of their counts differ from run to run.
RUNS = {"rungs": 2, "patterns": 1}
#: Launches that one ncu process profiles, and the seconds that it needs to start.
AT_ONCE, STARTING = 40, 5


@dataclass(frozen=True)
class Step:
    """One launch to count.

    `names` identify it; `group` names the launches that run in order on the same arrays, and `first` marks the first of
    them. `zeros` holds the size in bytes of each array besides `arrays()`; `metrics` are those that ncu counts.
    """

    names: dict[str, Any]
    group: str
    compiled: Compiled
    launch: Launch
    code: str
    first: bool
    zeros: dict[str, int]
    metrics: tuple[str, ...] = METRICS

    def arrays(self) -> dict[str, np.ndarray]:
        """The inputs by name, made on demand."""
        if "label" in self.names:
            return _pattern_arrays()[self.names["label"]]
        ladder = load_ladder(self.names["ladder"])
        made = ladder.inputs(self.names["size"])
        return {argument.name: made[argument.name] for argument in ladder.problem.inputs}


@functools.cache
def _pattern_arrays() -> dict[str, dict[str, np.ndarray]]:
    return {
        case.label: {f"array {n}": arg for n, arg in enumerate(case.args) if isinstance(arg, np.ndarray)}
        for case in cases()
    }


def asked(label: str) -> tuple[str, ...]:
    """Return the metrics of a pattern: only those of the kind of access in its label, so that ncu needs few passes."""
    space = label.split()[0]
    kinds = {kind for kind, _ in QUANTITIES if kind.startswith(space)}
    moves = any(label.startswith(f"{space} {move}") for move in ("load", "store", "array"))
    kinds = {kind for kind in kinds if kind.endswith("atomic") != moves}
    last = [ways[-1] for (kind, _), ways in QUANTITIES.items() if kind in kinds]
    return tuple(dict.fromkeys(metric for way in last for metric in way.plus))


def rung_steps(ladder: str | None = None) -> Iterator[Step]:
    """Return the launches of all rungs, or of one ladder's rungs, in order."""
    for rung in all_rungs(None if ladder is None else [ladder]):
        problem, size = rung.ladder.problem, measured_size(rung)
        inputs = rung.ladder.inputs(size)
        try:
            compiled = counted_code(rung, size)
        except LookupError:  # never counted, or stale
            compiled = rung.compiled(size)
        shapes = {a.name: (a.extents(size), a.dtype) for a in problem.outputs} | dict(rung.rung.workspace(size))
        zeros = {n: int(np.prod(s, dtype=np.int64)) * np.dtype(d).itemsize for n, (s, d) in shapes.items()}
        for index, launch in enumerate(rung.launches(size)):
            names = {"ladder": rung.ladder.name, "rung": rung.name, "size": dict(size), "launch": index}
            code = code_sha256(compiled, launch, inputs)
            group = f"{rung.ladder.name} {rung.name}"
            yield Step(names, group, compiled, launch, code, index == 0, zeros)


def pattern_steps() -> Iterator[Step]:
    """Return the patterns, in order."""
    for case in cases():
        compiled = compiled_patterns(case.path)
        launch = pattern_launch(case)
        code = code_sha256(compiled, launch, {})
        yield Step({"label": case.label}, case.label, compiled, launch, code, True, {}, asked(case.label))


STEPS = {"rungs": rung_steps, "patterns": pattern_steps}


def _prepared(ladder: str | None) -> list[Step]:
    steps = list(pattern_steps() if ladder is None else rung_steps(ladder))
    for step in steps:
        _ = step.compiled.cubin  # compiled here, in this process, and cached
    return steps


def prepare(
    kinds: Iterable[str] = tuple(STEPS), ladders: Sequence[str] = (), workers: int | None = None
) -> dict[str, list[Step]]:
    """Return the steps of each kind, of all ladders or of those named, compiled in several processes. Needs no GPU."""
    kinds = list(kinds)
    jobs = [*((ladders or ladder_names()) if "rungs" in kinds else ()), *([None] if "patterns" in kinds else ())]
    with ProcessPoolExecutor(workers) as pool:
        done = dict(zip(jobs, pool.map(_prepared, jobs), strict=True))
    rungs = [step for name, steps in done.items() if name is not None for step in steps]
    return {kind: rungs if kind == "rungs" else done[None] for kind in kinds}


def launch_all(
    steps: Sequence[Step], announce: Callable[[Step], None] | None = None, fresh: Callable[..., Any] | None = None
) -> None:
    """Launch each step once, through CuPy; `announce` is called before each launch.

    With `fresh`, CuPy places the arrays, and `fresh(bytes, dtype)` makes those that are not inputs. Without it, arrays
    that are not inputs are zeros, and every array has the emulator's address modulo `PERIOD`, on which the cost of
    atomics depends.
    """
    import cupy

    from climb.bench.binding import bound

    modules: dict[str, Any] = {}
    held: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            key = hashlib.sha256(step.compiled.cubin).hexdigest()
            if key not in modules:
                path = Path(folder, f"{key}.cubin")
                path.write_bytes(step.compiled.cubin)
                modules[key] = cupy.RawModule(path=str(path))
            if step.first:
                arrays = step.arrays()
                if fresh is None:
                    held = placed({**arrays, **{name: np.zeros(n, np.uint8) for name, n in step.zeros.items()}})
                else:
                    held = {name: cupy.asarray(value) for name, value in arrays.items()}
                    held |= {name: fresh(max(n, 1), cupy.uint8) for name, n in step.zeros.items()}
            function = modules[key].get_function(step.compiled.lowered(step.launch.kernel))
            if step.launch.shared_mem > 48 * 1024:
                function.max_dynamic_shared_size_bytes = step.launch.shared_mem
            args = tuple(np.array([a]) if isinstance(a, np.generic) else bound(a, held) for a in step.launch.args)
            if announce:
                announce(step)
            function(step.launch.grid, step.launch.block, args, shared_mem=step.launch.shared_mem)
            cupy.cuda.Device().synchronize()


def placed(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Put the arrays on the GPU, at addresses that equal the emulator's modulo `PERIOD`."""
    import cupy

    memory, out = DeviceMemory(), {}
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        room = cupy.empty(array.nbytes + PERIOD, cupy.uint8)
        start = (memory.allocate(array.nbytes).address - room.data.ptr) % PERIOD
        out[name] = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        if array.nbytes:
            out[name].set(array)
    return out


def count(steps: Sequence[Step], seconds: float | None = None) -> list[dict[str, float]]:
    """Return the metrics of each step, as ncu counts them; all steps must have the same metrics.

    Raises RuntimeError with ncu's output, TimeoutError after `seconds`.
    """
    metrics = steps[0].metrics
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(list(steps), file)
        file.flush()
        command = [*nsight.COMMAND, "--cache-control", "none", "--metrics", ",".join(metrics),
                   sys.executable, "-m", "climb.validation.agreement", file.name]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(f"ncu took more than {seconds:.0f} s for {len(steps)} launches") from error
    rows = nsight.parse(done.stdout, metrics)
    if done.returncode or len(rows) != len(steps):
        said = f"{done.stdout[-2000:]}{done.stderr[-2000:]}"
        raise RuntimeError(f"ncu counted {len(rows)} of {len(steps)} launches:\n{said}")
    return rows


Points = dict[tuple, dict[str, Any]]


def _key(names: dict[str, Any]) -> tuple:
    return tuple(names[part] for part in ("label", "ladder", "rung", "launch") if part in names)


def known_points(path: Path, steps: dict[str, list[Step]]) -> Points:
    """Return the points of the record at `path` that are still true: counts of today's code, made by the same
    compiler."""
    if not path.exists():
        return {}
    data = records.load(path, AgreementRecord)
    if data.nvrtc != compiler(steps):
        return {}
    codes = {_key(step.names): step.code for which in steps.values() for step in which}
    wanted = {_key(step.names): step.metrics for which in steps.values() for step in which}
    every: list[dict[str, Any]] = [dict(point) for which in STEPS for point in getattr(data, which)]
    for point in every:
        runs = [dict(zip(data.metrics, run, strict=True)) for run in point["counts"]]
        whole = [run for run in runs if all(run.get(name) is not None for name in wanted.get(_key(point), ()))]
        point["counts"] = [[run.get(name) for name in METRICS] for run in whole]
    # Keep the other ladders' points; drop those of ladders that no longer exist.
    asked_for = {step.names.get("ladder") for which in steps.values() for step in which}
    there = {None, *ladder_names()}
    kept = {_key(p): p for p in every if p.get("ladder") in there - asked_for}
    return kept | {_key(p): p for p in every if codes.get(_key(p)) == p["code_sha256"] and _code_is_kept(p, path)}


def _code_is_kept(point: dict[str, Any], path: Path) -> bool:
    """Return whether the counted code still exists: a nondeterministic rung's code must be kept beside its counts."""
    name = (point.get("ladder"), point.get("rung"))
    return name not in NONDETERMINISTIC or _kept_beside(path, name).exists()


def _kept_beside(path: Path, name: tuple[str, str]) -> Path:
    """Return the file of a rung's code beside the counts at ``path``."""
    return path.with_name("code") / code_path(*name).name


def compiler(steps: dict[str, list[Step]]) -> str:
    """Return the version of NVRTC that compiled the steps."""
    (version,) = {step.compiled.nvrtc_version for which in steps.values() for step in which}
    return ".".join(map(str, version))


def to_count(steps: Iterable[Step], points: Points, runs: int) -> list[list[Step]]:
    """Return the groups with a launch that was counted fewer than `runs` times."""
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step)
    return [
        group
        for group in groups.values()
        if any(len(points.get(_key(step.names), {"counts": ()})["counts"]) < runs for step in group)
    ]


def portions(groups: Iterable[list[Step]]) -> Iterator[list[Step]]:
    """Yield the steps of whole groups, about `AT_ONCE` at a time; the steps of a portion have the same metrics."""
    open_ones: dict[tuple[str, ...], list[Step]] = {}
    for group in groups:
        portion = open_ones.setdefault(group[0].metrics, [])
        portion += group
        if len(portion) >= AT_ONCE:
            yield open_ones.pop(group[0].metrics)
    yield from open_ones.values()


def measure(steps: dict[str, list[Step]], path: Path, gpu: dict[str, Any], seconds: float) -> bool:
    """Count missing launches for about `seconds`, writing the record at `path` after each portion.

    Every launch is counted once before any is counted again. Returns whether the record is complete.
    """
    points, start, complete = known_points(path, steps), time.monotonic(), True
    for runs in range(1, max(RUNS.values()) + 1):
        every = [step for kind, which in steps.items() if runs <= RUNS[kind] for step in which]
        for portion in portions(to_count(every, points, runs)):
            begun = time.monotonic()
            left = seconds - (begun - start)
            if left < STARTING:
                print(f"no time is left for {portion[0].group} and {len(portion) - 1} other launches", flush=True)
                return False
            try:
                rows = count(portion, left)
            except TimeoutError as error:
                print(error, flush=True)
                return False
            except RuntimeError as error:  # the other portions are still worth counting
                print(f"{portion[0].group} to {portion[-1].group}: {error}", flush=True)
                complete = False
                continue
            each = (time.monotonic() - begun) / len(portion)
            print(f"run {runs}: {len(portion)} launches, {1000 * each:.0f} ms each", flush=True)
            for step, row in zip(portion, rows, strict=True):
                found = points.setdefault(_key(step.names), {**step.names, "code_sha256": step.code, "counts": []})
                found["counts"] = [*found["counts"], [row.get(metric) for metric in METRICS]][-max(RUNS.values()) :]
                if step.first and (name := (step.names.get("ladder"), step.names.get("rung"))) in NONDETERMINISTIC:
                    source = expand_includes(load_ladder(name[0])[name[1]].path)
                    keep_code(_kept_beside(path, name), step.compiled, source)
            _write(path, steps, points, gpu)
    return complete


def _write(path: Path, steps: dict[str, list[Step]], points: Points, gpu: dict[str, Any]) -> None:
    order = {_key(step.names): n for which in steps.values() for n, step in enumerate(which)}
    every = sorted(points.values(), key=lambda point: order.get(_key(point), -1))
    data = {
        **hardware.origin(),
        "tool": nsight.version(),
        "nvrtc": compiler(steps),
        "device": gpu,
        "metrics": METRICS,
        "rungs": [point for point in every if "ladder" in point],
        "patterns": [point for point in every if "label" in point],
    }
    records.save(path, data, AgreementRecord, dump(data))


def write_prepared(file: Path, kinds: Sequence[str] = tuple(STEPS), ladders: Sequence[str] = ()) -> None:
    """Compile the launches of ``kinds``, or of the rungs of ``ladders``, into a file; needs no GPU."""
    file.write_bytes(lzma.compress(pickle.dumps(prepare(kinds, ladders))))


def read_prepared(file: Path) -> dict[str, list[Step]]:
    """Read the launches that ``write_prepared`` wrote."""
    return pickle.loads(lzma.decompress(file.read_bytes()))


def record_agreement(
    kinds: Sequence[str] = tuple(STEPS),
    ladders: Sequence[str] = (),
    seconds: float = 600,
    folder: Path | None = None,
    prepared: Path | None = None,
) -> tuple[Path, bool]:
    """Count what is missing on this GPU and write it below ``folder`` (``records/<gpu>`` by default).

    ``ladders`` restricts the rungs; no launch that would exceed ``seconds`` is begun. Returns the file, and whether it
    is complete. Raises RecordError if a part would be counted with another compiler than the rest of the file.
    """
    steps = prepare(kinds, ladders) if prepared is None else read_prepared(prepared)
    gpu = hardware.device_block()
    path = record_path(hardware.gpu_slug(gpu["name"]), folder)
    if ladders or set(kinds) != set(STEPS):
        _refuse_another_compiler(path, compiler(steps))
    return path, measure({kind: steps[kind] for kind in kinds}, path, gpu, seconds)


def _refuse_another_compiler(path: Path, version: str) -> None:
    """Raise RecordError for another compiler: a file holds the counts of one compiler's code, so counting a part with
    another would drop all the rest."""
    if path.exists() and (held := records.load(path, AgreementRecord).nvrtc) != version:
        raise records.RecordError(
            f"{path}: its counts are of NVRTC {held}, and here is {version}; count everything: climb agreement"
        )


def dump(data: dict[str, Any]) -> str:
    """Format the record as text: one launch per line."""
    head = {key: value for key, value in data.items() if key not in STEPS}
    text = json.dumps(head, indent=1)[:-2]
    for which in STEPS:
        rows = ",\n".join("  " + json.dumps(point) for point in data[which])
        text += f',\n "{which}": [\n{rows}\n ]'
    return text + "\n}\n"
