"""Measure rungs and peers of ladders, and the ceilings of the GPU, with NVBench in one child process.

Two regimes are never mixed: *cold* (L2 flushed before every sample and left with nothing to write back, launch latency
hidden by a blocking kernel, samples of a throttled GPU discarded) and *batch* (launches back to back, one mean). A
ladder may ask for a third, *dirty*: like cold, but after NVBench's flush alone, which leaves L2 full of modified lines.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from climb.bench import ceilings as derived
from climb.bench import cuda, hardware, records
from climb.bench.compile_ahead import compile_ahead
from climb.bench.ladder import CUPY_OPTIONS, REGIMES, Ladder
from climb.bench.measuring_process import LOST_GPU, log_tail, read_outcomes, run_child
from climb.bench.nvbench_results import Measured, ResultsError, read_log, read_results, throttled_samples
from climb.bench.problem import Peer, size_label
from climb.bench.records import CeilingPoint, CeilingsRecord, Point, Record
from climb.bench.registry import ladder_names, load_ladder

#: The number of a ceiling ladder's fastest points at a size that are measured again for the ceilings of a session.
_CEILING_CANDIDATES = 2


class MeasurementFailed(RuntimeError):
    """A point was wrong, or NVBench gave no result for it; nothing of the run is saved."""


class ProcessEnded(MeasurementFailed):
    """The measuring process ended before its last target. Its finished targets are in the parts of their ladders."""


@dataclass(frozen=True)
class Target:
    """A rung or peer to measure at one size. ``load_ladder`` takes ``ladder``. The first regime is cold."""

    ladder: str
    kind: str
    name: str
    size: dict[str, Any]
    regimes: tuple[str, ...] = REGIMES

    def __str__(self) -> str:
        return f"{self.ladder.rpartition('.')[2]} {self.name} {size_label(self.size)}"


@dataclass(frozen=True)
class Sampling:
    """The rules for how long to sample.

    Cold sampling ends when at least ``min_samples`` (more for fast kernels) are taken and their relative standard
    deviation is below ``max_noise`` or has settled. It ends after ``seconds`` of wall time at the latest, or after
    ``slow_seconds`` for kernels so slow that ten samples take longer. A kernel of more than ``crawling_s`` is sampled
    ``few_samples`` times, since at that length the noise is below ``max_noise``. ``batch_seconds`` of GPU time go to
    the batch.

    Samples below ``throttle_threshold`` of the largest SM clock are discarded. It lies below the clock that the power
    limit alone allows (an H200 runs large tensor-core products at 1.4 of 1.98 GHz) and above the half that a cooling
    fault leaves.
    """

    seconds: float = 2.0
    slow_seconds: float = 5.0
    min_samples: int = 10
    few_samples: int = 3
    crawling_s: float = 0.1
    enough_samples: int = 200
    max_noise: float = 0.005
    batch_seconds: float = 0.25
    throttle_threshold: float = 0.6

    def samples_for(self, estimate_s: float) -> int:
        """Return the least number of cold samples of a kernel that takes about this long."""
        fitting = int(0.5 * self.seconds / max(estimate_s, 1e-9))
        least = self.few_samples if estimate_s > self.crawling_s else self.min_samples
        return max(least, min(self.enough_samples, fitting))

    def timeout_for(self, estimate_s: float) -> float:
        """Return the most wall time for cold sampling, in seconds."""
        samples = min(self.min_samples, self.samples_for(estimate_s))
        return max(self.seconds, min(self.slow_seconds, 1.25 * samples * estimate_s))


def targets_of(ladder: Ladder, load_name: str) -> list[Target]:
    """Return the targets of a complete record of this ladder."""
    expected = records.expected_points(ladder)
    return [Target(load_name, kind, name, dict(size), ladder.regimes) for kind, name, size in expected]


def benchmark_name(index: int, regime: str) -> str:
    """Return the name of a target's benchmark in one regime."""
    return f"point-{index}-{regime}"


def ceiling_targets(known: Sequence[Path]) -> list[tuple[str, Target]]:
    """Return the points that give the ceilings, each with the ceiling's name, of every ladder that measures one.

    At each of its sizes these are the fastest rungs of the ladder's record, or all rungs if it has none. The floor
    comes first: every other ceiling needs it.
    """
    targets = []
    for name in ladder_names():
        ladder = load_ladder(name)
        if ladder.ceiling is None:
            continue
        record = _first_record(ladder.name, known)
        for size in derived.ceiling_sizes(ladder):
            rungs = [b.name for b in ladder if b.rung.requires(size) is None]
            times = [(p.median_s, n) for n in rungs if record and (p := record.find(n, size, "cold"))]
            chosen = [n for _, n in sorted(times)[:_CEILING_CANDIDATES]] or rungs
            targets += [(ladder.ceiling, Target(name, "rung", n, dict(size), ("cold",))) for n in chosen]
    return sorted(targets, key=lambda one: one[0] != derived.FLOOR)


def record_ceilings(
    sampling: Sampling, known: Sequence[Path], keep: Path | None = None, failures: dict[str, str] | None = None
) -> CeilingsRecord:
    """Measure the ceilings of this GPU. Writes nothing; ``records.save_ceilings`` does.

    ``known`` are folders of records that say which rungs are the fastest. With ``failures``, the message of a ladder
    that fails is put there and its ceiling stays pending. Raises :class:`MeasurementFailed`, also if the floor fails,
    and ValueError if no ladder measures a ceiling.
    """
    targets = ceiling_targets(known)
    if not targets:
        raise ValueError("no ladder measures a ceiling")
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
    measured, device = run([target for _, target in targets], sampling, keep=keep, failures=failures)
    points = tuple(
        _ceiling_point(name, target, found[0]) for (name, target), found in zip(targets, measured, strict=True) if found
    )
    if targets[0][0] == derived.FLOOR and not any(one.ceiling == derived.FLOOR for one in points):
        raise MeasurementFailed(f"no floor, so no ceilings: {'; '.join((failures or {}).values())}")
    board = hardware.board()
    # Boards of one machine may be measured side by side, each chosen by this variable, and begin in the same minute.
    several = bool(board and os.environ.get("CUDA_VISIBLE_DEVICES"))
    return CeilingsRecord(
        session=f"{started} {board}" if several else started,
        board=board,
        **hardware.origin(),
        device=device,
        command="climb record --only ceilings",
        ceilings=derived.derive(points),
        points=points,
    )


def _ceiling_point(name: str, target: Target, point: Point) -> CeilingPoint:
    ladder = load_ladder(target.ladder)
    return CeilingPoint(name, ladder.name, derived.amount(ladder, name, target.size), point)


def known_ceilings(folders: Sequence[Path]) -> records.Ceilings:
    """Return the ceilings of the first folder that has some; empty if no folder has any."""
    return next((c for folder in folders if (c := records.ceilings_of(folder))), records.Ceilings())


def try_out(targets: Sequence[Target], sampling: Sampling, known: Sequence[Path], keep: Path | None = None) -> None:
    """Measure some points only for their progress lines, compared with the ceilings of a folder if one has them.

    Raises :class:`MeasurementFailed`.
    """
    run(targets, sampling, keep=keep, ceilings=known_ceilings(known))


def run(
    targets: Sequence[Target],
    sampling: Sampling,
    seed: int = 0,
    keep: Path | None = None,
    ceilings: Mapping[str, float] | None = None,
    failures: dict[str, str] | None = None,
    skipped: list[tuple[Target, str]] | None = None,
    parts: Mapping[str, Path] | None = None,
    started: str = "",
    meanwhile: Callable[[], None] | None = None,
) -> tuple[list[tuple[Point, ...]], dict[str, Any]]:
    """Measure targets in a child process. Returns a point for each regime of each target, in order, and the device.

    With ``failures``, the message of a ladder with a failing point is put there and its targets have no points; the
    other ladders are still measured. A rung or peer that is unavailable here has no points; it and the reason are
    appended to ``skipped``.

    ``keep`` is a folder for NVBench's own files; ``ceilings`` are known ceilings, for the progress lines. A target of a
    ladder in ``parts`` is added to that file as soon as it is measured, as part of the run that ``started`` then;
    ``meanwhile`` is called every few seconds. An interruption ends the child. Raises :class:`MeasurementFailed`; with
    ``failures``, :class:`ProcessEnded` if the child did not reach all ladders, after the ladder at fault has been put
    into ``failures``.
    """
    with tempfile.TemporaryDirectory(prefix="measure-") as scratch:
        out = keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        for old in ("points.jsonl", "nvbench.json", "nvbench.log", "device.json", *out.glob("nvbench.json-*bin/*")):
            (out / old).unlink(missing_ok=True)
        spec = {
            "targets": [asdict(t) for t in targets],
            "sampling": asdict(sampling),
            "seed": seed,
            "ceilings": dict(ceilings or {}),
            "parts": {ladder: str(path.absolute()) for ladder, path in (parts or {}).items()},
            "started": started,
        }
        (out / "spec.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
        unavailable = [] if skipped is None else skipped

        def look() -> list[dict[str, Any] | None]:
            outcome = read_outcomes(out / "points.jsonl", len(targets))
            found = [(t, r["skipped"]) for t, r in zip(targets, outcome, strict=True) if r and r.get("skipped")]
            unavailable.extend(one for one in found if one not in unavailable)
            if meanwhile is not None:
                meanwhile()
            return outcome

        compile_ahead(targets)
        status = run_child(out / "spec.json", out, look)
        outcome = look()
        failed, ladders = {} if failures is None else failures, {target.ladder for target in targets}
        for target, result in zip(targets, outcome, strict=True):
            if result and result.get("error"):
                failed[target.ladder] = f"{target}: {result['error']}"
        _blame(targets, outcome, status, failures, out)
        if failed and (failures is None or set(failed) >= ladders):
            raise MeasurementFailed("\n".join([*failed.values(), log_tail(out)]))
        if status != 0 and not ladders & failed.keys():
            why = (status > 0 and cuda.missing_nvbench()) or log_tail(out)
            raise MeasurementFailed(f"the measuring process ended with status {status}\n{why}")
        try:
            found = read_results(out / "nvbench.json")
        except ResultsError as error:
            target = targets[int(error.benchmark.split("-")[1])]
            said = f"{target}: {error.what}\n{log_tail(out)}"
            if failures is None:
                raise MeasurementFailed(said) from error
            failures[target.ladder] = said
            raise ProcessEnded(said) from error
        log = read_log(out / "nvbench.log")
        points = []
        for index, (target, result) in enumerate(zip(targets, outcome, strict=True)):
            measured, throttled = {}, {}
            if (result or {}).get("skipped") or target.ladder in failed:
                points.append(())
                continue
            for regime in target.regimes:
                name = benchmark_name(index, regime)
                if name not in found:
                    raise MeasurementFailed(f"{target}: NVBench gave no result for it\n{log_tail(out)}")
                measured[regime], throttled[regime] = found[name], throttled_samples(log.get(name, []))
            points.append(make_points(target, result, measured, throttled, sampling))
        return points, json.loads((out / "device.json").read_text(encoding="utf-8"))


def _blame(
    targets: Sequence[Target],
    outcome: Sequence[dict[str, Any] | None],
    status: int,
    failures: dict[str, str] | None,
    out: Path,
) -> None:
    """Raise ProcessEnded if the child ended early; the ladder that it was measuring goes into ``failures``.

    Targets are measured in order, so the child was at the first target without an outcome, unless its ladder had
    already failed. A child that ended by itself without any outcome could not measure at all, whatever the ladder.
    """
    if failures is None or status == 0 or (status > 0 and not any(outcome)):
        return
    unreached = [t for t, result in zip(targets, outcome, strict=True) if result is None and t.ladder not in failures]
    said = f"the measuring process ended with status {status}\n{log_tail(out)}"
    if status != LOST_GPU and unreached:
        failures[unreached[0].ladder] = f"{unreached[0]}: {said}"
    if unreached:
        raise ProcessEnded(said)


def make_points(
    target: Target,
    result: dict[str, Any],
    measured: Mapping[str, Measured],
    throttled: Mapping[str, int],
    sampling: Sampling,
) -> tuple[Point, ...]:
    """Make a target's points, one per regime, from the child's verification and NVBench's measurements.

    Raises :class:`MeasurementFailed` if the batch is missing.
    """
    ladder = load_ladder(target.ladder)
    problem = ladder.problem
    component = result.get("max_component_error")
    shared: dict[str, Any] = {
        "name": target.name,
        "kind": target.kind,
        "size": target.size,
        "dtype": problem.outputs[0].dtype,
        "flops": int(problem.flops(target.size)),
        "bytes": int(problem.bytes(target.size)),
        "max_rel_error": float(f"{result['max_rel_error']:.4g}"),
        "max_component_error": None if component is None else float(f"{component:.4g}"),
        "library": result.get("library"),
    }
    if target.kind == "rung":
        bound = ladder[target.name]
        first, *rest = (launch.as_json() for launch in bound.launches(target.size))
        options = [*bound.options, *CUPY_OPTIONS]
        shared["launch"] = {**first, "options": options, **({"then": rest} if rest else {})}
        shared["source_sha256"] = bound.sha256(target.size)
    points = []
    for regime, found in measured.items():
        if regime != "batch":
            how = _cold_sampling(found, result, throttled[regime], sampling)
            points.append(_point(regime, found.cold, how, shared))
        elif found.batch_mean_s is None:
            raise MeasurementFailed(f"{target}: NVBench gave no batch measurement")
        else:
            how = {"launches": found.batch_launches, "statistic": "mean"}
            points.append(_point(regime, (found.batch_mean_s,), how, shared))
    return tuple(points)


def find_peer(ladder: Ladder, name: str) -> Peer:
    """Return the peer of that name. Raises KeyError naming the known peers."""
    for peer in ladder.peers:
        if peer.name == name:
            return peer
    raise KeyError(f"ladder {ladder.name} has no peer '{name}'; it has {', '.join(p.name for p in ladder.peers)}")


def _first_record(name: str, folders: Sequence[Path]) -> Record | None:
    """Return the ladder's record in the first folder that has a readable one, or None."""
    for folder in folders:
        with contextlib.suppress(records.MissingRecord, records.RecordError):
            return records.load_record(name, folder=folder)
    return None


def _point(regime: str, samples: Sequence[float], sampling: dict[str, Any], shared: dict[str, Any]) -> Point:
    kept = records.rounded(samples)
    p25, median, p75 = records.quantiles(kept)
    return Point(**shared, regime=regime, samples=kept, median_s=median, p25_s=p25, p75_s=p75, sampling=sampling)


def _cold_sampling(measured: Measured, result: dict[str, Any], throttled: int, sampling: Sampling) -> dict[str, Any]:
    samples = measured.cold
    noise = stdev(samples) / fmean(samples) if len(samples) > 1 else None
    not_met = []
    if len(samples) < result["min_samples"]:
        not_met.append("min-samples")
    if noise is None or not noise <= sampling.max_noise:
        not_met.append("max-noise")
    return {
        "criterion": "stdrel",
        "min_samples": result["min_samples"],
        "max_noise": sampling.max_noise,
        "noise": None if noise is None else float(f"{noise:.3g}"),
        "not_met": not_met,
        "timed_out": measured.cold_wall_s >= result["timeout_s"],
        "throttled_discarded": throttled,
        "sm_clock_mhz": None if measured.sm_clock_hz is None else round(measured.sm_clock_hz / 1e6),
    }
