"""The steps of ``climb record``: all measurements of a ladder on one GPU that the book and its tests use.

A step whose tool is not installed is skipped, a step that fails is reported. In both cases the other steps still run
and write their own records.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from climb.bench import hardware, records, standalone
from climb.bench.cpu import has_methods, record_cpu
from climb.bench.measure import Sampling
from climb.bench.records import parts
from climb.bench.registry import KERNELS, ladder_names, load_ladder
from climb.cli.common import TOOLS
from climb.cli.search import search_module

State = Literal["done", "failed", "skipped"]


class StepFailed(Exception):
    """A step did not produce all its results; the message says what is missing."""


@dataclass(frozen=True)
class Options:
    """Options of the steps. ``gpu`` names the folder of this GPU's records; ``folder`` replaces it if given.

    ``seconds`` limits each of the steps that Nsight Compute and compute-sanitizer take, for one ladder.
    """

    gpu: str
    sampling: Sampling
    folder: Path | None = None
    keep: Path | None = None
    seconds: float = 600

    @property
    def target(self) -> Path:
        """The folder that the records go to."""
        return self.folder or records.RECORDS / self.gpu

    @property
    def known(self) -> tuple[Path, ...]:
        """Folders of records that say which points define the ceilings, and that may have ceilings."""
        own = records.RECORDS / self.gpu
        return (self.folder, own) if self.folder else (own,)


@dataclass(frozen=True)
class Step:
    """One kind of measurement of one ladder.

    ``run(ladder, options)`` measures, writes, and returns a message; it raises an error if something is wrong.
    ``wanted`` says whether the book has, or should have, such a record of the ladder. ``missing`` names the missing
    tool, "" if none is.
    """

    name: str
    run: Callable[[str, Options], str]
    wanted: Callable[[str], bool]
    missing: Callable[[], str]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one step for one ladder; ``message`` says what was written, what is wrong, or which tool is
    missing."""

    ladder: str
    step: str
    state: State
    message: str

    def __str__(self) -> str:
        return f"{self.ladder}: {self.step} {self.state}: {self.message}"


def run_steps(
    ladders: Sequence[str], steps: Sequence[Step], options: Options, *, asked: bool = False
) -> Iterator[Outcome]:
    """Run the steps of each ladder in order; yield an outcome as soon as each has ended.

    Steps that a ladder does not want are left out, unless ``asked`` names them. An interruption ends all.
    """
    for ladder in ladders:
        for step in steps:
            if asked or step.wanted(ladder):
                yield _outcome(ladder, step, options)


def _outcome(ladder: str, step: Step, options: Options) -> Outcome:
    if lacking := step.missing():
        return Outcome(ladder, step.name, "skipped", f"it needs {lacking}")
    try:
        return Outcome(ladder, step.name, "done", step.run(ladder, options))
    except StepFailed as error:
        return Outcome(ladder, step.name, "failed", str(error))
    except Exception as error:  # whatever goes wrong here, the other steps' records are still valuable
        return Outcome(ladder, step.name, "failed", f"{type(error).__name__}: {error}")


def exit_status(outcomes: Iterable[Outcome]) -> int:
    """Return 0 if every step is done, 1 if one failed, 3 if none failed but one was skipped."""
    states = {outcome.state for outcome in outcomes}
    return 1 if "failed" in states else 3 if "skipped" in states else 0


def ceilings(session: str, options: Options) -> str:
    """Measure the ceilings of this GPU, once for a session, and save them. Raises StepFailed if one failed."""
    from climb.bench.measure import record_ceilings

    failures: dict[str, str] = {}
    keep = options.keep / "ceilings" if options.keep else None
    record = record_ceilings(options.sampling, options.known, keep, failures)
    path = records.save_ceilings(record, options.target, options.known)
    said = f"{path}: " + ", ".join(f"{name} {record.values.text(name)}" for name in record.ceilings)
    if failures:
        raise StepFailed(f"{said}; pending: {'; '.join(failures.values())}")
    return said


def ceilings_are_due(options: Options) -> bool:
    """Return whether the folder's ceilings are missing, incomplete, or from another day, driver or board than now.

    False if no ladder measures a ceiling.
    """
    from climb.bench.measure import ceiling_targets

    found = records.load_ceilings(options.target)
    if found is not None and found.date == hardware.today() and not found.values.pending:
        device = hardware.device_block()
        if all(found.device[key] == device[key] for key in ("name", "driver")) and found.board == hardware.board():
            return False
    return bool(ceiling_targets(options.known))


def measure(ladder: str, options: Options) -> str:
    """Measure a whole ladder with its peers, and save its record."""
    from climb.bench.recording import record_ladder

    keep = options.keep / ladder if options.keep else None
    record = record_ladder(ladder, options.sampling, options.known, keep=keep, parts_in=options.target)
    return saved(record, options)


def save(record: records.Record, options: Options) -> Path:
    """Save a record; its part stays because the measuring process may still need it. Returns the place of the
    record."""
    return records.save_record(record, records.record_path(record.ladder, options.gpu, options.folder))


def saved(record: records.Record, options: Options) -> str:
    """Save a record in place of its part; report its place, its number of points and the points that ran slowly."""
    path = records.record_path(record.ladder, options.gpu, options.folder)
    records.save_record(record, path)
    parts.part_path(record.ladder, options.target).unlink(missing_ok=True)
    slowed = dict.fromkeys(point.name for point in record.points if record.slowed(point))
    marked = f", below {records.FULL_CLOCK:.0%} of the SM clock: {', '.join(slowed)}" if slowed else ""
    runs = f" of {len(record.runs)} runs" if record.runs else ""
    return f"{path}: {len(record.points)} points{runs}{marked}"


def _profile(ladder: str, options: Options) -> str:
    from climb.bench.profiling import record_counters

    return str(record_counters(ladder, options.folder))


def _agreement(ladder: str, options: Options) -> str:
    from climb.validation.agreement.measuring import record_agreement
    from climb.validation.agreement.summary import write_summary

    path, complete = record_agreement(("rungs",), [ladder], options.seconds, options.folder)
    if not complete:
        raise StepFailed(f"{path} still lacks counts; run: climb agreement --ladder {ladder}")
    if options.folder is None and options.gpu == records.DEFAULT_GPU:
        write_summary()
    return str(path)


def _sanitize(ladder: str, options: Options) -> str:
    from climb.validation.faults.clean import record_clean

    path, faulty = record_clean([ladder], options.seconds, options.folder)
    if faulty:
        raise StepFailed(f"{path}: {'; '.join(str(row['tools']) for row in faulty)}")
    return str(path)


def _repeats(ladder: str, options: Options) -> str:
    from climb.bench.repeats import record_repeats

    return str(record_repeats(ladder, options.folder))


def _spans(ladder: str, options: Options) -> str:
    from climb.bench.spans import record_spans

    return str(record_spans(ladder, folder=options.folder))


def _transfers(ladder: str, options: Options) -> str:
    from climb.bench.transfers import record_transfers

    return str(record_transfers(ladder, options.folder))


def _cpu(ladder: str, options: Options) -> str:
    if not has_methods(ladder):
        raise StepFailed("the ladder has no module cpu")
    return str(record_cpu(ladder, options.folder))


def _search(ladder: str, options: Options) -> str:
    name = search_module(ladder)
    if name is None:
        raise StepFailed("the ladder has no search")
    return str(importlib.import_module(name).record_search(options.folder))


def _divergence(ladder: str, options: Options) -> str:
    from climb.validation.profiles.divergence import record_divergence

    return str(record_divergence(options.folder))


def _events(chapter: str, options: Options) -> str:
    from climb.bench.event_timing import record_events

    return str(record_events(chapter, options.folder))


def chapters_of(ladders: Sequence[str]) -> tuple[str, ...]:
    """Return the chapters whose folders hold these ladders; all chapters if no ladder is named."""
    folders = {load_ladder(name).folder for name in ladders}
    near = {folder.parent.name.replace("_", "-") for folder in folders if folder.is_relative_to(KERNELS)}
    return tuple(name for name in standalone.chapters() if not ladders or name in near)


def _in_the_book(ladder: str) -> bool:
    return ladder in ladder_names()


def _recorded_in(kind: str) -> Callable[[str], bool]:
    """Return a test for ladders with such a record of some GPU: once measured, it is measured again with the ladder."""
    return lambda ladder: any(records.RECORDS.glob(f"*/{kind}/{load_ladder(ladder).name}.json"))


def _searched_without_tables(ladder: str) -> bool:
    """Return whether to repeat a search with the ladder. A search that makes tables changes launches, and so makes
    times stale: in that case ``climb search`` runs before ``climb record``."""
    name = load_ladder(ladder).name
    return _recorded_in("search")(ladder) and not any(records.RECORDS.glob(f"*/tuning/{name}.json"))


def _program(name: str) -> Callable[[], str]:
    return lambda: "" if shutil.which(name) else TOOLS[name]


def _nvbench() -> str:
    try:
        there = "cuda.bench" in sys.modules or importlib.util.find_spec("cuda.bench") is not None
    except ModuleNotFoundError:
        there = False
    return "" if there else "NVBench, the package cuda-bench: pip install '.[gpu]'"


def _nothing() -> str:
    return ""


#: The step that runs once, before all others: its results belong to the GPU, not to a ladder.
SESSION = Step("ceilings", ceilings, lambda session: True, _nvbench)

#: All steps of a ladder, in the order in which they run.
STEPS: tuple[Step, ...] = (
    Step("measure", measure, lambda ladder: True, _nvbench),
    Step("profile", _profile, _recorded_in("hardware"), _program("ncu")),
    Step("agreement", _agreement, _in_the_book, _program("ncu")),
    Step("sanitize", _sanitize, _in_the_book, _program("compute-sanitizer")),
    Step("repeats", _repeats, _recorded_in("repeats"), _nothing),
    Step("spans", _spans, _recorded_in("spans"), _nothing),
    Step("transfers", _transfers, _recorded_in("transfers"), _nothing),
    Step("cpu", _cpu, has_methods, _nothing),
    Step("search", _search, _searched_without_tables, _nothing),
    Step("divergence", _divergence, lambda ladder: ladder == "divergence", _program("ncu")),
)

#: The steps that run once for each chapter, not for each ladder, after the others.
CHAPTER_STEPS: tuple[Step, ...] = (Step("events", _events, lambda chapter: True, _nothing),)
