"""Measure, count and profile ladders on this GPU: everything that the book and its tests want to know of them.

The steps, in order: ceilings (of the GPU, once a day), then for each ladder measure (times and peers, with NVBench),
profile and agreement (counters, with ncu), sanitize (compute-sanitizer), and repeats, spans, transfers, cpu (NumPy and
PyTorch on the CPU), search and divergence for the ladders that have such records. The limits of all ladders come from
the same ceilings: --only ceilings measures them anew.
Last, events times the standalone cells of the ladders' chapters; of all chapters where no ladder is named.
A step whose tool is not installed is skipped. A failing step does not lose what the others have measured.

A ladder is recorded whole, because ratios must come from one run. With --rung or --size, a part is measured and
printed, and no record is written. All ladders are measured in one process, and each record is saved as soon as it is
whole; a ladder that fails does not stop the others.

What is measured when the command is interrupted or killed is kept in LADDER.part beside the record. The next record of
the ladder continues it, if session, board, versions, clocks and sampling are the same, and a target that it measures
again first takes as long as before. Such a record lists its runs.

Exit status: 0, all is recorded; 1, a step failed; 3, no step failed but one was skipped.
"""

from __future__ import annotations

import argparse
import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climb.bench.progress import say
from climb.cli import common
from climb.cli.errors import UsageError

if TYPE_CHECKING:
    from climb.bench.measure import Sampling
    from climb.cli.record_steps import Options, Outcome, Step


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb record``."""
    common.add_ladders(parser, all_by_default=True)
    parser.add_argument("--only", metavar="STEP,STEP", help="run just these steps, even where no record has them yet")
    parser.add_argument("--seconds-per-point", type=float, metavar="S",
                        help="wall time for the cold samples of one point (default 2)")  # fmt: skip
    parser.add_argument("--rung", action="append", default=[], help="measure just this rung; may be repeated")
    parser.add_argument("--size", action="append", default=[], type=parse_size, metavar="K=V,K=V",
                        help="measure at this size; may be repeated")  # fmt: skip
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep NVBench's own files there")
    parser.add_argument("--any-compiler", action="store_true",
                        help="record although NVRTC is not the locked one; the record says so")  # fmt: skip
    common.add_record_options(parser)


def parse_size(text: str) -> dict[str, Any]:
    """Parse ``rows=4096,cols=512`` as a size; a value that is not a number names a kind of data.

    Raises argparse.ArgumentTypeError.
    """
    try:
        pairs = [(key.strip(), value.strip()) for key, value in (part.split("=") for part in text.split(","))]
    except ValueError:
        pairs = []
    if not pairs or not all(key and re.fullmatch(r"-?\d+|[a-z]\w*", value) for key, value in pairs):
        raise argparse.ArgumentTypeError(f"'{text}' is no size; expected key=value,key=value")
    return {key: value if value[0].isalpha() else int(value) for key, value in pairs}


def run(args: argparse.Namespace) -> int:
    """Record. Raises UsageError and Unavailable."""
    with common.interrupted_by_sigterm():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    from climb.bench import hardware
    from climb.bench.registry import ladder_names
    from climb.cli.record_steps import (
        CHAPTER_STEPS,
        SESSION,
        STEPS,
        Options,
        chapters_of,
        exit_status,
        measure,
        run_steps,
    )

    names = args.ladders or list(ladder_names())
    common.loaded(names)
    part = bool(args.rung or args.size)
    if part and args.only:
        raise UsageError("--rung and --size measure a part of a ladder; --only records whole ladders")
    session, steps, of_chapters = _chosen(args.only, (SESSION,), STEPS, CHAPTER_STEPS)
    common.need_gpu("recording")
    common.use_commit(args)
    common.check_versions(args.any_compiler or part)
    options = Options(hardware.gpu_slug(hardware.device_block()["name"]), _sampling(args), args.records, args.keep)
    for line in tuned_elsewhere(names, options.gpu):
        say(line)
    if part:
        return _try_out(names, options, args)
    start = time.monotonic()
    outcomes = list(_session_outcomes(session, options, asked=bool(args.only)))
    if len(names) > 1 and steps and steps[0].run is measure and not steps[0].missing():
        outcomes += _measured_together(names, options)
        steps = steps[1:]
    chapters = chapters_of(args.ladders) if of_chapters else ()
    for outcome in itertools.chain(
        run_steps(names, steps, options, asked=bool(args.only)), run_steps(chapters, of_chapters, options)
    ):
        say(str(outcome))
        outcomes.append(outcome)
    done = sum(outcome.state == "done" for outcome in outcomes)
    say(f"{done} of {len(outcomes)} steps done in {time.monotonic() - start:.0f} s")
    for outcome in outcomes:
        if outcome.state != "done":
            say(str(outcome))
    if done < len(outcomes):
        say("A step that failed or was skipped has changed no record.")
    return exit_status(outcomes)


def tuned_elsewhere(names: Sequence[str], gpu: str) -> Iterator[str]:
    """Say which ladders, recorded on ``gpu``, take their launches from the tuning tables of another GPU."""
    from climb.bench import records

    for name in names:
        place = f"tuning/{name}.json"
        of = records.gpu_with(place, records.DEFAULT_GPU)
        if of != gpu and (records.RECORDS / of / place).exists():
            yield f"{name}: launches are tuned for {of}; for tables of this GPU, run: climb search {name}"


def _session_outcomes(session: Sequence[Step], options: Options, *, asked: bool) -> Iterator[Outcome]:
    """Measure the ceilings, if they were requested or are due."""
    from climb.cli.record_steps import ceilings_are_due, run_steps

    if session and (asked or session[0].missing() or ceilings_are_due(options)):
        for outcome in run_steps(["this GPU"], session, options, asked=asked):
            say(str(outcome))
            yield outcome


def _chosen(only: str | None, *kinds: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Choose, among each kind of steps, those that ``--only`` names, in their order; without it, all. Raises
    UsageError."""
    if only is None:
        return [tuple(steps) for steps in kinds]
    names = [name.strip() for name in only.split(",")]
    known = [step.name for steps in kinds for step in steps]
    if unknown := [name for name in names if name not in known]:
        raise UsageError(f"no step '{unknown[0]}'; the steps are {', '.join(known)}")
    return [tuple(step for step in steps if step.name in names) for steps in kinds]


def _sampling(args: argparse.Namespace) -> Sampling:
    from climb.bench.measure import Sampling

    seconds = args.seconds_per_point or Sampling().seconds
    return replace(Sampling(), seconds=seconds, batch_seconds=min(Sampling().batch_seconds, seconds / 4))


def _measured_together(names: Sequence[str], options: Options) -> list[Outcome]:
    """Measure ladders in one run; a ladder that fails does not keep the others from being saved."""
    from climb.bench.measure import MeasurementFailed
    from climb.bench.recording import record_ladders
    from climb.cli.record_steps import Outcome, save, saved

    failures: dict[str, str] = {}
    try:
        found = record_ladders(
            names,
            options.sampling,
            options.known,
            options.keep,
            failures,
            parts_in=options.target,
            save=lambda record: save(record, options),
        )
    except MeasurementFailed as error:
        return [Outcome(", ".join(names), "measure", "failed", f"MeasurementFailed: {error}")]
    outcomes = [Outcome(record.ladder, "measure", "done", saved(record, options)) for record in found]
    outcomes += [Outcome(name, "measure", "failed", message) for name, message in failures.items()]
    for outcome in outcomes:
        say(str(outcome))
    return outcomes


def _try_out(names: Sequence[str], options: Options, args: argparse.Namespace) -> int:
    """Measure the requested rungs and sizes, and only print their progress lines."""
    from climb.bench.measure import MeasurementFailed, try_out
    from climb.bench.targets import choose_targets

    try:
        targets = {name: choose_targets(name, args.rung, args.size) for name in names}
    except (KeyError, ValueError) as error:
        raise UsageError(str(error.args[0])) from None
    for name, chosen in targets.items():
        start = time.monotonic()
        try:
            try_out(chosen, options.sampling, options.known, keep=options.keep / name if options.keep else None)
        except MeasurementFailed as error:
            say(f"MeasurementFailed: {error}")
            return 1
        say(f"{len(chosen)} points in {time.monotonic() - start:.0f} s; a part: no record is written")
    return 0
