"""Compare the emulator with a GPU's results of the foreign programs: the bits of their results, and every count."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from climb.bench import records
from climb.emulator import Counters
from climb.toolchain import Compiled
from climb.validation.agreement import Count, counts, reasons
from climb.validation.foreign.launches import codes, launches
from climb.validation.foreign.program import Program, Steps
from climb.validation.schema import ProgramRecord


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with a GPU's results of the programs; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "programs.json"


@functools.cache
def record(gpu: str = records.DEFAULT_GPU) -> ProgramRecord:
    """Read the committed results and counts of a GPU. Raises LookupError if there are none."""
    path = record_path(records.gpu_with("emulator/programs.json", gpu))
    if not path.exists():
        raise LookupError(f"no counts of programs on {gpu}; on that GPU, run: climb agreement --only programs")
    return records.load(path, ProgramRecord)


def result(program: Program, gpu: str = records.DEFAULT_GPU) -> dict[str, Any] | None:
    """Return the GPU's result: ``wrong`` is empty if NumPy agrees, ``outputs_sha256`` the hash of its results."""
    return next((dict(one) for one in record(gpu).results if one["program"] == program.name), None)


def compare_program(
    program: Program,
    steps: Steps,
    compiled: Compiled,
    counted: Sequence[Counters],
    gpu: str = records.DEFAULT_GPU,
) -> tuple[Count, ...]:
    """Return all counts of all launches of a program. ``counted``: the emulator's counters of each launch.

    Raises LookupError if the program was never counted, or if its code has changed since.
    """
    held = record(gpu)
    points = [point for point in held.launches if point["program"] == program.name]
    today = codes(steps, compiled)
    if [point["code_sha256"] for point in points] != today:
        how = "stale counts" if points else "no counts"
        raise LookupError(f"{how} of the program {program.name}; on a GPU, run: climb agreement --only programs")
    out: list[Count] = []
    for point, launch, counters in zip(points, launches(steps), counted, strict=True):
        what = program.name + (f", launch {point['launch'] + 1}" if len(points) > 1 else "")
        runs = [dict(zip(held.metrics, run, strict=True)) for run in point["counts"]]
        out += counts(what, counters, runs, functools.cache(functools.partial(reasons, compiled, launch, counters)))
    return tuple(out)
