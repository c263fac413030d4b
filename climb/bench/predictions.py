"""Times on a GPU without records, predicted from its data sheet and the record of another GPU.

    predicted time = limit on the new GPU / share of its limit that the rung reaches on the recorded GPU

The limit is the book's (``climb.bench.roofline``). The ceilings of the new GPU are those of the recorded one, times the
ratio of the two data sheets: rates of memory by bandwidth, FMA by FP32 rate, what L2 keeps by the size of L2. The floor
is taken unchanged. This assumes two things: both GPUs reach the same part of the rates in their data sheets, and the
rung reaches the same share of its limit on both. Cases beyond these assumptions are left out: work for a pipe that data
sheets do not give (shared memory, integers, instruction issue), and rungs that reach less than ``LEAST_SHARE`` of their
limit, since something else holds them back.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from climb.bench import records
from climb.bench.data_sheets import DataSheet, sheet_of
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Size
from climb.bench.records import Ceilings, Record
from climb.bench.registry import ladder_names, load_ladder
from climb.bench.roofline import limit

#: The pipes whose rate a data sheet gives.
_KNOWN_PIPES = {"fma"}
#: Rungs below this share of their limit are not predicted: neither memory nor a pipe sets their time.
LEAST_SHARE = 0.5
#: Ladders whose fastest rungs compute in float64: the limit has no ceiling for that pipe, and GeForce GPUs have few of
#: its units.
_FLOAT64 = {"accurate_sum"}


@dataclass(frozen=True)
class Prediction:
    """The time of a rung on a GPU, in seconds, and the share of the limit that it was computed with.

    ``limited_by`` names its limit on that GPU. ``measured_s`` is the recorded time of the same rung, None where the GPU
    has no record of it.
    """

    ladder: str
    size: Size
    rung: str
    seconds: float
    share: float
    limited_by: str
    measured_s: float | None

    @property
    def error(self) -> float | None:
        """The relative error of the prediction: 0.1 if it is 10 % too long. None without a record."""
        return None if self.measured_s is None else self.seconds / self.measured_s - 1


def predicted_ceilings(known: Ceilings, origin: DataSheet, target: DataSheet) -> Ceilings:
    """Return the ceilings of ``target``, from those measured on ``origin``: only those that data sheets have a number
    for."""
    memory = target.bandwidth_gb_s / origin.bandwidth_gb_s
    factors = {
        "floor_us": 1.0,
        "launch_us": 1.0,
        "copy_gb_s": memory,
        "read_gb_s": memory,
        "write_gb_s": memory,
        "kept_mb": target.l2_mb / origin.l2_mb,
        "fma_tflop_s": target.fp32_tflop_s / origin.fp32_tflop_s,
    }
    return Ceilings({name: factors[name] * value for name, value in known.items() if name in factors})


def predict(ladder: Ladder, target: DataSheet, origin: str = records.BOOK_GPU) -> Prediction | None:
    """Predict the time on ``target`` of the rung that is the fastest on ``origin`` among those that ``target`` can run.

    The time is for the first headline size, cold. None if ``origin`` has no record, or if the data sheets do not
    suffice: see the head of this module.
    """
    record = _record(ladder.name, records.RECORDS / origin)
    size = ladder.problem.headline[0]
    rung = _fastest(record, ladder, size, target) if record else None
    if record is None or rung is None:
        return None
    work = rung.rung.work(size) if rung.rung.work else ladder.problem.work(size)
    if not set(work.pipes) <= _KNOWN_PIPES or ladder.name in _FLOAT64:
        return None
    known = record.ceilings
    assert isinstance(known, Ceilings)
    point = record.find(rung.name, size, "cold")
    assert point is not None
    share = limit(ladder.problem, size, known, rung=rung.rung).share(point)
    if share < LEAST_SHARE:
        return None
    there = limit(ladder.problem, size, predicted_ceilings(known, sheet_of(origin), target), rung=rung.rung)
    found = _record(ladder.name, records.RECORDS / target.folder)
    measured = found.find(rung.name, size, "cold") if found else None
    return Prediction(
        ladder.name, size, rung.name, there.seconds / share, share, there.limited_by,
        measured.median_s if measured else None,
    )  # fmt: skip


def predictions(target: DataSheet, origin: str = records.BOOK_GPU) -> list[Prediction]:
    """Predict every ladder of the book that allows it, except those that measure a ceiling."""
    ladders: Sequence[Ladder] = [load_ladder(name) for name in ladder_names()]
    found = [predict(ladder, target, origin) for ladder in ladders if ladder.ceiling is None]
    return [one for one in found if one is not None]


@functools.cache
def _record(ladder: str, folder: Path) -> Record | None:
    """Return a record, read once for all GPUs that are predicted from it."""
    return records.find_record(ladder, folder=folder)


def _fastest(record: Record, ladder: Ladder, size: Size, target: DataSheet) -> BoundRung | None:
    times = [
        (point.median_s, rung.name)
        for rung in ladder
        if (point := record.find(rung.name, size, "cold")) and rung.lacks(target.capability, size) is None
    ]
    return ladder[min(times)[1]] if times else None
