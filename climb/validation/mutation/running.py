"""Run the tests that should notice a mutant, each in a copy of the repository that only one worker uses."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from climb.validation.mutation.mutants import Mutant
from climb.validation.mutation.noticing import Noticing, Stage

#: Seconds of computing that the tests of a rung, or what is listed for a module, may take; a longer run is taken for a
#: hang.
LIMIT = 120.0
#: How much longer a run may take by the clock: it waits for others on a busy machine, and for nothing in a deadlock.
BUSY = 5
#: The least that what is listed for a module may take.
SHORTEST = 30.0
#: Statuses of mutants that are none: one does not compile, the other is the same program.
NOT_COUNTED = ("invalid", "same")
#: Python's bytecode comes along and stays valid, but not what another process is writing.
_LEFT_BEHIND = (".git", ".venv", "_build", "*.pyc.*", ".hypothesis", ".pytest_cache", ".ruff_cache")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", re.MULTILINE)
_MISSING = re.compile(r"^ERROR: not found: (\S.*)$", re.MULTILINE)
_WRONG_ARGUMENTS, _NO_TESTS = 4, 5
_OPTIONS = ("-x", "-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:nbval")
#: Times are replayed, and tests are as thorough as those of CI (`tests/conftest.py` reads the second). Bytecode is kept
#: in the copy, even where the environment says otherwise: without it, half of a short run is compiling Python.
_ENVIRONMENT = {"WORKLOG_TIMINGS": "record", "CLIMB_THOROUGH": "1", "PYTHONDONTWRITEBYTECODE": ""}


@dataclass(frozen=True)
class Outcome:
    """What came of a mutant. ``status`` is killed, survived, invalid (it does not compile), same (it compiles to the
    same code) or unreached (no test calls it); ``how`` names the test that failed, or says that time ran out.
    ``tests`` is the digest of the tests that this depends on (``Noticing.digest``)."""

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

    @classmethod
    def of(cls, mutant: Mutant, status: str, how: str, seconds: float) -> Outcome:
        """The outcome of a mutant."""
        return cls(
            mutant.key, mutant.file, mutant.line, mutant.operator, mutant.original_line, mutant.mutated_line,
            status, how, round(seconds, 1),
        )  # fmt: skip


class Copy:
    """A copy of the repository, in which one worker plants mutants and takes them out again."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(*_LEFT_BEHIND), symlinks=True)
        compiled = root / "_build" / "compiled"
        if compiled.is_dir():
            shutil.copytree(compiled, folder / "_build" / "compiled", copy_function=_link)
        self._clean: dict[str, bool] = {}

    @contextlib.contextmanager
    def planted(self, mutant: Mutant) -> Iterator[None]:
        """The copy with the mutant in it."""
        self._write(mutant.file, mutant.mutated)
        try:
            yield
        finally:
            self._write(mutant.file, mutant.text)

    def _write(self, file: str, text: str) -> None:
        """Write a file, and drop its compiled form, which Python tells from a new one by second and size alone."""
        path = self.folder / file
        path.write_text(text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()

    def pytest(self, arguments: Iterable[str], seconds: float, **environment: str) -> tuple[int | None, str]:
        """Exit status and output of a run of pytest; no status where it ran out of time and was ended.

        It may compute for ``seconds``, and take BUSY times that by the clock.
        """
        command = [sys.executable, "-m", "pytest", *_OPTIONS, *arguments]
        process = subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **_ENVIRONMENT, **environment}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
        try:
            output, _ = process.communicate(timeout=BUSY * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None, process.communicate()[0]
        ended = process.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
        return None if ended else process.returncode, output

    def digests(self, rungs: Iterable[str], *options: str) -> dict[str, str]:
        """The digests of the rungs' code as they are now, as ``compiled`` prints them; none if one does not compile."""
        command = [sys.executable, "-m", "climb.validation.mutation.compiled", *options, *rungs]
        made = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        return json.loads(made.stdout) if made.returncode == 0 else {}

    def same_code(self, mutant: Mutant, rungs: Sequence[str]) -> str:
        """What rungs compile to with the mutant as without it: PTX, machine code, or "" if neither is the same."""
        different = self._different(mutant, rungs)
        if not different:
            return "" if different is None else "PTX"
        # One place alone first: where the mutant is another program, it is most often another one everywhere.
        for places in (different[:1], different[1:]):
            if places and self._different(mutant, places, "--machine-code") != []:
                return ""
        return "machine code"

    def _different(self, mutant: Mutant, places: Sequence[str], *options: str) -> list[str] | None:
        """Where the code differs with the mutant; None if it does not compile."""
        with self.planted(mutant):
            mutated = self.digests(places, *options)
        original = self.digests(places, *options) if mutated else {}
        return [place for place in original if mutated.get(place) != original[place]] if original else None

    def passes(self, test: str) -> bool:
        """Whether a test passes here without a mutant, or a file of tests is collected."""
        if test not in self._clean:
            how = [test] if "::" in test else ["--collect-only", test]
            self._clean[test] = self.pytest(how, LIMIT)[0] == 0
        return self._clean[test]

    def finishes(self, arguments: tuple[str, ...], seconds: float) -> bool:
        """Whether a run of pytest without a mutant ends in time."""
        return self.pytest(arguments, seconds)[0] is not None


def _link(source: str, target: str) -> str:
    """Link a file, or copy it where the file system has no links between the two."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target


def run_one(copy: Copy, noticing: Noticing, mutant: Mutant) -> Outcome:
    """Plant one mutant and run its tests until one fails that passes without it."""
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
    arguments, broken = list(stage.arguments), []
    limit = max(LIMIT if not stage.tests else SHORTEST, 5 * noticing.expected_seconds(stage))
    listed = copy.folder / "_build" / "mutation_tests.txt"
    while True:
        if stage.tests:
            listed.parent.mkdir(exist_ok=True)
            listed.write_text("\n".join(test for test in stage.tests if test not in broken), encoding="utf-8")
            arguments = [f"@{listed}"]
        deselected = [f"--deselect={test}" for test in broken if not stage.tests]
        with copy.planted(mutant):
            status, output = copy.pytest([*arguments, *deselected], limit)
        if status is None:
            if copy.finishes((*arguments, *deselected), limit):
                return "killed", f"hangs: longer than {limit:.0f} s"
            return "survived", f"its tests need more than {limit:.0f} s"
        if status in (0, _NO_TESTS):
            return "survived", ""
        failed = _FAILED.search(output)
        if status == _WRONG_ARGUMENTS and failed is None:
            missing = tuple(name.removeprefix(f"{copy.folder}/") for name in _MISSING.findall(output))
            gone = [test for test in stage.tests if test in missing or test.startswith(tuple(f"{m}[" for m in missing))]
            if set(gone) <= set(broken):
                raise RuntimeError(f"pytest was called wrongly:\n{output}")
            broken += gone  # they are no longer there since they were traced
            continue
        if failed is None:
            return "killed", f"pytest ended with {status}"
        if mutant.file.endswith((".cu", ".cuh")) and "CompileError" in output:
            return "invalid", "does not compile"
        if copy.passes(failed[1]):
            return "killed", failed[1]
        broken.append(failed[1])  # it fails without the mutant too


def run_all(
    root: Path,
    mutants: Iterable[Mutant],
    count: int,
    noticing: Noticing,
    known: dict[str, Outcome],
    say: Callable[[Outcome], None],
    jobs: int = 2,
    final: Callable[[Outcome], bool] = lambda outcome: False,
) -> list[Outcome]:
    """Run mutants, ``jobs`` at a time, until ``count`` have been decided; those in NOT_COUNTED are replaced by others.

    ``known`` holds outcomes of earlier runs by key, which are not run again as long as the tests that they depend on
    are the same, or for ever if they are ``final``. ``say`` is called with each outcome as it is known. Outcomes are
    returned in the order of the mutants.
    """
    source, lock = enumerate(mutants), threading.Lock()
    decided: dict[int, Outcome] = {}

    def work(folder: Path) -> None:
        copy = Copy(root, folder)
        own = Noticing(copy.folder, noticing.calls)  # of the copy, for files of the repository may change meanwhile
        while True:
            with lock:
                taken = sum(outcome.status not in NOT_COUNTED for outcome in decided.values()) + len(running)
                number, mutant = next(source, (0, None)) if taken < count else (0, None)
                if mutant is None:
                    return
                running.add(number)
            outcome = known.get(mutant.key)
            if outcome is None or not (
                final(outcome) or outcome.tests == own.digest(mutant, outcome.status, outcome.how)
            ):
                outcome = run_one(copy, own, mutant)
                outcome = replace(outcome, tests=own.digest(mutant, outcome.status, outcome.how))
            with lock:
                running.discard(number)
                decided[number] = outcome
                say(outcome)

    running: set[int] = set()
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch, ThreadPoolExecutor(jobs) as pool:
        for future in [pool.submit(work, Path(scratch) / str(number)) for number in range(jobs)]:
            future.result()
    return [decided[number] for number in sorted(decided)]


def trace(root: Path, tests: Iterable[str], jobs: int = 2) -> dict[str, dict]:
    """What each test calls, by a run of all of them in a copy; see ``tracing``."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as scratch:
        copy = Copy(root, Path(scratch) / "0")

        def one(path: str) -> dict[str, dict]:
            out = Path(scratch) / f"{path.replace('/', '_')}.json"
            plugin = ("-p", "climb.validation.mutation.tracing", "--maxfail=1000")
            copy.pytest([*plugin, path], 3600.0, MUTATION_TRACE=str(out))
            return json.loads(out.read_text(encoding="utf-8")) if out.is_file() else {}

        with ThreadPoolExecutor(jobs) as pool:
            return {test: made for part in pool.map(one, tests) for test, made in part.items()}


def as_json(outcomes: Iterable[Outcome]) -> list[dict[str, object]]:
    """Outcomes as they stand in the results."""
    return [asdict(outcome) for outcome in outcomes]
