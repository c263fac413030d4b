"""How fast the book's ladders run on the emulator with counters on, one line a ladder; ``climb speed`` prints them.

Each ladder runs at the last of the sizes at which its rungs are checked.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from climb.bench import counting
from climb.bench.ladder import Ladder


@dataclass(frozen=True)
class Speed:
    """The rungs of a ladder that take the size, the instructions that their threads execute, and the time for all."""

    ladder: str
    rungs: int
    thread_instructions: int
    seconds: float

    def __str__(self) -> str:
        millions = self.thread_instructions / 1e6
        rate = millions / self.seconds
        return f"{self.ladder:18} {self.rungs:5} {1e3 * self.seconds:9.1f} {millions:16.2f} {rate:13.1f}"


HEAD = f"{'ladder':18} {'rungs':>5} {'run ms':>9} {'thread instr. M':>16} {'M per second':>13}"


def speed_of(ladder: Ladder) -> Speed:
    """Run each rung twice and take the second time: the first run compiles and translates."""
    size = ladder.problem.check[-1]
    rungs = [rung for rung in ladder if rung.rung.requires(size) is None]
    executed, seconds = 0, 0.0
    for rung in rungs:
        counting.launch_counters(rung, size)
        start = time.perf_counter()
        executed += sum(one.thread_instructions for one in counting.launch_counters(rung, size))
        seconds += time.perf_counter() - start
    return Speed(ladder.name, len(rungs), executed, seconds)
