"""Run random programs on a GPU and on the emulator, and compare their outputs."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import hardware, records
from climb.emulator import EmulatorError
from climb.toolchain.nvrtc import nvrtc_version
from climb.validation.fuzzing import GRID, KINDS, Program, digest, emulate, program, record_path
from climb.validation.schema import FuzzRecord

#: Number of programs of each kind whose hash the record keeps.
KEPT = 40
#: Number of programs that a process emulates at a time, and that a file of `prepare` holds.
PART = 50


@dataclass(frozen=True)
class Done:
    """The emulator's outputs of a program; `error` is its message if it refused the program or reported a fault."""

    kind: str
    seed: int
    cubin: bytes
    outputs: list[np.ndarray]
    error: str = ""


def done(job: tuple[str, int]) -> Done:
    """Compile and emulate the program of a kind and a seed."""
    one = program(*job)
    compiled = one.compiled()
    try:
        return Done(*job, compiled.cubin, emulate(one, compiled))
    except EmulatorError as error:
        return Done(*job, compiled.cubin, [], str(error))


def prepare(jobs: Sequence[tuple[str, int]], folder: Path, workers: int | None = None) -> None:
    """Emulate the programs in several processes, into files of `folder`. Needs no GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [list(jobs[n : n + PART]) for n in range(0, len(jobs), PART)]
    with ProcessPoolExecutor(workers) as pool:
        for number, part in enumerate(pool.map(_part, parts)):
            Path(folder, f"{number}.pickle").write_bytes(part)


def _part(jobs: list[tuple[str, int]]) -> bytes:
    return pickle.dumps([done(job) for job in jobs])


def on_gpu(one: Program, cubin: Path) -> list[np.ndarray]:
    """Run the program on the GPU. Returns its outputs."""
    import cupy

    arrays = [cupy.asarray(array) for array in one.arrays]
    cupy.RawModule(path=str(cubin)).get_function("k")((GRID,), (one.threads,), tuple(arrays))
    return [cupy.asnumpy(arrays[n]) for n in one.outputs]


def compare(folder: Path) -> dict[str, Any]:
    """Run the programs that `prepare` has left in `folder` on the GPU. Returns the record."""
    kinds = {kind: {"programs": 0, "words": 0, "seeds": [], "different": [], "refused": []} for kind in KINDS}
    hashes: dict[str, dict[str, str]] = {kind: {} for kind in KINDS}
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(folder.glob("*.pickle"), key=lambda path: int(path.stem)):
            for found in pickle.loads(path.read_bytes()):
                # CuPy caches modules by path, so each program needs its own file.
                cubin = Path(scratch, f"{found.kind}_{found.seed}.cubin")
                cubin.write_bytes(found.cubin)
                theirs = on_gpu(program(found.kind, found.seed), cubin)
                mine = kinds[found.kind]
                mine["programs"] += 1
                mine["seeds"].append(found.seed)
                if len(hashes[found.kind]) < KEPT:
                    hashes[found.kind][str(found.seed)] = digest(theirs)
                if found.error:
                    mine["refused"].append([found.seed, found.error])
                    continue
                mine["words"] += sum(array.size for array in theirs)
                unequal = [np.flatnonzero(a != b) for a, b in zip(found.outputs, theirs, strict=True)]
                if any(at.size for at in unequal):
                    shown = [
                        [[int(n), int(a[n]), int(b[n])] for n in at[:8]]
                        for at, a, b in zip(unequal, found.outputs, theirs, strict=True)
                    ]
                    mine["different"].append([found.seed, *shown])
    for mine in kinds.values():
        seeds = mine.pop("seeds")
        mine["seeds"] = [min(seeds, default=0), max(seeds, default=-1)]
    return {
        **hardware.origin(),
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "device": hardware.device_block(),
        "kinds": kinds,
        "hashes": hashes,
    }


def record_fuzzing(
    jobs: Sequence[tuple[str, int]],
    workers: int | None = None,
    folder: Path | None = None,
    prepared: Path | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Run the programs on this GPU and write the outcome below ``folder`` (``records/<gpu>`` by default).

    ``prepared`` is a folder that ``prepare`` has filled. Returns the file and the record.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if prepared is None:
            prepare(jobs, Path(scratch), workers)
        found = compare(prepared or Path(scratch))
    path = record_path(hardware.gpu_slug(found["device"]["name"]), folder)
    records.save(path, found, FuzzRecord)
    return path, found
