"""The record of a ladder: its measurements on one GPU, as ``records/<gpu>/<ladder>.json`` holds them.

Times are in seconds, sizes in elements, work in bytes and FLOPs. ``source_sha256`` is the hash of what was measured; if
the kernel of today has a different hash, the point is stale.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
import numpy as np

from climb.bench.ladder import REGIMES
from climb.bench.problem import Size, size_label
from climb.bench.records.store import RecordError, explained

#: All regimes that exist; ``climb.bench.measure`` says what they mean.
ALL_REGIMES = (*REGIMES, "dirty")
KINDS = ("rung", "peer")
#: A point measured below this share of the GPU's highest SM clock is marked: its time is that of a slower GPU.
FULL_CLOCK = 0.95
Positive = Annotated[float, msgspec.Meta(gt=0)]
#: A size as a record holds it: extents, and names of kinds of data.
StoredSize = dict[str, int | str]


class Device(TypedDict):
    """The GPU and its software, as ``climb.bench.hardware.device_block`` reads them. Clocks are in MHz.

    ``differs`` lists the versions that differ from the locks. If several GPUs work together, ``gpus`` is their number,
    ``link`` their connection, and ``nccl`` the version of NCCL.
    """

    name: str
    compute_capability: str
    sm_count: int
    l2_bytes: int
    driver: str | None
    cuda: str
    nvrtc: str
    cupy: str
    clocks: dict[str, int | None]
    differs: NotRequired[dict[str, str]]
    gpus: NotRequired[int]
    link: NotRequired[str]
    nccl: NotRequired[str]


class Named(msgspec.Struct, frozen=True):
    """The name of a device, without its other fields."""

    name: str


class Head(msgspec.Struct, frozen=True):
    """Date and GPU of a record, read without its points."""

    date: str
    device: Named


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rung or peer at one size in one regime.

    ``samples`` in seconds: every accepted sample of the regime "cold" (before each, L2 is flushed and left with nothing
    to write back) or "dirty" (L2 is flushed by overwriting it); in the regime "batch" (launches back to back) one
    number, NVBench's mean over ``sampling["launches"]`` launches.
    ``sampling`` says how the sampling ended: the criterion, whether it was met, what was not met, how many throttled
    samples were discarded, and ``sm_clock_mhz``, the mean SM clock while they were taken. ``library`` describes a peer;
    ``source_sha256`` and ``launch`` a rung. ``max_rel_error`` is the error relative to the largest reference value,
    ``max_component_error`` the largest error of an element relative to the sum of the absolute terms that make it.
    ``gpus`` is the number of GPUs that worked together; a sample is then the time of the slowest.
    """

    name: str
    kind: str
    size: StoredSize
    dtype: str
    regime: str
    samples: tuple[Positive, ...]
    median_s: float
    p25_s: float
    p75_s: float
    flops: int
    bytes: int
    max_rel_error: float
    max_component_error: float | None = None
    library: dict[str, str] | None = None
    source_sha256: str | None = None
    launch: dict[str, Any] | None = None
    sampling: dict[str, Any] = {}
    gpus: int = 1

    @property
    def noise(self) -> float:
        """The interquartile range relative to the median."""
        return (self.p75_s - self.p25_s) / self.median_s

    @property
    def sm_clock_mhz(self) -> int | None:
        """The mean SM clock during the samples, as NVBench reports it; None if it does not."""
        return self.sampling.get("sm_clock_mhz")


class Skipped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rung that this GPU cannot run, or a peer that could not be measured, at one size, and why."""

    name: str
    size: StoredSize
    reason: str


class Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One of the runs that made a record: when it ``started``, and how many of the record's points it measured.

    ``again`` is the time of the target that it began with over that target's time in the run before it; None in the
    first run.
    """

    started: str
    points: int
    again: float | None = None


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The measurements of one ladder in one run on one GPU.

    ``session`` names the session whose ceilings it is compared with; ``ceilings`` are these, from ``ceilings.json``
    beside the record. They are not part of its file. ``runs`` is empty unless the run was cut short and continued
    (``climb.bench.records.parts`` has the conditions).
    """

    ladder: str
    date: str
    commit: str
    device: Device
    points: tuple[Point, ...]
    session: str = ""
    ceilings: dict[str, float] = {}
    skipped: tuple[Skipped, ...] = ()
    runs: tuple[Run, ...] = ()

    @property
    def gpu(self) -> str:
        """The GPU's name as the driver gives it."""
        return self.device["name"]

    @property
    def keys(self) -> frozenset[tuple[str, str, tuple[tuple[str, int | str], ...], str]]:
        """The kind, name, size and regime of every measured point."""
        return frozenset((p.kind, p.name, tuple(sorted(p.size.items())), p.regime) for p in self.points)

    def clock_share(self, point: Point) -> float | None:
        """Return the mean SM clock during a point's samples over the GPU's highest clock; None if one is unknown."""
        highest = self.device["clocks"].get("max_sm_mhz")
        return point.sm_clock_mhz / highest if point.sm_clock_mhz and highest else None

    def slowed(self, point: Point) -> bool:
        """Return whether the GPU ran below ``FULL_CLOCK`` of its highest clock while the point was sampled."""
        share = self.clock_share(point)
        return share is not None and share < FULL_CLOCK

    def find(self, name: str, size: Size, regime: str) -> Point | None:
        """Return the point of that name, size and regime, or None."""
        wanted = dict(size)
        for point in self.points:
            if point.name == name and point.size == wanted and point.regime == regime:
                return point
        return None


def parse_record(data: Any) -> Record:
    """Parse a record from its JSON object. Raises :class:`RecordError` naming the wrong field."""
    try:
        record = msgspec.convert(data, Record)
    except msgspec.MsgspecError as error:
        raise RecordError(explained(error)) from None
    check_record(record)
    return record


def check_record(record: Record) -> None:
    """Check what types cannot express: kinds and regimes, quantiles that match their samples, no point twice.

    Raises :class:`RecordError` naming the point.
    """
    for name, ceiling in record.ceilings.items():
        if not 0 < ceiling < math.inf:
            raise RecordError(f"ceilings['{name}'] is {ceiling}; expected a positive number")
    seen = set()
    for position, point in enumerate(record.points):
        check_point(point, f"points[{position}]")
        key = (point.name, tuple(sorted(point.size.items())), point.regime)
        if key in seen:
            raise RecordError(f"two points are '{point.name}' at {size_label(point.size)}, {point.regime}")
        seen.add(key)


def quantiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the 25th percentile, median and 75th percentile of samples, linearly interpolated."""
    p25, median, p75 = np.quantile(np.asarray(samples, dtype=np.float64), (0.25, 0.5, 0.75))
    return float(p25), float(median), float(p75)


def rounded(samples: Iterable[float]) -> tuple[float, ...]:
    """Round samples to four significant digits, as they are stored."""
    return tuple(float(f"{sample:.4g}") for sample in samples)


def check_point(point: Point, where: str) -> None:
    """Check one point, which ``where`` names in the message. Raises :class:`RecordError`."""
    if point.kind not in KINDS:
        raise RecordError(f"{where}: kind is {point.kind!r}; expected one of {', '.join(KINDS)}")
    if point.regime not in ALL_REGIMES:
        raise RecordError(f"{where}: regime is {point.regime!r}; expected one of {', '.join(ALL_REGIMES)}")
    if not point.samples:
        raise RecordError(f"{where}: no samples")
    ordered = sorted(point.samples)
    if not math.isfinite(ordered[-1]):
        raise RecordError(f"{where}: a sample is {ordered[-1]}; expected a positive number")
    for name, share in (("p25_s", 0.25), ("median_s", 0.5), ("p75_s", 0.75)):
        stored, value = getattr(point, name), _quantile(ordered, share)
        if not abs(stored - value) <= 1e-9 * value:
            raise RecordError(f"{where}: {name} is {stored!r}, but its samples give {value!r}")
    wanted = "source_sha256" if point.kind == "rung" else "library"
    if not getattr(point, wanted):
        raise RecordError(f"{where}: a {point.kind} needs '{wanted}'")


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the quantile, interpolated like NumPy's, without NumPy's overhead on a few hundred numbers."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
