"""Record whole ladders: measure every target in one run, or continue an interrupted recording.

``climb.bench.records.parts`` says what counts as one run, and how finished targets are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from climb.bench import hardware, measure, records
from climb.bench.ladder import Ladder
from climb.bench.measure import MeasurementFailed, ProcessEnded, Sampling, Target
from climb.bench.progress import say
from climb.bench.records import CeilingsRecord, Point, Record, Skipped, parts
from climb.bench.registry import load_ladder

#: The number of times that earlier measurements may prove to be of a GPU in another state.
_TRIES = 3


@dataclass
class _Recording:
    """One ladder: the targets of its record, the finished ones among them, and the part that keeps these."""

    load_name: str
    ladder: Ladder
    head: parts.Head
    part: Path | None
    done: list[parts.Finished] = field(default_factory=list)
    skipped: dict[parts.TargetKey, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.targets = {_key(target): target for target in measure.targets_of(self.ladder, self.load_name)}

    def take_over(self) -> None:
        """Take over the finished targets of an earlier recording, and say so, or say why not."""
        found = parts.read(self.part) if self.part else None
        if self.part is None or found is None:
            return
        before, lines = found
        reason = parts.why_not(before, self.head)
        if not reason:
            before, settled = parts.settle(before, lines)
            self.done = [one for one in settled if self._is_fresh(one)]
            reason = "" if self.done else "nothing in it is as it was measured"
        if reason:
            say(f"{self.part}: measured anew: {reason}")
            return
        self.head = before
        begun = before.started[:16]
        say(f"{self.part}: {len(self.done)} of {len(self.targets)} targets are taken over from {begun}")

    def begin(self) -> None:
        """Write the part with the finished targets: the process that measures appends to it."""
        if self.part:
            parts.begin(self.part, self.head, self.done)

    def left(self, isolated: bool | None = None) -> list[Target]:
        """The targets still to measure: all, or those of isolated peers, or those of the others. If earlier results
        were kept, one of their targets comes first, to be measured again."""
        known = {one.target for one in self.done} | self.skipped.keys()
        missing = [
            target
            for key, target in self.targets.items()
            if key not in known and isolated in (None, self._is_isolated(target))
        ]
        again = parts.anchor(self.done) if missing else None
        return [self.targets[again.target], *missing] if again else missing

    def add(self, run: str, measured: Mapping[parts.TargetKey, tuple[Point, ...]]) -> None:
        """Add the results of a run; say if no earlier result counts any more."""
        new = [parts.Finished(run, points) for points in measured.values() if points]
        every = {one.target for one in (*self.done, *new)}
        self.head, self.done = parts.settle(self.head, [*self.done, *new])
        if len(self.done) < len(every):
            say(f"{self.ladder.name}: the GPU is not as fast as it was: {len(every) - len(self.done)} targets anew")

    def take_skipped(self, skipped: Iterable[tuple[Target, str]]) -> None:
        """Note the targets that are unavailable here, with the reasons."""
        self.skipped |= {_key(target): why for target, why in skipped if target.ladder == self.load_name}

    def take_run(self, run: str) -> None:
        """Add the results that a run left in the part; the measuring process has ended early, or is still running."""
        found = parts.read(self.part) if self.part else None
        self.add(run, {one.target: one.points for one in (found[1] if found else ()) if one.run == run})

    def close(self) -> None:
        """Say what an ending recording leaves in its part; remove a part without targets."""
        found = parts.read(self.part) if self.part else None
        if self.part is None or found is None:
            return
        if not found[1]:
            self.part.unlink()
        elif self.left():
            kept = len({one.target for one in found[1]})
            say(f"{self.part}: keeps {kept} of {len(self.targets)} targets; the same command continues")

    def _is_isolated(self, target: Target) -> bool:
        return target.kind == "peer" and any(peer.isolated for peer in self.ladder.peers if peer.name == target.name)

    def _is_fresh(self, one: parts.Finished) -> bool:
        """Return whether the points of a target fit today's ladder: its code, launches, work and regimes."""
        point = one.points[0]
        if one.target not in self.targets:
            return False
        alone = Record(self.ladder.name, "", "", self.head.device, one.points)
        return records.why_stale(alone, self.ladder, point.kind, point.name, point.size) is None

    def record(self, device: Mapping[str, Any], session: CeilingsRecord | None) -> Record:
        """Return the complete record."""
        points = {one.target: one.points for one in self.done}
        skipped = [(key, self.skipped[key]) for key in self.targets if key in self.skipped]
        return Record(
            ladder=self.ladder.name,
            **hardware.origin(),
            device=device,
            session=session.session if session else "",
            ceilings=session.values if session else records.Ceilings(),
            points=tuple(point for key in self.targets for point in points.get(key, ())),
            skipped=tuple(Skipped(self.targets[key].name, self.targets[key].size, why) for key, why in skipped),
            runs=self.head.runs if len(self.head.runs) > 1 else (),
        )


def record_ladders(
    load_names: Sequence[str],
    sampling: Sampling,
    known: Sequence[Path],
    keep: Path | None = None,
    failures: dict[str, str] | None = None,
    parts_in: Path | None = None,
    save: Callable[[Record], object] | None = None,
) -> list[Record]:
    """Measure whole ladders with their peers in one process. Writes no record; ``save_record`` does.

    ``known`` are folders of records; the ceilings of the first that has some are those of the new records. With
    ``failures``, the message of a ladder that fails is put there, and it has no record; if the ladder has ended the
    process, a new one measures the others. ``parts_in`` is a folder for finished targets; the targets of an interrupted
    recording there are taken over; the caller removes the part of a ladder once its record is saved.

    ``save`` is called with the record of each ladder as soon as its last target is measured, and with that of NVBench's
    own results, which have a few more digits, at the end. Raises :class:`MeasurementFailed`.
    """
    session = next((c for folder in known if (c := records.load_ceilings(folder)) is not None), None)
    ceilings = session.values if session else records.Ceilings()
    recordings = _recordings(load_names, session, sampling, parts_in)
    failed: dict[str, str] = {} if failures is None else failures
    device: Mapping[str, Any] = recordings[0].head.device
    saving = _Saving(session, save)
    try:
        # A process that ends early leaves a ladder in ``failed``, so at most one further run per ladder follows.
        # Isolated peers have a run of their own.
        for _ in range(_TRIES + len(recordings) + any(one.left(isolated=True) for one in recordings)):
            waiting = [one for one in recordings if one.load_name not in failed and one.left()]
            if not waiting:
                break
            isolated = not any(one.left(isolated=False) for one in waiting)
            going = [one for one in waiting if one.left(isolated)]
            before = set(failed)
            try:
                device = _one_run(going, isolated, sampling, saving, keep=keep, ceilings=ceilings, failures=failures)
            except MeasurementFailed as error:
                if failures is None or parts_in is None:
                    raise
                say(str(error))
                if set(failed) == before:  # no ladder is at fault by itself
                    failed |= {one.load_name: str(error) for one in going if one.left()}
    finally:
        for one in recordings:
            one.close()
    late = [one for one in recordings if one.load_name not in failed and one.left()]
    failed |= {one.load_name: f"the GPU does not keep its speed from run to run: {one.ladder.name}" for one in late}
    done = [one for one in recordings if one.load_name not in failed]
    if failed and (failures is None or not done):
        raise MeasurementFailed("\n".join(failed.values()))
    return [one.record(device, session) for one in done]


class _Saving:
    """Saves the record of each completed ladder while the process measures the next one."""

    def __init__(self, session: CeilingsRecord | None, save: Callable[[Record], object] | None):
        self._session, self._save = session, save
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, recordings: Sequence[_Recording], run: str, skipped: Sequence[tuple[Target, str]]) -> None:
        """Save records completed since the last call. ``recordings`` are those of the run."""
        for one in recordings:
            size = one.part.stat().st_size if one.part and one.part.exists() else -1
            # The last targets of a ladder may be unavailable here: then its part stops growing.
            settled = size, sum(target.ladder == one.load_name for target, _ in skipped)
            if self._save is None or settled == self._seen.get(one.load_name):
                continue
            self._seen[one.load_name] = settled
            copy = replace(one, done=list(one.done), skipped=dict(one.skipped))
            copy.take_skipped(skipped)
            copy.take_run(run)
            if not copy.left():
                self._save(copy.record(one.head.device, self._session))
                say(f"{one.ladder.name}: its record is saved, and will be again with all digits when the run ends")


def _one_run(
    recordings: Sequence[_Recording], isolated: bool, sampling: Sampling, saving: _Saving, **options: Any
) -> Mapping[str, Any]:
    """Measure the remaining targets of some ladders in a child process, either isolated peers or all others; return the
    device."""
    targets = [target for one in recordings for target in one.left(isolated)]
    started = parts.now()
    skipped: list[tuple[Target, str]] = []
    for one in recordings:
        one.begin()
    files = {one.load_name: one.part for one in recordings if one.part}

    try:
        measured, device = measure.run(
            targets,
            sampling,
            skipped=skipped,
            parts=files,
            started=started,
            meanwhile=lambda: saving.look(recordings, started, skipped),
            **options,
        )
    except ProcessEnded:
        for one in recordings:
            one.take_skipped(skipped)
            one.take_run(started)
        raise
    for one in recordings:
        one.take_skipped(skipped)
        ours = [(t, points) for t, points in zip(targets, measured, strict=True) if t.ladder == one.load_name]
        one.add(started, {_key(target): points for target, points in ours})
    return device


def record_ladder(
    load_name: str,
    sampling: Sampling,
    known: Sequence[Path],
    keep: Path | None = None,
    parts_in: Path | None = None,
) -> Record:
    """Measure one whole ladder, like ``record_ladders``."""
    (record,) = record_ladders([load_name], sampling, known, keep=keep, parts_in=parts_in)
    return record


def _recordings(
    load_names: Sequence[str], session: CeilingsRecord | None, sampling: Sampling, parts_in: Path | None
) -> list[_Recording]:
    device = hardware.device_block() if parts_in else {}
    board = hardware.board() if parts_in else ""
    found = []
    for name in load_names:
        ladder = load_ladder(name)
        head = parts.Head(ladder.name, parts.now(), session.session if session else "", board, device, asdict(sampling))
        found.append(_Recording(name, ladder, head, parts.part_path(ladder.name, parts_in) if parts_in else None))
        found[-1].take_over()
    return found


def _key(target: Target) -> parts.TargetKey:
    return parts.target_key(target.kind, target.name, target.size)
