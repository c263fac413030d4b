"""The finished targets of an interrupted recording: ``<ladder>.part`` beside the record, one line per target.

The process that measures appends a line as soon as a target is verified and measured in all of its regimes, so a killed
recording loses only its current target. The next recording of the ladder takes the rest over.

Ratios must come from one run. Earlier measurements count as part of that run if everything that affects a time is the
same:

* the same ladder, board, driver, versions, highest clocks and sampling, and the same session of ceilings;
* begun no more than ``HOURS`` ago;
* the same code, launch and work, by the rule that tells a stale point;
* and, because all of this can hold on a GPU that is warmer or shared: each later run first measures one finished
  target again. If that differs by more than ``AGREEMENT``, everything before it is measured anew.

A record that was made in several runs lists them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from climb.bench.records.schema import Device, Point, Run, check_point
from climb.bench.records.store import RecordError, write_whole

#: The longest that a recording may last, from its first run to the start of its last.
HOURS = 3
#: The largest difference of a time from its earlier measurement: relative, and in seconds beyond that, for kernels of a
#: few microseconds, whose times are multiples of 32 ns.
AGREEMENT, RESOLUTION_S = 0.02, 1e-7
#: The shortest time, in seconds, of a target that a later run measures again, if there is one.
ANCHOR_S = 5e-5
TargetKey = tuple[str, str, tuple[tuple[str, int | str], ...]]


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a part: the fields that its points share.

    ``started`` is when its first run began; ``runs`` are those whose points are known to belong together.
    """

    ladder: str
    started: str
    session: str
    board: str
    device: Device
    sampling: dict[str, float]
    runs: tuple[Run, ...] = ()


class Finished(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finished target: its points, one for each regime. ``run`` is when its run began."""

    run: str
    points: tuple[Point, ...]

    @property
    def target(self) -> TargetKey:
        """The key of the target, independent of the run."""
        return target_key(self.points[0].kind, self.points[0].name, self.points[0].size)


def target_key(kind: str, name: str, size: Mapping[str, int | str]) -> TargetKey:
    """Return the key of a rung or peer at a size."""
    return kind, name, tuple(sorted(size.items()))


def part_path(ladder: str, folder: Path) -> Path:
    """Return the path of the file with a ladder's finished targets."""
    return folder / f"{ladder}.part"


def now() -> str:
    """Return the time as parts write it, to a millisecond: it tells runs apart."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def begin(path: Path, head: Head, finished: Iterable[Finished] = ()) -> None:
    """Write a part with the finished targets of earlier runs, completely or not at all."""
    write_whole(path, "".join(f"{msgspec.json.encode(one).decode()}\n" for one in (head, *finished)))


def append(path: Path, finished: Finished) -> None:
    """Add a target to a part. The whole line is in the file before this returns, even if the process dies
    afterwards."""
    with path.open("ab", buffering=0) as file:
        file.write(msgspec.json.encode(finished) + b"\n")


def read(path: Path) -> tuple[Head, list[Finished]] | None:
    """Read the head and the lines of a part; None if there is none. A line that was cut off is left out."""
    found: list[Finished] = []
    try:
        first, *rest = path.read_bytes().splitlines()
        head = msgspec.json.decode(first, type=Head)
    except (FileNotFoundError, ValueError):
        return None
    for line in rest:
        with contextlib.suppress(msgspec.MsgspecError, RecordError):
            finished = msgspec.json.decode(line, type=Finished)
            for point in finished.points:
                check_point(point, path.name)
            found.append(finished)
    return head, [one for one in found if one.points]


def why_not(before: Head, today: Head) -> str:
    """Explain why a recording with the head ``today`` cannot continue a part; "" if it can."""
    if before.ladder != today.ladder:
        return f"it is of {before.ladder}"
    if before.session != today.session:
        return "the ceilings have been measured anew since"
    if before.board != today.board:
        return "it was measured on another board"
    if before.sampling != today.sampling:
        return "it was sampled differently"
    if (changed := _changed(before.device, today.device)) is not None:
        return f"{changed} is not the same"
    age = datetime.fromisoformat(today.started) - datetime.fromisoformat(before.started)
    if not 0 <= age.total_seconds() <= HOURS * 3600:
        return f"it did not begin in the last {HOURS} hours"
    return ""


def _changed(before: Device, today: Device) -> str | None:
    """Return the field of the device that differs, or None; current clocks may differ."""
    highest = [{name: mhz for name, mhz in one["clocks"].items() if "max" in name} for one in (before, today)]
    if highest[0] != highest[1]:
        return "the highest clock"
    fields = {**before, **today}.keys() - {"clocks"}
    return next((name for name in sorted(fields) if before.get(name) != today.get(name)), None)


def anchor(finished: Sequence[Finished]) -> Finished | None:
    """Return the target that the next run measures again: of the rungs, the one whose first regime took the shortest
    time of at least ``ANCHOR_S``, or the longest where all took less.

    A launch of a few microseconds says little of the GPU: after long kernels it takes a tenth longer than after none.
    """
    rungs = [one for one in finished if one.points[0].kind == "rung"] or list(finished)
    long = [one for one in rungs if one.points[0].median_s >= ANCHOR_S]
    choice = min if long else max
    return choice(long or rungs, key=lambda one: one.points[0].median_s, default=None)


def settle(head: Head, lines: Sequence[Finished]) -> tuple[Head, list[Finished]]:
    """Return the lines of a part that count: the newest of each target, and a head with the runs that made them.

    A run that is not yet in the head begins by measuring an earlier target again. If the two times differ, the earlier
    lines are dropped, and the part begins with this run.
    """
    kept: dict[TargetKey, Finished] = {}
    again: dict[str, float | None] = {run.started: run.again for run in head.runs}
    started = head.started
    for line in lines:
        if line.run not in again:
            before = kept.get(line.target)
            ratio = _ratio(line, before)
            if kept and not _same(line, before):
                kept, again, started, ratio = {}, {}, line.run, None
            again[line.run] = ratio
        kept[line.target] = line
    points = Counter(one.run for one in kept.values() for _ in one.points)
    runs = tuple(Run(run, points[run], ratio) for run, ratio in again.items())
    return msgspec.structs.replace(head, started=started, runs=runs), list(kept.values())


def _same(again: Finished, before: Finished | None) -> bool:
    """Return whether a target took as long as before, in its first regime."""
    if before is None:
        return False
    old, new = before.points[0].median_s, again.points[0].median_s
    return abs(new - old) <= AGREEMENT * old + RESOLUTION_S


def _ratio(again: Finished, before: Finished | None) -> float | None:
    """Return the ratio of a target's time to its earlier time; None if one has none."""
    if before is None:
        return None
    return float(f"{again.points[0].median_s / before.points[0].median_s:.4g}")
