"""The common part of searches for launch configurations: compile, verify and time candidates, write the results.

A search of a ladder lists its candidates; :func:`run` measures all of them on the GPU of this machine, or those that a
coordinate descent meets, and writes two files: ``search/<ladder>.json`` with every trial, and ``tuning/<ladder>.json``
with the tables that the ladder reads.
"""

from __future__ import annotations

import datetime
import itertools
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from climb import load_ladder
from climb.bench import hardware, identity, records
from climb.bench.identity import expand_includes
from climb.bench.ladder import Ladder
from climb.bench.problem import Launch, Size

SAMPLES = 15
FLUSH_BYTES = 1 << 28
#: Dynamic shared memory above which a kernel has to ask for it.
UNASKED_BYTES = 48 << 10
#: By how much a candidate must be faster to replace the one in today's table. A candidate's time differs by so much
#: between two searches, and a table that changes with the noise makes every record of its launches stale.
MARGIN = 0.03
HOW = f"L2 cold and clean, CUDA events around the launch, median of {SAMPLES}"


#: Rung, size and values of a candidate.
_Place = tuple[str, tuple[tuple[str, int], ...], tuple[int, ...]]


@dataclass(frozen=True)
class Candidate:
    """One launch configuration: ``values`` are what the search varies, in the order of its columns."""

    rung: str
    size: Size
    values: tuple[int, ...]
    launch: Launch


@dataclass(frozen=True)
class Trial:
    """A candidate that was measured: registers a thread, seconds, and the relative error."""

    candidate: Candidate
    registers: int
    seconds: float
    error: float


def compile_all(ladder: str, candidates: Sequence[Candidate]) -> dict[tuple[str, str], int]:
    """Compile the candidates into CuPy's cache, in several processes: registers by rung and kernel, -1 if refused."""
    kernels = list(dict.fromkeys((c.rung, c.launch.kernel) for c in candidates))
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        found = pool.map(_registers, [ladder] * len(kernels), *zip(*kernels, strict=True), chunksize=4)
        return dict(zip(kernels, found, strict=True))


def measure(ladder: Ladder, candidates: Sequence[Candidate]) -> list[Trial]:
    """Verify and time the candidates, size by size. Raises RuntimeError for a wrong result."""
    if not candidates:
        return []
    registers = compile_all(ladder.name, candidates)
    cold = _Cold()
    trials: list[Trial] = []
    for size in _unique(c.size for c in candidates):
        arrays, expected = _arrays(ladder, size)
        for one in (c for c in candidates if dict(c.size) == size):
            used = registers[one.rung, one.launch.kernel]
            if used > 0:
                trials.append(_trial(ladder, one, used, arrays, expected, cold))
        print(f"{ladder.name} {size}: {len(trials)} trials so far", file=sys.stderr)
    return trials


def descend(
    candidates: Sequence[Candidate],
    starts: Sequence[Candidate],
    measure: Callable[[Sequence[Candidate]], Sequence[Trial]],
    held: Sequence[Candidate] = (),
) -> list[Trial]:
    """Measure the candidates that a coordinate descent meets, for each rung and size of ``starts``; return the trials.
    Those of today's tables, ``held``, are measured in the first round.

    A round measures every candidate that differs from the fastest so far in one value at most; the descent ends where
    no such candidate is faster. The rounds of all rungs and sizes are measured together, so that compiling keeps every
    core busy. Raises ValueError for a start that is no candidate.
    """
    known = {_place(one): one for one in candidates}
    if strangers := [one for one in (*starts, *held) if _place(one) not in known]:
        raise ValueError(f"{strangers[0].launch.kernel} is where the search starts, but it is no candidate")
    best = {_place(one)[:2]: one.values for one in starts}
    trials: dict[_Place, Trial] = {}
    tried: set[_Place] = set()
    while True:
        near = {place for place in known if place[:2] in best and _differing(place[2], best[place[:2]]) <= 1}
        near |= {_place(one) for one in held}
        if not (wanted := [known[place] for place in known if place in near - tried]):
            return list(trials.values())
        tried |= near
        trials |= {_place(trial.candidate): trial for trial in measure(wanted)}
        for (rung, size, values), trial in trials.items():
            leader = trials.get((rung, size, best[rung, size]))
            if leader is None or trial.seconds < leader.seconds:
                best[rung, size] = values


def _place(one: Candidate) -> _Place:
    return one.rung, tuple(sorted(one.size.items())), one.values


def _differing(values: tuple[int, ...], others: tuple[int, ...]) -> int:
    return sum(a != b for a, b in zip(values, others, strict=True))


def fastest(trials: Iterable[Trial], rung: str, size: Size, held: tuple[int, ...] | None = None) -> Trial:
    """The fastest trial of a rung at a size, or that of the values ``held`` unless it is slower by more than MARGIN.

    Raises LookupError where there is none.
    """
    found = [t for t in trials if t.candidate.rung == rung and dict(t.candidate.size) == dict(size)]
    if not found:
        raise LookupError(f"no candidate of {rung} ran at {dict(size)}")
    best = min(found, key=lambda trial: trial.seconds)
    kept = [t for t in found if t.candidate.values == held and t.seconds <= (1 + MARGIN) * best.seconds]
    return (kept or [best])[0]


def fastest_together(
    trials: Sequence[Trial], rungs: Sequence[str], sizes: Sequence[Size], held: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """The values that are fastest over several rungs and sizes: the least sum of times, each over the best of its kind.
    The values ``held`` stay unless this sum is greater by more than MARGIN.

    Raises LookupError where no values ran with all of them.
    """
    shares: dict[tuple[int, ...], list[float]] = {}
    for rung, size in itertools.product(rungs, sizes):
        best = fastest(trials, rung, size).seconds
        for trial in trials:
            if trial.candidate.rung == rung and dict(trial.candidate.size) == dict(size):
                shares.setdefault(trial.candidate.values, []).append(trial.seconds / best)
    whole = {values: sum(found) for values, found in shares.items() if len(found) == len(rungs) * len(sizes)}
    if not whole:
        raise LookupError(f"no values ran with all of {', '.join(rungs)} at every size")
    best = min(whole, key=whole.__getitem__)
    return held if held in whole and whole[held] <= (1 + MARGIN) * whole[best] else best


def source_sha256(ladder: Ladder, rungs: Iterable[str]) -> str:
    """The hash of what a search measures: the code of these rungs with their includes."""
    return identity.code_sha256("\n".join(expand_includes(ladder[rung].path) for rung in rungs))


def run(
    ladder: Ladder,
    candidates: Sequence[Candidate],
    columns: Sequence[str],
    tables: Callable[[Sequence[Trial]], Mapping[str, Mapping[str, Any]]],
    folder: Path | None = None,
    starts: Sequence[Candidate] = (),
    held: Sequence[Candidate] = (),
) -> Path:
    """Measure, and write trials and tables below ``folder`` (``records/<gpu>`` by default).

    ``columns`` name the values of a candidate; ``tables`` makes each table, with its columns and rows, of the trials.
    With ``starts``, one for each rung and size, a coordinate descent from there chooses what is measured besides
    ``held``, the candidates of today's tables; otherwise all candidates are. Returns the path of the trials. Raises
    RuntimeError for a wrong result.
    """
    if starts:
        trials = descend(candidates, starts, lambda wanted: measure(ladder, wanted), held)
    else:
        trials = measure(ladder, candidates)
    device = hardware.device_block()
    sizes = _unique(c.size for c in candidates)
    command = f"climb search {ladder.name}"
    rungs = list(dict.fromkeys(c.rung for c in candidates))
    head = {
        "ladder": ladder.name,
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": hardware.commit(),
        "device": device,
        "how": f"{HOW}; coordinate descent among {len(candidates)} candidates" if starts else HOW,
        "source_sha256": source_sha256(ladder, rungs),
        "sizes": sizes,
        "columns": ["size", "rung", *columns, "registers", "seconds", "error"],
    }
    ordered = sorted(trials, key=lambda t: (sizes.index(dict(t.candidate.size)), t.candidate.rung, t.seconds))
    rows = [
        [sizes.index(dict(t.candidate.size)), t.candidate.rung, *t.candidate.values, t.registers, t.seconds, t.error]
        for t in ordered
    ]
    place = folder or records.RECORDS / hardware.gpu_slug(device["name"])
    path = _write(place / "search" / f"{ladder.name}.json", head, {"trials": rows})
    about = {
        "ladder": ladder.name,
        "command": command,
        "device": {"name": device["name"]},
        "provenance": f"the fastest trials of search/{ladder.name}.json, {head['date']}; "
        f"what was in the table before stayed if it was slower by at most {MARGIN:.0%}",
    }
    write_tables(place / "tuning" / f"{ladder.name}.json", about, tables(trials))
    return path


def write_tables(path: Path, about: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a ladder's tables, a row on each line."""
    parts = []
    for name, table in tables.items():
        rows = ",\n".join("    " + json.dumps(row) for row in table["rows"])
        parts.append(f'  "{name}": {{\n   "columns": {json.dumps(table["columns"])},\n   "rows": [\n{rows}\n   ]\n  }}')
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(about, indent=1)[:-2] + ',\n "tables": {\n' + ",\n".join(parts) + "\n }\n}\n"
    path.write_text(text, encoding="utf-8")


def _write(path: Path, head: Mapping[str, Any], rows: Mapping[str, list[list[Any]]]) -> Path:
    """Write an object whose lists of rows have a row on each line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(head, indent=1)[:-2]
    for name, lines in rows.items():
        text += f',\n "{name}": [\n' + ",\n".join("  " + json.dumps(row) for row in lines) + "\n ]"
    path.write_text(text + "\n}\n", encoding="utf-8")
    return path


def _unique(sizes: Iterable[Size]) -> list[dict[str, int]]:
    found: list[dict[str, int]] = []
    for size in sizes:
        if dict(size) not in found:
            found.append(dict(size))
    return found


def _function(ladder: Ladder, rung: str, kernel: str) -> Any:
    """The kernel, as ``BoundRung`` compiles it, so that CuPy's cache has it for both."""
    import cupy

    bound = ladder[rung]
    module = cupy.RawModule(code=expand_includes(bound.path), options=bound.options, name_expressions=(kernel,))
    return module.get_function(kernel)


def _registers(ladder: str, rung: str, kernel: str) -> int:
    """Compile one kernel in a process of its own; its registers a thread, or -1 where the compiler refuses it."""
    import cupy

    try:
        return int(_function(load_ladder(ladder), rung, kernel).num_regs)
    except cupy.cuda.compiler.CompileException:
        return -1


def _arrays(ladder: Ladder, size: Size) -> tuple[dict[str, Any], np.ndarray]:
    """The problem's arrays on the device, and the expected output, of a problem with one output."""
    import cupy

    problem = ladder.problem
    host = ladder.inputs(size)
    (output,) = problem.outputs
    arrays = {name: cupy.asarray(value) for name, value in host.items()}
    arrays[output.name] = cupy.empty(output.extents(size), output.dtype)
    return arrays, np.asarray(problem.reference(host, size)[output.name])


def _trial(
    ladder: Ladder, one: Candidate, registers: int, arrays: dict[str, Any], expected: np.ndarray, cold: _Cold
) -> Trial:
    import cupy

    function, launch = _function(ladder, one.rung, one.launch.kernel), one.launch
    if launch.shared_mem > UNASKED_BYTES:
        function.max_dynamic_shared_size_bytes = launch.shared_mem
    args = tuple(arrays[a] if isinstance(a, str) else a for a in launch.args)
    out = arrays[ladder.problem.outputs[0].name]
    out.fill(np.nan)
    function(launch.grid, launch.block, args, shared_mem=launch.shared_mem)
    error = float(np.abs(cupy.asnumpy(out) - expected).max() / np.abs(expected).max())
    if not error <= ladder.problem.tolerance(one.size):
        raise RuntimeError(f"{launch.kernel} is wrong at {dict(one.size)}: error {error:.3g}")
    samples = []
    for _ in range(SAMPLES):
        cold()
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        function(launch.grid, launch.block, args, shared_mem=launch.shared_mem)
        end.record()
        end.synchronize()
        samples.append(cupy.cuda.get_elapsed_time(begin, end) * 1e-3)
    return Trial(one, registers, float(f"{statistics.median(samples):.4g}"), float(f"{error:.2g}"))


class _Cold:
    """Overwrites the L2 cache, then reads through it, so that nothing is left to be written back."""

    def __init__(self) -> None:
        import cupy

        self.flush, self.clean = cupy.empty(FLUSH_BYTES, cupy.uint8), cupy.zeros(FLUSH_BYTES // 4, cupy.float32)
        self.sink = cupy.empty((), cupy.float32)

    def __call__(self) -> None:
        self.flush.fill(1)
        self.clean.sum(out=self.sink)
