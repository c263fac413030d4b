"""How fast the book's ladders run on the emulator, counters on: ``python -m climb.bench.speed``.

A line for each ladder, at the largest of the sizes at which its rungs are checked. ``python -m climb.emulator.bench``
prints it below its own kernels.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from climb.bench import counting
from climb.bench.ladder import Ladder
from climb.bench.registry import ladder_names, load_ladder


@dataclass(frozen=True)
class Pace:
    """Of a ladder: how many of its rungs take the size, what their threads execute, and how long all that takes."""

    ladder: str
    rungs: int
    thread_instructions: int
    seconds: float

    def __str__(self) -> str:
        millions = self.thread_instructions / 1e6
        rate = millions / self.seconds
        return f"{self.ladder:18} {self.rungs:5} {1e3 * self.seconds:9.1f} {millions:16.2f} {rate:13.1f}"


HEAD = f"{'ladder':18} {'rungs':>5} {'run ms':>9} {'thread instr. M':>16} {'M per second':>13}"


def pace(ladder: Ladder) -> Pace:
    """Run each rung twice, and take the second time: the first has compiled and translated."""
    size = ladder.problem.check[-1]
    rungs = [rung for rung in ladder if rung.rung.requires(size) is None]
    executed, seconds = 0, 0.0
    for rung in rungs:
        counting.counters(rung, size)
        start = time.perf_counter()
        executed += counting.counters(rung, size).thread_instructions
        seconds += time.perf_counter() - start
    return Pace(ladder.name, len(rungs), executed, seconds)


def main(names: Iterable[str] = ()) -> int:
    """Print a line for each ladder, or for each of those named."""
    print(f"\n{HEAD}", flush=True)
    for name in names or ladder_names():
        print(pace(load_ladder(name)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
