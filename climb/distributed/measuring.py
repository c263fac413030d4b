"""Measure the rungs of a shared ladder, on every rank at once.

In the regime *cold* a sample begins with a clean L2 cache on every GPU. A kernel then holds each stream back until the
host has issued the whole plan, and a barrier lets all GPUs begin together, so no time of the host is in the sample. In
the regime *batch* runs follow each other without either, and the result is their mean: if the host takes longer to
issue a plan than the GPUs to carry it out, the mean shows the host's time. Each rank times its part with events, and a
sample is the largest time of any rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from climb.bench import records
from climb.bench.checking import WrongResult
from climb.bench.cold import CacheCleaner
from climb.bench.cuda import cp
from climb.bench.holding import Hold
from climb.bench.problem import Size
from climb.bench.records import Point
from climb.distributed.execution import Execution
from climb.distributed.ladder import Refused, SharedLadder
from climb.distributed.plan import Place
from climb.distributed.rank import Rank
from climb.distributed.recorded import ALONE
from climb.distributed.running import allocate, check

#: The runs of a plan before it is sampled, the samples, and the runs of a batch.
WARM, SAMPLES, BATCH = 3, 20, 20
#: The time for which the kernel holds a stream back before a cold sample, in nanoseconds.
HELD_NS = 2_000_000
#: More elements than this are not compared one by one with float64, but bit by bit with one GPU's (``Measurer``).
MANY = 1 << 25

_HOW: dict[str, dict[str, Any]] = {
    "cold": {"criterion": "count", "warm": WARM, "of": "the slowest rank"},
    "batch": {"launches": BATCH, "statistic": "mean", "of": "the slowest rank"},
}


def _difference(outputs: Any, whole: Any, same_bits: bool) -> float:
    """Return the largest difference between outputs and those of one GPU, relative to the largest of those; NaN counts.

    If the bits must be the same, any difference is infinite.
    """
    if same_bits:
        return 0.0 if bool(cp.array_equal(outputs, whole)) else float("inf")
    return float(abs(outputs - whole).max() / abs(whole).max()) if whole.size else 0.0


@dataclass(frozen=True)
class Timed:
    """The points of a rung at a size, cold first, and the timeline of its steps on rank 0 if one was requested."""

    points: tuple[Point, ...]
    timeline: list[tuple[str, str, str, float, float]]


class Measurer:
    """Measures rungs of one ladder on this rank, together with the others, which make the same calls.

    Every rung is verified first: each rank compares its outputs with the reference. If there are too many (``MANY``),
    and the problem gives ``spots`` of the whole output, every rank runs the whole problem by itself, compares those
    spots with float64, and then requires that its outputs of each rung have the same bits, or differ by no more than
    the tolerance if the problem says that cutting it changes how sums round. The error of a record is then at most what
    it says: that of the spots, and the largest difference.
    """

    def __init__(self, ladder: SharedLadder, rank: Rank, samples: int = SAMPLES) -> None:
        self.ladder, self.rank, self.samples = ladder, rank, samples
        self._clean = CacheCleaner()
        self._hold = Hold()
        self._known: dict[Any, Any] = {}

    def measure(self, name: str, size: Size, timeline: bool = False) -> Timed | None:
        """Verify a rung and sample it. Returns None on a rank that has no part in it, and if it refuses the size.

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
        inputs = self._inputs(size)
        arrays = allocate(self.ladder, name, rank.place, size, inputs)
        run = Execution(self.ladder, name, rank, size, arrays)
        run()
        rank.wait(run.stream, f"{self.ladder.name} '{name}', first run")
        error = self._verify(name, rank.place, size, arrays)
        steps = self._timeline(run, rank) if timeline else []
        run.capture()
        verified = {output: arrays[output].copy() for output in self._outputs(name, rank.place, size)}
        samples = list(self._samples(run, rank))
        samples.append(self._batch(run, rank))
        self._check_again(name, arrays, verified)
        run.close()
        *cold, batch, worst = rank.largest(np.array([*samples, error]), run.stream)
        points = (
            self._point(name, ranks, size, "cold", cold, float(worst)),
            self._point(name, ranks, size, "batch", [batch], float(worst)),
        )
        return Timed(points, steps)

    def _outputs(self, name: str, place: Place, size: Size) -> list[str]:
        if self._has_spots(size):
            return list(self._whole(size))
        return list(self._reference(name, place, size))

    def _has_spots(self, size: Size) -> bool:
        return self.ladder.problem.spots is not None and self.ladder.problem.bytes(size) > 4 * MANY

    def _verify(self, name: str, place: Place, size: Size, arrays: dict[str, Any]) -> float:
        """Return the error of this rank's outputs. Raises WrongResult."""
        if not self._has_spots(size):
            return check(self.ladder, name, place, size, arrays, self._reference(name, place, size))
        worst = 0.0
        for output, whole in self._whole(size).items():
            own = place.share(len(whole))
            off = _difference(arrays[output], whole[own.start : own.stop], self.ladder.problem.same_bits)
            if not off <= self.ladder.tolerance(name, size):
                raise WrongResult(
                    f"{self.ladder.name} '{name}', rank {place.rank}: {output} is not what one GPU computes"
                )
            worst = max(worst, off)
        return self._known["error"] + worst

    def _whole(self, size: Size) -> dict[str, Any]:
        """Return the whole outputs, computed on this GPU alone, whose spots agree with float64."""
        key = ("whole", tuple(size.items()))
        if key not in self._known:
            place, problem, inputs = Place(0, 1), self.ladder.problem, self._inputs(size)
            arrays = allocate(self.ladder, ALONE, place, size, inputs)
            run = Execution(self.ladder, ALONE, Rank(place, self.rank.device), size, arrays)
            run()
            self.rank.wait(run.stream, f"{self.ladder.name}: the whole on one GPU")
            rows, want = problem.spots(inputs, size)  # type: ignore[misc]  # _has_spots says that it has
            found = {output: cp.asnumpy(arrays[output][cp.asarray(rows)]) for output in want}
            self._known["error"] = check(self.ladder, ALONE, place, size, found, want)
            self._known[key] = {output: arrays[output] for output in want}
        return self._known[key]

    def _check_again(self, name: str, arrays: dict[str, Any], verified: dict[str, Any]) -> None:
        """Compare the outputs of the last sample with the verified ones: plans and kernels give the same bits each
        time.

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
            self._hold(HELD_NS, run.stream)
            rank.barrier(run.stream)
            start.record(run.stream)
            run()
            stop.record(run.stream)
            rank.wait(run.stream, f"{self.ladder.name} '{run.name}', sample {number}")
            if number >= WARM:
                yield cp.cuda.get_elapsed_time(start, stop) * 1e-3

    def _batch(self, run: Execution, rank: Rank) -> float:
        """Return the mean time of runs that follow each other, in seconds."""
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        rank.barrier(run.stream)
        rank.wait(run.stream, "a batch")
        start.record(run.stream)
        for _ in range(BATCH):
            run()
        stop.record(run.stream)
        rank.wait(run.stream, f"{self.ladder.name} '{run.name}', a batch of {BATCH}")
        return cp.cuda.get_elapsed_time(start, stop) * 1e-3 / BATCH

    def _point(self, name: str, ranks: int, size: Size, regime: str, samples: Sequence[float], error: float) -> Point:
        problem = self.ladder.problem
        kept = records.rounded(samples)
        p25, median, p75 = records.quantiles(kept)
        return Point(
            name=name,
            kind="rung",
            size=dict(size),
            dtype="float32",
            regime=regime,
            samples=kept,
            median_s=median,
            p25_s=p25,
            p75_s=p75,
            flops=problem.flops(size),
            bytes=problem.bytes(size),
            max_rel_error=float(f"{error:.4g}"),
            source_sha256=self.ladder.sha256(name, ranks, size),
            launch=self.ladder.launch_json(name, ranks, size),
            sampling=_HOW[regime],
            gpus=ranks,
        )
