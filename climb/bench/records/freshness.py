"""Check whether a record still describes its ladder: which points are stale, and which rungs are pending.

A point is *stale* when its kernel, its work or the ladder has changed since it was measured, or when it is missing
beside points of the same rung. A rung or peer without any point is *pending*: it is new and waits for a GPU. Tests
report what is pending and accept it; a time of a pending rung cannot be cited. A rung that the GPU cannot run, or a
peer that could not be measured, is *skipped*: the record holds the reason, and nothing is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from climb.bench.identity import expand_includes
from climb.bench.ladder import REGIMES, Ladder
from climb.bench.problem import Size, size_label
from climb.bench.records.schema import Record


class PendingRung(LookupError):
    """The time of a rung was requested that no record has yet, or counters that no record has of today's kernel; the
    message says how to measure them."""


def command(ladder: str) -> str:
    """Return the command that records a ladder anew, to be run on a machine with the record's GPU."""
    return f"make record LADDER={ladder}"


@dataclass(frozen=True)
class Stale:
    """A point that was measured on something other than today's ladder, or that a record lacks."""

    ladder: str
    name: str
    size: str
    reason: str

    @property
    def command(self) -> str:
        """The command that makes the point fresh, to be run on a machine with the record's GPU."""
        return command(self.ladder)

    def __str__(self) -> str:
        at = f" at {self.size}" if self.size else ""
        return f"stale record: {self.ladder} '{self.name}'{at}: {self.reason}; on the GPU run: {self.command}"


@dataclass(frozen=True)
class Pending:
    """A rung or peer that no record on this GPU has measured yet."""

    ladder: str
    name: str
    gpu: str

    def __str__(self) -> str:
        return f"pending: {self.ladder} '{self.name}' has no record on {self.gpu}; there run: {command(self.ladder)}"


def expected_points(ladder: Ladder) -> list[tuple[str, str, Size]]:
    """List the points of a complete record, as ``(kind, name, size)``.

    Each rung and each peer counts at every headline size that it takes. Those that are swept also count at every
    further size that they take.
    """
    points: list[tuple[str, str, Size]] = []
    for size in ladder.problem.recorded:
        headline = size in ladder.problem.headline
        points += [
            ("rung", b.name, size) for b in ladder if (headline or b.rung.swept) and b.rung.requires(size) is None
        ]
        points += [("peer", p.name, size) for p in ladder.peers if (headline or p.swept) and p.requires(size) is None]
    return points


def pending_rungs(record: Record | None, ladder: Ladder) -> tuple[str, ...]:
    """List the rungs that a record should hold and has no point of, in the ladder's order; without a record, all.

    A rung that the GPU cannot run is not pending: the record says why.
    """
    measured = {point.name for point in record.points if point.kind == "rung"} if record else set()
    measured |= {skipped.name for skipped in record.skipped} if record else set()
    expected = {name for kind, name, _ in expected_points(ladder) if kind == "rung"}
    return tuple(name for name in ladder.names if name in expected - measured)


def pending_peers(record: Record | None, ladder: Ladder) -> tuple[str, ...]:
    """List the peers that a record neither measured nor skipped with a reason, in the ladder's order."""
    known = {point.name for point in record.points if point.kind == "peer"} if record else set()
    known |= {skipped.name for skipped in record.skipped} if record else set()
    expected = {name for kind, name, _ in expected_points(ladder) if kind == "peer"}
    return tuple(peer.name for peer in ladder.peers if peer.name in expected - known)


def stale_points(record: Record | None, ladder: Ladder) -> list[Stale]:
    """List the points where a record and its ladder differ: missing, changed, or no longer part of the ladder.

    Pending rungs and peers are left out, so nothing is stale without a record. Peers that the record skipped with a
    reason are left out too. Empty when the record is fresh.
    """
    if record is None:
        return []
    found: list[Stale] = []
    pending = {("rung", name) for name in pending_rungs(record, ladder)}
    pending |= {("peer", name) for name in pending_peers(record, ladder)}
    skipped = {(one.name, _key(one.size)) for one in record.skipped}
    expected = expected_points(ladder)
    text = functools.cache(lambda name: expand_includes(ladder[name].path))
    for kind, name, size in expected:
        if (kind, name) in pending or (name, _key(size)) in skipped:
            continue
        reason = why_stale(record, ladder, kind, name, size, text)
        if reason:
            found.append(Stale(ladder.name, name, size_label(size), reason))
    known = {(name, _key(size)) for _, name, size in expected}
    for name, key in dict.fromkeys((point.name, _key(point.size)) for point in record.points):
        if (name, key) not in known:
            found.append(Stale(ladder.name, name, size_label(dict(key)), "it is no longer in the ladder"))
    return found


def why_stale(
    record: Record, ladder: Ladder, kind: str, name: str, size: Size, text: Callable[[str], str] | None = None
) -> str | None:
    """Explain why a point is stale in some regime of the ladder, or return None. Every regime has its own kernel hash.

    ``text`` gives the source of a rung with all includes; it saves reading it again for each point.
    """
    now = functools.cache(lambda: ladder[name].sha256(size, text(name) if text else None))
    for regime in ladder.regimes:
        point = record.find(name, size, regime)
        if point is None:
            return f"missing in the regime '{regime}'"
        if point.kind != kind:
            return f"recorded as a {point.kind}"
        if kind == "rung" and point.source_sha256 != now():
            return f"its kernel, options or launch have changed since it was measured{_in(regime)}"
        if (point.flops, point.bytes) != (ladder.problem.flops(size), ladder.problem.bytes(size)):
            return f"the problem counts other FLOPs or bytes than when it was measured{_in(regime)}"
    return None


def _in(regime: str) -> str:
    """Return the regime as the end of a reason; "" for the first regime, in which nearly all reasons show."""
    return "" if regime == REGIMES[0] else f" in the regime '{regime}'"


def _key(size: Mapping[str, object]) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(size.items()))
