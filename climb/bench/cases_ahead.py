"""Make cases before they are measured, in separate processes: ``python -m climb.bench.cases_ahead``.

Random inputs come from one stream of numbers, so one core makes them; several cases at once keep several cores busy
while the GPU checks and its libraries choose algorithms. The processes are stopped while the GPU is sampled: only the
measuring process runs then. A case arrives as anonymous shared memory. An error here costs only time: if a case does
not arrive, the measuring process makes it itself.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from climb.bench import cuda
from climb.bench.processes import end_with_parent
from climb.bench.registry import load_ladder
from climb.paths import IMPORT_ROOT

#: The number of cases made at once, and the bytes of arguments beyond which a case is left to the measuring process.
WORKERS, MOST_BYTES = 4, 4_500_000_000
_PAGE = 4096
Made = dict[str, dict[str, np.ndarray]]


def workers_here() -> int:
    """Return how many worker processes suit this machine: none without a GPU, 16 cores, 100 GB and memfd_create."""
    if cuda.backend != "cupy" or not hasattr(os, "memfd_create") or (os.cpu_count() or 1) < 4 * WORKERS:
        return 0
    return WORKERS if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 100e9 else 0


class CasesAhead:
    """The cases of a run, ``(ladder, size)`` in the order in which they are measured, made by several processes."""

    def __init__(self, cases: Sequence[tuple[str, dict[str, Any]]], seed: int, workers: int):
        self._cases, self._seed = list(cases), seed
        self._workers = [_Worker() for _ in range(min(workers, len(self._cases)))]
        self._next = 0
        for index, worker in enumerate(self._workers):
            self._ask(worker, index)

    def take(self, ladder: str, size: dict[str, Any]) -> Made | None:
        """The ``inputs``, ``reference`` and ``magnitudes`` of the next case of this ladder and size, or None."""
        if not self._workers:
            return None
        try:
            index = self._cases.index((ladder, size), self._next)
            self._next = index + 1
            worker = self._workers[index % len(self._workers)]
            while worker.asked is not None and worker.asked < index:  # the case of a ladder that has failed since
                worker.answer()
                self._ask(worker, index)
            if worker.asked != index:
                return None
            found = worker.answer()
            self._ask(worker, index + len(self._workers))
            return found
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"cases are not made ahead any more: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            self.close()
            return None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the processes within a `with` block."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def close(self) -> None:
        """End the processes. Arrays already taken stay valid."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.wait()
        self._workers = []

    def _ask(self, worker: _Worker, index: int) -> None:
        worker.asked = index if index < len(self._cases) else None
        if worker.asked is not None:
            ladder, size = self._cases[index]
            worker.ask({"ladder": ladder, "size": size, "seed": self._seed})

    def _signal(self, number: int) -> None:
        for worker in self._workers:
            worker.process.send_signal(number)


class _Worker:
    """A process that makes cases one after the other."""

    def __init__(self) -> None:
        threads = str(max(2, (os.cpu_count() or 1) // WORKERS))
        own = {
            "WORKLOG_BACKEND": "emulator",  # it must not touch the GPU
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        self.asked: int | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "climb.bench.cases_ahead"],
            cwd=IMPORT_ROOT,
            env={**os.environ, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, case: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(case) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Made | None:
        """Return the case asked for, or None if the process could not make it. Raises ValueError if the process has
        ended."""
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        if said is None:
            return None
        handle = os.open(f"/proc/{self.process.pid}/fd/{said['handle']}", os.O_RDWR)
        try:
            shared = mmap.mmap(handle, said["bytes"], flags=mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0))
        finally:
            os.close(handle)
        made: Made = {"inputs": {}, "reference": {}, "magnitudes": {}}
        for group, name, dtype, shape, offset in said["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            made[group][name] = np.frombuffer(shared, np.dtype(dtype), count, offset).reshape(shape)
        return made


def make(ladder_name: str, size: dict[str, Any], seed: int) -> Made | None:
    """Make the inputs, the reference and the magnitudes of a case; None if they are too large."""
    ladder = load_ladder(ladder_name)
    problem = ladder.problem
    arguments = [(a.extents(size), np.dtype(a.dtype)) for a in problem.arguments]
    if sum(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize for shape, dtype in arguments) > MOST_BYTES:
        return None
    inputs = ladder.inputs(size, seed)
    with np.errstate(all="ignore"):
        reference = problem.reference(inputs, size)
    terms = problem.reference_magnitude
    return {"inputs": inputs, "reference": reference, "magnitudes": terms(inputs, size) if terms else {}}


def shared(made: Made) -> tuple[int, dict[str, Any]]:
    """Return a handle of shared memory that holds all arrays, and the description that ``answer`` needs to read
    them."""
    listed, arrays, offset = [], [], 0
    for group, members in made.items():
        for name, array in members.items():
            array = np.asarray(array, order="C")
            if array.dtype.hasobject:
                raise TypeError(f"{group} {name} is no array of numbers")
            listed.append([group, name, array.dtype.str, array.shape, offset])
            arrays.append((offset, array))
            offset += -(-array.nbytes // _PAGE) * _PAGE
    handle = os.memfd_create("case")
    total = max(offset, _PAGE)
    os.ftruncate(handle, total)
    memory = mmap.mmap(handle, total)
    for at, array in arrays:
        np.frombuffer(memory, array.dtype, array.size, at).reshape(array.shape)[...] = array
    return handle, {"handle": handle, "bytes": total, "arrays": listed}


def main() -> int:
    """Make the cases that standard input names, one per line, and answer each with one line."""
    handle = None
    for line in sys.stdin:
        if handle is not None:
            os.close(handle)  # the next request shows that the last answer was taken
        handle, said = None, None
        try:
            case = json.loads(line)
            if (made := make(case["ladder"], case["size"], case["seed"])) is not None:
                handle, said = shared(made)
            del made
        except Exception as error:  # the measuring process will make the case, and report what is wrong with it
            print(f"{line.strip()}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        print(json.dumps(said), flush=True)
    return 0


if __name__ == "__main__":
    end_with_parent()
    os.nice(5)
    sys.exit(main())
