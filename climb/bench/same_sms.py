"""Predict a kernel's time on a GPU that has the same SMs as the book's GPU but different memory.

An H100 and an H200 have the same SMs at the same clock. A kernel's time is set by the bandwidth of memory or by
something else: a pipe of the SMs, a latency, the start of blocks. Times set by anything else should be the same on both
GPUs; times set by bandwidth should scale with it:

    expected time = max(recorded time, floor + bytes / rate there / best share)

*bytes* are what Nsight Compute counted at DRAM where a record has it, and the least work otherwise. *best share* is the
largest share of memory's limit that any kernel of the ladder reaches at this size: no kernel is expected to come closer
on the other GPU than the best kernel did here. If that share is below ``REACHED``, no kernel of the ladder waits for
memory alone, and the limit itself is used. Rates there are those measured here, times the ratio of the two data sheets
(``climb.bench.predictions``): nothing measured on the other GPU is in an expectation.

The maximum belongs to one kernel whose arithmetic overlaps with its copies. A sequence of kernels, some of which wait
for memory and some for their SMs, is slower than the maximum for the whole says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from climb.bench import profiling, records
from climb.bench.data_sheets import sheet_of
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.predictions import predicted_ceilings
from climb.bench.problem import Size, size_label
from climb.bench.records import Point, Record
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.roofline import limit_of
from climb.bench.timings import Timings, timings
from climb.bench.work import Work

#: The book's second GPU.
SECOND_GPU = "nvidia-h100-80gb-hbm3"
#: Expected and measured ratio agree if they differ by less than this share.
CLOSE = 0.1
#: At this share of memory's limit and above, a kernel waits for memory.
REACHED = 0.75


@dataclass(frozen=True)
class Expectation:
    """A rung or peer on the book's GPU, and its expected time on the other GPU; times in seconds.

    ``memory_s`` is the time of the kernel's bytes alone on the book's GPU, with the floor. ``measured_s`` is None if
    the other GPU has no time of the same code.
    """

    ladder: str
    name: str
    size: Size
    here_s: float
    memory_s: float
    expected_s: float
    measured_s: float | None

    @property
    def expected(self) -> float:
        """The expected ratio of the two times: how many times as long the kernel should take there as here."""
        return self.expected_s / self.here_s

    @property
    def measured(self) -> float | None:
        """The measured ratio of the two times; None without a record."""
        return None if self.measured_s is None else self.measured_s / self.here_s

    @property
    def off(self) -> float | None:
        """The relative deviation from the expectation: -0.1 if it is 10 % faster than expected. None without a
        record."""
        return None if self.measured_s is None else self.measured_s / self.expected_s - 1


def timings_on_both(ladder: str | Ladder, regime: str = "cold") -> tuple[Timings, Timings]:
    """Return a ladder's times on the book's GPU and on its second one. Raises MissingRecord if one has no records."""
    return timings(ladder, regime, gpu=records.BOOK_GPU), timings(ladder, regime, gpu=SECOND_GPU)


def expect(ladder: Ladder, name: str, size: Size | None = None, target: str = SECOND_GPU) -> Expectation:
    """Predict the time of a rung or peer on ``target``, cold, at one size; by default the first headline size.

    Raises PendingRung if the book's GPU has no such time yet, LookupError for a name that is not in the ladder, and
    ValueError for a GPU with different SMs.
    """
    size = ladder.problem.headline[0] if size is None else size
    here = records.find_record(ladder.name, folder=records.RECORDS / records.BOOK_GPU)
    point = here.find(name, size, "cold") if here else None
    if here is None or point is None:
        kind = records.PendingRung if name in (*ladder.names, *(peer.name for peer in ladder.peers)) else LookupError
        raise kind(f"{ladder.name} has no cold time of '{name}' at {size_label(size)} on {records.BOOK_GPU}")
    origin, sheet = sheet_of(records.BOOK_GPU), sheet_of(target)
    if (origin.capability, origin.sms, origin.fp32_tflop_s) != (sheet.capability, sheet.sms, sheet.fp32_tflop_s):
        raise ValueError(f"{sheet.name} has other SMs than {origin.name}: see climb.bench.predictions")
    there = {**here.ceilings, **predicted_ceilings(here.ceilings, origin, sheet)}
    rung = ladder[name] if point.kind == "rung" else None
    moved = _bytes(ladder, rung, size, counted=True)
    memory, memory_there = (limit_of(moved, ceilings).seconds for ceilings in (here.ceilings, there))
    expected = max(point.median_s, memory_there / _best_share(ladder, here, size))
    measured = _measured(ladder, point, target)
    return Expectation(ladder.name, name, size, point.median_s, memory, expected, measured)


def expect_all(target: str = SECOND_GPU) -> list[Expectation]:
    """Predict every rung and peer of the book on ``target``, cold, at its ladder's first headline size."""
    found = []
    for ladder in map(load_ladder, ladder_names()):
        record = records.find_record(ladder.name, folder=records.RECORDS / records.BOOK_GPU)
        if record:
            size = ladder.problem.headline[0]
            names = [point.name for point in record.points if point.regime == "cold" and point.size == size]
            found += [expect(ladder, name, size, target) for name in names]
    return found


def _bytes(ladder: Ladder, rung: BoundRung | None, size: Size, *, counted: bool) -> Work:
    """Return the bytes a kernel reads and writes: the minimum, or with ``counted`` Nsight Compute's count if that is
    more.

    Modified bytes that L2 still holds when a kernel ends are not counted, so the written bytes never go below that
    minimum.
    """
    least = rung.rung.work(size) if rung is not None and rung.rung.work else ladder.problem.work(size)
    found = _counts(rung, size) if counted and rung is not None else {}
    read, written = (int(found.get(f"dram_bytes_{what}", 0)) for what in ("read", "written"))
    return Work(read=max(least.read, read), written=max(least.written, written))


def _counts(rung: BoundRung, size: Size) -> Mapping[str, float]:
    """Return the hardware counters of a rung; empty if there are none, or if they cover one launch of several."""
    if len(list(rung.launches(size))) != 1:
        return {}
    try:
        return profiling.hardware_counters(rung.ladder, records.BOOK_GPU).at(rung.name, size)
    except LookupError:
        return {}


def _best_share(ladder: Ladder, record: Record, size: Size) -> float:
    """Return the largest share of memory's limit that a kernel of the ladder reaches here, at most 1.

    It is 1 if no kernel waits for memory alone.
    """
    shares = []
    for point in record.points:
        if point.regime == "cold" and point.size == size:
            rung = ladder[point.name] if point.name in ladder.names else None
            least = limit_of(_bytes(ladder, rung, size, counted=False), record.ceilings)
            shares.append(least.seconds / point.median_s)
    best = max(shares)
    return min(1.0, best) if best >= REACHED else 1.0


def _measured(ladder: Ladder, point: Point, target: str) -> float | None:
    """Return the recorded time on ``target`` of the same code; None if there is none."""
    there = records.find_record(ladder.name, folder=records.RECORDS / target)
    found = there.find(point.name, point.size, "cold") if there else None
    return None if found is None or found.source_sha256 != point.source_sha256 else found.median_s
