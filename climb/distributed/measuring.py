"""Measure the rungs of a shared ladder, on every rank at once.

A sample begins with a clean L2 cache on every GPU, like the regime "cold" of other ladders, and with a barrier on the
GPUs' own streams. Each rank then times its part with events, and the sample is the largest time of any rank. What the
host needs to issue a plan is part of it, unless a graph hides it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.bench import records
from climb.bench.checking import WrongResult
from climb.bench.cold import CacheCleaner
from climb.bench.cuda import cp
from climb.bench.problem import Size
from climb.bench.records import Point
from climb.distributed.execution import Execution
from climb.distributed.ladder import Refused, SharedLadder
from climb.distributed.plan import Place
from climb.distributed.rank import Rank
from climb.distributed.running import allocate, check

#: How many times a plan runs before it is sampled, and samples.
WARM, SAMPLES = 3, 20


@dataclass(frozen=True)
class Timed:
    """A point, and the timeline of each of its steps on rank 0 where one was asked for."""

    point: Point
    timeline: list[tuple[str, str, str, float, float]]


class Measurer:
    """Measures rungs of one ladder on this rank, together with the others, which make the same calls."""

    def __init__(self, ladder: SharedLadder, rank: Rank, samples: int = SAMPLES) -> None:
        self.ladder, self.rank, self.samples = ladder, rank, samples
        self._clean = CacheCleaner()
        self._known: dict[Any, Any] = {}

    def measure(self, name: str, size: Size, timeline: bool = False) -> Timed | None:
        """Verify a rung and sample it. Returns None on a rank that has no part in it, and where it refuses the size.

        Raises WrongResult on the rank whose outputs are wrong.
        """
        ranks = self.ladder.ranks(name, self.rank.place.ranks)
        if self.rank.place.rank >= ranks:
            return None
        rank = self.rank if ranks > 1 else Rank(Place(0, 1), self.rank.device, None, self.rank.patience)
        try:
            self.ladder.plans(name, ranks, size)
        except Refused:
            return None
        inputs, want = self._inputs(size), self._reference(name, rank.place, size)
        arrays = allocate(self.ladder, name, rank.place, size, inputs)
        run = Execution(self.ladder, name, rank, size, arrays)
        run()
        rank.wait(run.stream, f"{self.ladder.name} '{name}', first run")
        error = check(self.ladder, name, rank.place, size, arrays, want)
        steps = self._timeline(run, rank) if timeline else []
        run.capture()
        verified = {output: arrays[output].copy() for output in want}
        samples = list(self._samples(run, rank))
        self._check_again(name, arrays, verified)
        run.close()
        taken = rank.largest(np.array([*samples, error]), run.stream)
        return Timed(self._point(name, ranks, size, taken[:-1], float(taken[-1])), steps)

    def _check_again(self, name: str, arrays: dict[str, Any], verified: dict[str, Any]) -> None:
        """Compare what the last sample left with the verified outputs: plans and kernels give the same bits each time.

        Raises WrongResult.
        """
        for output, good in verified.items():
            if not bool(cp.array_equal(arrays[output], good)):
                raise WrongResult(f"{self.ladder.name} '{name}', rank {self.rank.place.rank}: {output} has changed")

    def _inputs(self, size: Size) -> dict[str, np.ndarray]:
        key = ("inputs", tuple(size.items()))
        if key not in self._known:
            self._known = {key: self.ladder.inputs(size)}  # those of one size at a time
        return self._known[key]

    def _reference(self, name: str, place: Place, size: Size) -> dict[str, np.ndarray]:
        key = (self.ladder[name].reference, place, tuple(size.items()))
        if key not in self._known:
            self.rank.says(f"{self.ladder.name}: the reference")
            self._known[key] = self.ladder.reference(name, self._inputs(size), place, size)
        return self._known[key]

    def _timeline(self, run: Execution, rank: Rank) -> list[tuple[str, str, str, float, float]]:
        steps = []
        for _ in range(WARM):
            rank.barrier(run.stream)
            steps = run.timeline()
        return steps

    def _samples(self, run: Execution, rank: Rank) -> Iterator[float]:
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        for number in range(WARM + self.samples):
            self._clean()
            rank.barrier(run.stream)
            start.record(run.stream)
            run()
            stop.record(run.stream)
            rank.wait(run.stream, f"{self.ladder.name} '{run.name}', sample {number}")
            if number >= WARM:
                yield cp.cuda.get_elapsed_time(start, stop) * 1e-3

    def _point(self, name: str, ranks: int, size: Size, samples: np.ndarray, error: float) -> Point:
        problem = self.ladder.problem
        kept = records.rounded(samples)
        p25, median, p75 = records.quantiles(kept)
        return Point(
            name=name,
            kind="rung",
            size=dict(size),
            dtype="float32",
            regime="cold",
            samples=kept,
            median_s=median,
            p25_s=p25,
            p75_s=p75,
            flops=problem.flops(size),
            bytes=problem.bytes(size),
            max_rel_error=float(f"{error:.4g}"),
            source_sha256=self.ladder.sha256(name, ranks, size),
            launch=self.ladder.launch_json(name, ranks, size),
            sampling={"criterion": "count", "warm": WARM, "of": "the slowest rank"},
            gpus=ranks,
        )
