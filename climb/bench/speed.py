"""The speed of the book's ladders on the emulator with counters on, one line per ladder; ``climb speed`` prints it.

Each ladder runs at the last of the sizes at which its rungs are checked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from climb.bench import counting
from climb.bench.ladder import Ladder
from climb.emulator.execution.workers import number_of_workers, workers


@dataclass(frozen=True)
class Speed:
    """The rungs of a ladder that take the size, the instructions that their threads execute, and the time for all: in
    one process, and in the number of processes that launches use."""

    ladder: str
    rungs: int
    thread_instructions: int
    seconds: tuple[float, float]

    def __str__(self) -> str:
        millions = self.thread_instructions / 1e6
        columns = "".join(f"{1e3 * each:11.1f} ms {millions / each:8.1f}" for each in self.seconds)
        return f"{self.ladder:18} {self.rungs:5} {millions:16.2f}{columns}"


def head() -> str:
    """Return the line above those of the ladders."""
    columns = "".join(f"{title:>14} {'M per s':>8}" for title in ("1 process", f"{number_of_workers()} processes"))
    return f"{'ladder':18} {'rungs':>5} {'thread instr. M':>16}{columns}"


def speed_of(ladder: Ladder) -> Speed:
    """Run each rung three times, first to compile and translate it, then in one process, and in several."""
    size = ladder.problem.check[-1]
    rungs = [rung for rung in ladder if rung.rung.requires(size) is None]
    executed, seconds = 0, [0.0, 0.0]
    for rung in rungs:
        executed += sum(one.thread_instructions for one in counting.launch_counters(rung, size))
        for column, number in enumerate((1, number_of_workers())):
            with workers(number):
                start = time.perf_counter()
                counting.launch_counters(rung, size)
                seconds[column] += time.perf_counter() - start
    return Speed(ladder.name, len(rungs), executed, tuple(seconds))
