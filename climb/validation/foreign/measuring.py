"""Run the foreign programs on a GPU: compare their results with NumPy's, and count their launches under ``ncu``."""

from __future__ import annotations

import hashlib
import lzma
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import hardware, records
from climb.validation import nsight
from climb.validation.agreement import METRICS
from climb.validation.agreement.measuring import AT_ONCE, STARTING, Step, compiler, count, placed
from climb.validation.foreign import PROGRAMS, Program
from climb.validation.foreign.launches import buffers, codes, contents, launches, outputs_sha256
from climb.validation.foreign.record import record_path
from climb.validation.schema import ProgramCounts, ProgramRecord


@dataclass(frozen=True)
class ProgramStep(Step):
    """One launch of a foreign program."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The buffers of the program by name, in the order of their first use."""
        return contents(buffers(PROGRAMS[self.names["program"]].steps()))


def program_steps(program: Program) -> Iterator[ProgramStep]:
    """Return the launches of a program, in order."""
    steps, compiled = program.steps(), program.compiled()
    _ = compiled.cubin  # compiled here
    for number, (launch, code) in enumerate(zip(launches(steps), codes(steps, compiled), strict=True)):
        names = {"program": program.name, "launch": number}
        yield ProgramStep(names, program.name, compiled, launch, code, number == 0, {})


def write_prepared(file: Path) -> None:
    """Compile all programs into a file; needs no GPU."""
    file.write_bytes(lzma.compress(pickle.dumps([list(program_steps(each)) for each in PROGRAMS.values()])))


def read_prepared(file: Path) -> list[list[ProgramStep]]:
    """Read the launches of each program, as ``write_prepared`` wrote them."""
    return pickle.loads(lzma.decompress(file.read_bytes()))


def results(groups: Sequence[Sequence[ProgramStep]]) -> dict[str, tuple[str, str]]:
    """Run programs on the GPU. For each by name: what is wrong with its results, if anything, and their hash."""
    import cupy

    modules: dict[str, Any] = {}
    found: dict[str, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for group in groups:
            key = hashlib.sha256(group[0].compiled.cubin).hexdigest()
            if key not in modules:
                path = Path(folder, f"{key}.cubin")
                path.write_bytes(group[0].compiled.cubin)
                modules[key] = cupy.RawModule(path=str(path))
            try:
                found[group[0].group] = _result(group, modules[key], cupy)
            except Exception as error:  # whatever the driver's error, the other programs are still worth running
                found[group[0].group] = (f"{type(error).__name__}: {error}"[:300], "")
    return found


def _result(group: Sequence[ProgramStep], module: Any, cupy: Any) -> tuple[str, str]:
    """Return what is wrong with a program's results, and their hash."""
    from climb.bench.binding import bound

    steps = PROGRAMS[group[0].group].steps()
    names = {id(each): name for name, each in buffers(steps).items()}
    held = placed(group[0].arrays())
    for step in group:
        function = module.get_function(step.compiled.lowered(step.launch.kernel))
        if step.launch.shared_mem > 48 * 1024:
            function.max_dynamic_shared_size_bytes = step.launch.shared_mem
        args = tuple(np.array([a]) if isinstance(a, np.generic) else bound(a, held) for a in step.launch.args)
        function(step.launch.grid, step.launch.block, args, shared_mem=step.launch.shared_mem)
    cupy.cuda.Device().synchronize()
    outputs = [cupy.asnumpy(held[names[id(each.buffer)]]) for each in steps.expected]
    wrong = ""
    for each, output in zip(steps.expected, outputs, strict=True):
        try:
            each.check(output)
        except AssertionError as error:
            wrong = wrong or str(error).strip()[:300]
    return wrong, outputs_sha256(outputs)


def portions(groups: Sequence[Sequence[ProgramStep]]) -> Iterator[list[Sequence[ProgramStep]]]:
    """Yield whole programs, about ``AT_ONCE`` launches at a time."""
    portion: list[Sequence[ProgramStep]] = []
    for group in groups:
        portion.append(group)
        if sum(map(len, portion)) >= AT_ONCE:
            yield portion
            portion = []
    if portion:
        yield portion


def record_programs(
    seconds: float = 600, folder: Path | None = None, prepared: Path | None = None
) -> tuple[Path, bool]:
    """Run and count all programs; write ``emulator/programs.json`` below ``folder`` (``records/<gpu>`` by default).

    No ``ncu`` is started that would exceed ``seconds``. Returns the file, and whether it is complete.
    """
    start = time.monotonic()
    groups = [list(program_steps(each)) for each in PROGRAMS.values()] if prepared is None else read_prepared(prepared)
    gpu = hardware.device_block()
    path = record_path(hardware.gpu_slug(gpu["name"]), folder)
    found = results(groups)
    for name, (wrong, _) in found.items():
        if wrong:
            print(f"{name}: {wrong}", flush=True)
    points: list[ProgramCounts] = []
    complete = True
    for portion in portions(groups):
        steps = [step for group in portion for step in group]
        if time.monotonic() - start + STARTING > seconds:
            print(f"no time is left for {portion[0][0].group} and what follows it", flush=True)
            complete = False
            break
        try:
            rows = count(steps, seconds - (time.monotonic() - start))
        except (RuntimeError, TimeoutError) as error:  # the others are still worth counting
            print(f"{portion[0][0].group} to {portion[-1][0].group}: {error}", flush=True)
            complete = False
            continue
        print(f"{portion[0][0].group} to {portion[-1][0].group}: {len(steps)} launches", flush=True)
        for step, row in zip(steps, rows, strict=True):
            counts = [[row.get(metric) for metric in METRICS]]
            points.append({**step.names, "code_sha256": step.code, "counts": counts})
        _write(path, groups, found, points, gpu)
    return path, complete


def _write(
    path: Path,
    groups: Sequence[Sequence[ProgramStep]],
    found: dict[str, tuple[str, str]],
    points: list[ProgramCounts],
    gpu: dict[str, Any],
) -> None:
    data = {
        **hardware.origin(),
        "tool": nsight.version(),
        "nvrtc": compiler({"programs": [step for group in groups for step in group]}),
        "device": gpu,
        "metrics": METRICS,
        "results": [{"program": name, "wrong": wrong, "outputs_sha256": sha} for name, (wrong, sha) in found.items()],
        "launches": points,
    }
    records.save(path, data, ProgramRecord)
