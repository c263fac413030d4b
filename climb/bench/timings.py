"""Times for a chapter: those of the record, and beside them those of the reader's own GPU."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from climb.bench import cuda, hardware, measure, recording, records, roofline
from climb.bench.ladder import Ladder
from climb.bench.measure import Sampling
from climb.bench.problem import Size, size_label
from climb.bench.records import Point, Record, parts
from climb.bench.registry import load_ladder
from climb.bench.roofline import Limit

Verdict = Literal["same", "faster", "slower", "ambiguous"]

#: Measurements of this machine, which git ignores.
LOCAL = records.RECORDS / "local"
#: A live measurement is used again for this long, in seconds, while its kernels and the GPU stay the same.
_SESSION = 12 * 3600
#: A chapter that measures live takes fewer samples than a record, so that its reader need not wait.
_LIVE = Sampling(seconds=0.5, slow_seconds=3.0, enough_samples=100)


@dataclass(frozen=True)
class Timings:
    """The times of one ladder in one regime: ``reference`` from the record, ``mine`` from this GPU or None.

    Names are rungs or peers. ``size`` is the first headline size by default. ``mine=True`` asks for this GPU's times
    and raises LookupError if there are none. A rung that the record has not measured yet has no time: asking for one
    raises PendingRung.
    """

    ladder: Ladder
    regime: str
    reference: Record
    mine: Record | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of the record, also where this GPU has its own: what a chapter says is about the record's GPU."""
        return self.reference.points

    @property
    def ceilings(self) -> dict[str, float]:
        """The record's ceilings, which belong to :attr:`points`."""
        return self.reference.ceilings

    def point(self, name: str, size: Size | None = None, *, mine: bool = False) -> Point:
        """Return the recorded point. Raises PendingRung, and LookupError naming the points that exist."""
        record = self._record(mine)
        size = self.ladder.problem.headline[0] if size is None else size
        found = record.find(name, size, self.regime)
        if found is None and name in self.pending and not mine:
            raise records.PendingRung(
                f"{self.ladder.name} '{name}' is pending: it has no time on {record.gpu} yet; "
                f"on that GPU run: {records.command(self.ladder.name)}"
            )
        reason = next((one.reason for one in record.skipped if one.name == name and dict(one.size) == dict(size)), "")
        if found is None and reason:
            raise LookupError(f"{self.ladder.name} '{name}' was not measured on {record.gpu}: {reason}")
        if found is None:
            known = sorted({f"{p.name} at {size_label(p.size)}" for p in record.points if p.regime == self.regime})
            raise LookupError(
                f"{self.ladder.name} has no {self.regime} time of '{name}' at {size_label(size)}; "
                f"there are: {'; '.join(known)}"
            )
        return found

    @property
    def pending(self) -> tuple[str, ...]:
        """The rungs that the record has not measured yet, in the ladder's order."""
        return records.pending_rungs(self.reference, self.ladder)

    def seconds(self, name: str, size: Size | None = None, *, mine: bool = False) -> float:
        """Return the median time in seconds."""
        return self.point(name, size, mine=mine).median_s

    def rate(self, name: str, size: Size | None = None, *, per: str = "bytes", mine: bool = False) -> float:
        """Return the problem's least bytes or ``per="flops"`` per second."""
        point = self.point(name, size, mine=mine)
        return {"bytes": point.bytes, "flops": point.flops}[per] / point.median_s

    def ratio(self, a: str, b: str, size: Size | None = None, *, mine: bool = False) -> float:
        """Return how many times faster ``a`` is than ``b``: the time of ``b`` over the time of ``a``."""
        return self.seconds(b, size, mine=mine) / self.seconds(a, size, mine=mine)

    @property
    def measured(self) -> tuple[str, ...]:
        """The rungs with times in the record, in the ladder's order: a new rung has none."""
        known = {point.name for point in self.reference.points}
        return tuple(name for name in self.ladder.names if name in known)

    def limit(self, size: Size | None = None, *, rung: str | None = None, mine: bool = False) -> Limit:
        """Return the limit of the problem on that GPU, in its parts; with ``rung``, the limit of the rung's own work.

        In the regime "batch" there is no floor: launches overlap.
        """
        size = self.ladder.problem.headline[0] if size is None else size
        own = self.ladder[rung].rung if rung is not None else None
        found = roofline.limit(self.ladder.problem, size, self._record(mine).ceilings, rung=own)
        return replace(found, floor_s=0.0) if self.regime == "batch" else found

    def limit_s(self, size: Size | None = None, *, mine: bool = False) -> float:
        """Return the least time of the problem on that GPU, in seconds."""
        return self.limit(size, mine=mine).seconds

    def of_limit(self, name: str, size: Size | None = None, *, mine: bool = False) -> float:
        """Return the share of the problem's limit that is reached: 1 is the speed of light.

        Only a rung with work of its own, and a peer with another algorithm or precision, can be above 1.
        """
        return self._share(self.limit(size, mine=mine), name, size, mine)

    def of_own_limit(self, name: str, size: Size | None = None, *, mine: bool = False) -> float:
        """Return the share of the limit of a rung's own work: a shortcut's operations, or the work of another pipe."""
        return self._share(self.limit(size, rung=name, mine=mine), name, size, mine)

    def compare(self, a: str, b: str, size: Size | None = None, *, mine: bool = False) -> Verdict:
        """Compare ``a`` with ``b`` by their intervals between the 25th and 75th percentiles; ``faster`` if ``a`` is."""
        return verdict(self.point(a, size, mine=mine), self.point(b, size, mine=mine))

    def best(self, size: Size | None = None, *, mine: bool = False) -> str:
        """Return the fastest rung that was measured. Raises PendingRung if none was."""
        size = self.ladder.problem.headline[0] if size is None else size
        names = [b.name for b in self.ladder if self._record(mine).find(b.name, size, self.regime)]
        names = names or [self.ladder.names[0]]
        return min(names, key=lambda name: self.seconds(name, size, mine=mine))

    def _share(self, limit: Limit, name: str, size: Size | None, mine: bool) -> float:
        return limit.share(self.point(name, size, mine=mine))

    def _record(self, mine: bool) -> Record:
        if not mine:
            return self.reference
        if self.mine is None:
            raise LookupError(f"{self.ladder.name} was not measured on this machine")
        return self.mine


def verdict(a: Point, b: Point) -> Verdict:
    """Compare ``a`` with ``b``: disjoint interquartile intervals decide; "same" if each median lies in the other's
    interval, "ambiguous" otherwise."""
    if a.p75_s < b.p25_s:
        return "faster"
    if b.p75_s < a.p25_s:
        return "slower"
    if a.p25_s <= b.median_s <= a.p75_s and b.p25_s <= a.median_s <= b.p75_s:
        return "same"
    return "ambiguous"


def timings(ladder: str | Ladder, regime: str = "cold", gpu: str = records.DEFAULT_GPU) -> Timings:
    """Return the times of a ladder from its record on ``gpu``, and measured live if ``cuda.can_measure()``.

    A ladder without a record on ``gpu`` has an empty one: all its rungs are pending. If this GPU can run no rung, that
    is printed, and only the record's times are returned. Without ``gpu``, the GPU is that of the book or of
    ``CLIMB_GPU``; if the latter lacks a record that chapters show, the book's record replaces it. Raises MissingRecord
    if ``gpu`` has no record of any ladder, UnknownLadder, and ValueError for an unknown regime.
    """
    if regime not in records.ALL_REGIMES:
        raise ValueError(f"regime is {regime!r}; expected one of {', '.join(records.ALL_REGIMES)}")
    if isinstance(ladder, str):
        ladder = load_ladder(ladder)
    reference = records.find_record(ladder.name, gpu)
    if reference is None and not records.stands_in(gpu) and not records.recorded(records.RECORDS / gpu):
        raise records.MissingRecord(f"no record of any ladder on {gpu}; on that GPU run: make record")
    mine = _mine(ladder.name) if cuda.can_measure() else None
    return Timings(ladder, regime, reference or records.empty_record(ladder.name, gpu), mine)


def _mine(ladder_name: str) -> Record | None:
    """Return this GPU's record of a ladder; None, printed once with the reason, if it has run no rung."""
    record = _live(ladder_name)
    if any(point.kind == "rung" for point in record.points):
        return record
    reason = next((f": {one.reason}" for one in record.skipped), "")
    _print_once(f"{ladder_name} was not measured on {record.gpu}{reason}. Its times are those of the record.")
    return None


#: A chapter requests the times of a ladder many times.
_print_once = functools.cache(print)


@functools.cache
def _live(ladder_name: str) -> Record:
    """Return this GPU's record of a ladder, measured now unless a fresh and complete one exists. Raises
    MeasurementFailed."""
    ladder = load_ladder(ladder_name)
    gpu = hardware.device_block()["name"]
    path = records.record_path(ladder.name, folder=LOCAL)
    folders = (LOCAL, records.RECORDS / hardware.gpu_slug(gpu))
    _live_ceilings(gpu, folders)
    try:
        known = records.load_record(ladder.name, folder=LOCAL)
        young = time.time() - path.stat().st_mtime < _SESSION
        whole = not records.stale_points(known, ladder) and not records.pending_rungs(known, ladder)
        if known.gpu == gpu and young and whole:
            return known
    except (records.MissingRecord, records.RecordError):
        pass
    record = recording.record_ladder(ladder_name, _LIVE, folders, parts_in=LOCAL)
    records.save_record(record, path)
    parts.part_path(ladder.name, LOCAL).unlink(missing_ok=True)
    return record


@functools.cache
def _live_ceilings(gpu: str, folders: tuple[Path, ...]) -> None:
    """Measure this GPU's ceilings, unless this session has. Raises MeasurementFailed."""
    known, path = records.load_ceilings(LOCAL), LOCAL / records.CEILINGS_FILE
    if known is None or known.device["name"] != gpu or time.time() - path.stat().st_mtime >= _SESSION:
        records.save_ceilings(measure.record_ceilings(_LIVE, folders, failures={}), LOCAL)
