"""Select the points of a figure or table from timings: rungs and peers at one size, and the limit.

Timings are the result of ``timings(ladder)``, or a record, which contributes its cold times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from climb.bench.problem import Size, size_label
from climb.bench.records import PendingRung, command
from climb.bench.roofline import Limit, MissingCeiling, limit
from climb.bench.shown_peers import like_for_like, precision_of, shown
from climb.bench.units import Resource


@dataclass(frozen=True)
class Selected:
    """One ladder at one size in one regime: ``rungs`` first to last, ``peers``, and the limit, None if unknown.

    ``pending`` names the rungs that have no time because the record has not measured them yet; ``names`` has both.
    """

    ladder: Any
    size: dict[str, Any]
    regime: str
    record: Any
    rungs: tuple[Any, ...]
    peers: tuple[Any, ...]
    limit: Limit | None
    pending: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The measured and the pending rungs, in the ladder's order."""
        measured = {p.name for p in self.rungs}
        return tuple(name for name in self.ladder.names if name in measured or name in self.pending)

    @property
    def best(self) -> Any:
        """The fastest rung. Raises PendingRung if no rung has a time yet."""
        if not self.rungs:
            raise PendingRung(f"every rung of {self.ladder.name} is pending; on a GPU run: {command(self.ladder.name)}")
        return min(self.rungs, key=lambda p: p.median_s)

    @property
    def drawn_peers(self) -> tuple[Any, ...]:
        """The peers that a figure has room for: the fastest form of each library, as in the report.

        Records from before kernels were named have few peers, and a figure shows them all.
        """
        named = any("kernels" in (getattr(p, "library", None) or {}) for p in self.peers)
        return shown(self.peers, self._precision) if named else self.peers

    @property
    def peer(self) -> Any | None:
        """The fastest peer to which the limit applies, or None: it computes in the rungs' precision, by the
        definition."""
        own = [p for p in self.peers if like_for_like(p, self._precision)]
        held = [p for p in own if self.limit is None or self.share(p) is not None]
        return min(held, key=lambda p: p.median_s, default=None)

    def share(self, point: Any) -> float | None:
        """The share of the problem's limit that a point reaches.

        None if the limit is unknown, and for a point to which it does not apply: a peer in TF32 beside rungs in another
        precision, or a peer that is faster than the limit and so computes in another way.
        """
        in_tf32 = precision_of(point) == "TF32"
        if self.limit is None or (in_tf32 and self._precision != "TF32"):
            return None
        share = self.limit.share(point)
        return None if share > 1 and point.kind == "peer" else share

    def own_limit(self, point: Any) -> Limit | None:
        """The limit of the work that a rung itself declares; None if it is the problem's or unknown."""
        if self.limit is None or point.kind != "rung":
            return None
        rung = next((r for r in getattr(self.ladder, "rungs", ()) if r.name == point.name), None)
        if rung is None or rung.work is None:
            return None
        return limit(self.ladder.problem, self.size, self.record.ceilings, rung=rung)

    def own_share(self, point: Any) -> float | None:
        """The share of the limit of a rung's own work; None if it declares none."""
        own = self.own_limit(point)
        return None if own is None else own.share(point)

    def slowed(self, point: Any) -> int | None:
        """The mean SM clock in MHz of a point that ran below 95 % of the highest, else None."""
        return point.sm_clock_mhz if self.record.slowed(point) else None

    @property
    def _precision(self) -> str:
        return self.ladder.problem.precision

    @property
    def resource(self) -> Resource:
        """The resource whose rate is shown: FLOPs if arithmetic sets the limit, otherwise bytes."""
        if self.limit is not None:
            return "flops" if self.limit.bound == "arithmetic" else "bytes"
        return "flops" if self.rungs and not self.rungs[0].bytes else "bytes"

    def work(self, point: Any) -> int:
        """The work of a point in the unit of :attr:`resource`."""
        return int(getattr(point, self.resource))


def select(timings: Any, size: Size | None = None, upto: str | None = None, *, mine: bool = False) -> Selected:
    """Select the points at one size (the first headline size if None), in the ladder's order, up to ``upto`` inclusive.

    ``mine`` selects the times of the reader's own GPU. Raises ValueError if nothing was measured at this size, if
    ``upto`` names no measured or pending rung, or if there are no times of the reader's GPU.
    """
    record, regime = record_of(timings, mine)
    ladder = ladder_of(timings)
    size = dict(ladder.problem.headline[0] if size is None else size)
    here = [p for p in record.points if dict(p.size) == size and p.regime == regime]
    rungs = {p.name: p for p in here if p.kind == "rung"}
    names = [name for name in ladder.names if name in rungs]
    measured = {p.name for p in record.points}
    pending = () if mine else tuple(name for name in ladder.names if name not in measured)
    if not names and len(pending) < len(ladder.names):
        known = sorted({size_label(p.size) for p in record.points if p.regime == regime})
        raise ValueError(
            f"no rung of {ladder.name} was measured at {size_label(size)} in the regime '{regime}'; "
            f"there is {'; '.join(known) or 'nothing'}"
        )
    if upto is not None:
        if upto not in (*names, *pending):
            raise ValueError(
                f"no rung '{upto}' of {ladder.name} at {size_label(size)}; measured are {', '.join(names)}"
            )
        shown = ladder.names[: ladder.names.index(upto) + 1]
        names = [name for name in names if name in shown]
        pending = tuple(name for name in pending if name in shown)
    try:
        least = limit(ladder.problem, size, record.ceilings)
        least = replace(least, floor_s=0.0) if regime == "batch" else least  # launches back to back overlap
    except MissingCeiling:
        least = None
    peers = tuple(sorted((p for p in here if p.kind == "peer"), key=lambda p: p.median_s))
    return Selected(ladder, size, regime, record, tuple(rungs[n] for n in names), peers, least, pending)


def record_of(timings: Any, mine: bool = False) -> tuple[Any, str]:
    """Return the record to read, and the regime: that of ``Timings``, or "cold" for a bare record. Raises
    ValueError."""
    if not hasattr(timings, "reference"):
        if mine:
            raise ValueError("a record has no times of this machine; pass timings(ladder)")
        return timings, "cold"
    if mine and timings.mine is None:
        raise ValueError(f"{timings.ladder.name} was not measured on this machine")
    return (timings.mine if mine else timings.reference), timings.regime


def has_mine(timings: Any, size: Size | None = None, upto: str | None = None) -> bool:
    """Return whether these timings include the reader's own of a rung at this size, and of ``upto`` if it is given.

    A GPU may be unable to run a rung, or have no room for a size: then the record's times are shown alone.
    """
    own = getattr(timings, "mine", None)
    if own is None:
        return False
    size = dict(ladder_of(timings).problem.headline[0] if size is None else size)
    here = {p.name for p in own.points if p.kind == "rung" and p.regime == timings.regime and dict(p.size) == size}
    return upto in here if upto is not None else bool(here)


def ladder_of(timings: Any) -> Any:
    """Return the ladder that timings belong to, loaded by name if they hold only the name."""
    if not isinstance(timings.ladder, str):
        return timings.ladder
    from climb.bench.registry import load_ladder

    return load_ladder(timings.ladder)
