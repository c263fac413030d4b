"""Launch kernels twice, in one process and in several, and compare all that a launch leaves behind."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

import numpy as np
import pytest

from climb.emulator import Counters, EmulatorError, Kernel, KernelWarning
from climb.emulator.execution import ahead, kernel
from climb.emulator.execution.processes import Pool, Worker, pool
from climb.emulator.execution.workers import workers
from climb.emulator.memory.device_memory import Allocation

PROCESSES, BATCHES = 3, 5


@dataclass
class Tally:
    """The number of launches that took the results of workers, and of those that refused them."""

    taken: int = 0
    refused: int = 0


def start_workers() -> None:
    """Start the workers, unless they run, and wait for them."""
    assert pool.start(PROCESSES - 1) == PROCESSES - 1, "workers do not start"


@contextmanager
def both_ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tally]:
    """Make every launch inside run twice from the same memory, alone and with workers, in batches of a fifth of its
    blocks. A difference in memory, counters, output, warnings or errors is an AssertionError.

    A launch whose workers were refused because intervals of loads are coarse runs once more, with exact loads.
    """
    tally, launch, finished = Tally(), Kernel.launch, ahead.Ahead.finished

    def counted(self: ahead.Ahead, number: int) -> bool:
        outcome = finished(self, number)
        if self.workers and number == self._first:
            tally.taken += outcome
            tally.refused += not outcome
        return outcome

    def twice(self: Kernel, *args: Any, **options: Any) -> Counters:
        if options.get("trace") is not None or not self._independent:
            return launch(self, *args, **options)
        self._experience = ahead.Experience()
        memory = [one for held in (options["memory"], self._translated.variables) for one in held.live()]
        before = [_contents(one) for one in memory]
        alone = _outcome(launch, self, args, options, 1)
        after = [_contents(one) for one in memory]
        for _ in range(2):
            _restore(memory, before)
            refused, known = tally.refused, set(self._experience.followed)
            several = _outcome(launch, self, args, options, PROCESSES)
            for one, wanted in zip(memory, after, strict=True):
                assert _contents(one) == wanted, f"{self.name}: {one.name}"
            assert several[1:] == alone[1:], self.name
            if tally.refused == refused or self._experience.followed == known:
                break
        print(alone[3], end="")
        for text in alone[4]:
            warnings.warn(text, KernelWarning, stacklevel=2)
        if alone[0] is not None:
            raise alone[0]
        return alone[2]

    def idle(self: Pool, number: int, _: float) -> list[Worker]:
        return [worker for worker in self.workers[:number] if worker.poll(10)]

    def batch_size(blocks: int, threads: int, cluster: int, wide: bool) -> int:
        return -(-blocks // cluster // BATCHES) * cluster

    start_workers()
    with monkeypatch.context() as patched:
        patched.setattr(ahead, "WORTH", 0)
        patched.setattr(ahead, "COPYING", 0)
        patched.setattr(ahead.Ahead, "finished", counted)
        patched.setattr(Pool, "idle", idle)
        patched.setattr(kernel, "batch_size", batch_size)
        patched.setattr(Kernel, "launch", twice)
        yield tally


def _outcome(launch: Any, on: Kernel, args: Any, options: Any, processes: int) -> tuple:
    """The error or None, its type and text, the counters, what was printed, and the warnings."""
    error, printed = None, StringIO()
    with workers(processes), warnings.catch_warnings(record=True) as warned, redirect_stdout(printed):
        warnings.simplefilter("always")
        try:
            counters = launch(on, *args, **options)
        except EmulatorError as caught:
            error, counters = caught, caught.counters
    texts = [str(each.message) for each in warned]
    return error, (type(error), str(error)), counters, printed.getvalue(), texts


def _contents(one: Allocation) -> tuple[bytes, bytes | None]:
    """The bytes, and which of them hold a value; None for all."""
    written = None if one.written is None or one.written.all() else one.written.tobytes()
    return one.data.tobytes(), written


def _restore(memory: list[Allocation], contents: list[tuple[bytes, bytes | None]]) -> None:
    for one, (data, written) in zip(memory, contents, strict=True):
        one.data[:] = np.frombuffer(data, np.uint8)
        one.written = None if written is None else np.frombuffer(written, np.uint8).copy()
