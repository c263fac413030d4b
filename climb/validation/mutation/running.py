"""Run the tests that should notice a mutant, each in a copy of the repository that only one worker uses."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock

from climb.validation.mutation.copies import LIMIT, Copy
from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.noticing import Noticing, Stage
from climb.validation.mutation.processes import results, workplace

#: The least seconds for the tests listed for a module.
SHORTEST = 30.0
#: Statuses of texts that are not mutants: one does not compile, the other is the same program.
NOT_COUNTED = ("invalid", "same")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*)$", re.MULTILINE)
_MISSING = re.compile(r"^ERROR: not found: (\S.*)$", re.MULTILINE)
_WRONG_ARGUMENTS, _NO_TESTS = 4, 5


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mutant. ``status`` is killed, survived, invalid (it does not compile), same (it compiles to the
    same code) or unreached (no test calls it); ``how`` names the test that failed, or says that time ran out. ``tests``
    is the digest of the tests that this depends on (``Noticing.digest``), ``place`` tells mutants of the same lines
    apart (``Mutant.place``)."""

    key: str
    file: str
    line: int
    operator: str
    original: str
    mutated: str
    status: str
    how: str
    seconds: float
    tests: str = ""
    place: int = 1

    @classmethod
    def of(cls, mutant: Mutant, status: str, how: str, seconds: float) -> Outcome:
        """Make the outcome of a mutant."""
        return cls(
            mutant.key, mutant.file, mutant.line, mutant.operator, mutant.original_line, mutant.mutated_line,
            status, how, round(seconds, 1), place=mutant.place,
        )  # fmt: skip


def run_one(copy: Copy, noticing: Noticing, mutant: Mutant) -> Outcome:
    """Plant one mutant and run its tests until one fails that passes without it, and fails once more by itself: a test
    that fails by chance has noticed nothing."""
    began = time.monotonic()
    stages = noticing.stages(mutant)
    if not stages:
        return Outcome.of(mutant, "unreached", "no test calls it", 0.0)
    remarks = []
    for stage in stages:
        status, how = _run_stage(copy, noticing, mutant, stage)
        if status != "survived":
            return Outcome.of(mutant, status, how, time.monotonic() - began)
        remarks += [how] if how else []
    rungs = [f"{ladder}/{rung}" for _, ladder, rung in noticing.rungs_of(mutant.file)]
    if rungs and (same := copy.same_code(mutant, rungs)):
        return Outcome.of(mutant, "same", f"compiles to the same {same}", time.monotonic() - began)
    return Outcome.of(mutant, "survived", "; ".join(remarks), time.monotonic() - began)


def _run_stage(copy: Copy, noticing: Noticing, mutant: Mutant, stage: Stage) -> tuple[str, str]:
    arguments, broken, chance = list(stage.arguments), [], []
    limit = max(LIMIT if not stage.tests else SHORTEST, 5 * noticing.expected_seconds(stage))
    listed = copy.folder / "_build" / "mutation_tests.txt"
    while True:
        if stage.tests:
            left = [test for test in stage.tests if test not in broken]
            if not left:  # pytest would run all existing tests for an empty list
                return "survived", "; ".join(chance)
            listed.parent.mkdir(exist_ok=True)
            listed.write_text("\n".join(left), encoding="utf-8")
            arguments = [f"@{listed}"]
        deselected = [f"--deselect={test}" for test in broken if not stage.tests]
        with copy.planted(mutant):
            status, output = copy.pytest([*arguments, *deselected], limit)
        if status is None:
            if copy.finishes((*arguments, *deselected), limit):
                return "killed", f"hangs: longer than {limit:.0f} s"
            return "survived", f"its tests need more than {limit:.0f} s"
        if status in (0, _NO_TESTS):
            return "survived", "; ".join(chance)
        failed = _first_failed(output, stage.tests)
        if status == _WRONG_ARGUMENTS and not failed:
            missing = tuple(name.removeprefix(f"{copy.folder}/") for name in _MISSING.findall(output))
            gone = [test for test in stage.tests if test in missing or test.startswith(tuple(f"{m}[" for m in missing))]
            if set(gone) <= set(broken):
                raise RuntimeError(f"pytest was called wrongly:\n{output}")
            broken += gone  # tests that disappeared since they were traced
            continue
        if not failed:
            return "killed", f"pytest ended with {status}"
        if failed in broken:
            raise RuntimeError(f"pytest ran {failed} again, which was left out:\n{output}")
        if mutant.file.endswith((".cu", ".cuh")) and "CompileError" in output:
            return "invalid", "does not compile"
        if copy.passes(failed):
            if not copy.passes_with(mutant, failed):
                return "killed", failed
            chance.append(f"{failed} fails by chance")  # otherwise it fails without the mutant too
        broken.append(failed)


def _first_failed(output: str, tests: Iterable[str]) -> str:
    """Return the first test that pytest's summary names as failed, "" if there is none. A message may follow its id
    after a dash; the id of a parameter may have such a dash itself, so one of the listed ``tests`` is looked for
    first."""
    found = _FAILED.search(output)
    if found is None:
        return ""
    listed = [test for test in tests if found[1] == test or found[1].startswith(f"{test} - ")]
    return max(listed, key=len, default=found[1].partition(" - ")[0])


def run_all(
    root: Path,
    mutants: Iterable[Mutant],
    count: int,
    noticing: Noticing,
    earlier: dict[str, Outcome],
    say: Callable[[Outcome], None],
    jobs: int = 2,
    counts: Callable[[Outcome], bool] = lambda outcome: outcome.status not in NOT_COUNTED,
) -> list[Outcome]:
    """Run mutants, ``jobs`` at a time, until ``count`` of those that count have been decided.

    ``earlier`` holds outcomes of earlier runs by key, which are not run again as long as the tests that they depend on
    are the same. ``say`` is called with each outcome as it is known. Outcomes are returned in the order of the mutants,
    with those that do not count. Whatever ends the run, its processes are ended and its copies removed.
    """
    source, lock = enumerate(mutants), Lock()
    decided: dict[int, Outcome] = {}
    running: set[int] = set()

    def work(copy: Copy) -> None:
        own = replace(noticing, root=copy.folder)  # files of the repository may change meanwhile
        while True:
            with lock:
                taken = sum(counts(outcome) for outcome in decided.values()) + len(running)
                number, mutant = next(source, (0, None)) if taken < count else (0, None)
                if mutant is None:
                    return
                running.add(number)
            outcome = earlier.get(mutant.key)
            if outcome is None or outcome.tests != own.digest(mutant, outcome.status, outcome.how):
                outcome = run_one(copy, own, mutant)
                outcome = replace(outcome, tests=own.digest(mutant, outcome.status, outcome.how))
            with lock:
                running.discard(number)
                decided[number] = replace(outcome, place=mutant.place)
                say(decided[number])

    with workplace(jobs) as (scratch, processes, pool):
        workers = [pool.submit(lambda folder: work(Copy(root, folder, processes)), scratch / str(number))
                   for number in range(jobs)]  # fmt: skip
        for _ in results(workers):
            pass
    return [decided[number] for number in sorted(decided)]


def trace(root: Path, tests: Iterable[str], jobs: int = 2) -> dict[str, dict]:
    """Trace what each test calls, by running all of them in a copy; see ``tracing``."""
    with workplace(jobs) as (scratch, processes, pool):
        copy = Copy(root, scratch / "0", processes)

        def one(path: str) -> dict[str, dict]:
            out = scratch / f"{path.replace('/', '_')}.json"
            plugin = ("-p", "climb.validation.mutation.tracing", "--maxfail=1000")
            copy.pytest([*plugin, path], 3600.0, MUTATION_TRACE=str(out))
            return json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}

        parts = [pool.submit(one, path) for path in tests]
        for _ in results(parts):
            pass
        return {test: made for part in parts for test, made in part.result().items()}


def as_json(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """Return outcomes in the form of the results file."""
    return [asdict(outcome) for outcome in outcomes]
