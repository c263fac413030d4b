"""Plant single mistakes in rungs, in ``climb/bench`` and in ``climb/emulator``, and say which no test notices.

Mutants are drawn with a seed and run in copies of the repository, two at a time. ``_build/mutation.json`` keeps what
came of them, so that a run that was interrupted goes on where it ended; a verdict counts until the mutated file or its
tests change. A mutant is killed by a test that, by itself, fails with it and passes without it. A survivor is a test to
write, or an entry with its kind and reason in ``climb/validation/mutation/survivors.json``. Not counted, and replaced
by another, is a mutant that does not compile, that compiles to the same code, or that survives and has an entry that
calls it equivalent. Where the entry names a test, the mutant has to die of that test. An entry that the run contradicts
makes the command fail; ``--known`` tries all entries. ``--save`` writes the run to
``tests/validation/data/mutation.json``, which later runs go on from too, and what it came to beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from climb.validation.mutation import calls, choosing, running, summary, survivors
from climb.validation.mutation.noticing import Noticing
from climb.validation.mutation.processes import interrupted_once
from climb.validation.mutation.running import Outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "_build" / "mutation.json"
CALLS = ROOT / "_build" / "mutation_calls.json"
SAVED = ROOT / "tests" / "validation" / "data" / "mutation.json"
#: Areas whose mutants are noticed by the tests that call the mutated function.
CALLED = ("bench", "emulator")
#: Test files to trace, to know what each test calls: folders and files from the repository's root.
TRACED = (
    "tests/bench",
    "tests/cli/test_compare.py",
    "tests/cli/test_described_arguments.py",
    "tests/cli/test_merge.py",
    "tests/emulator",
    "tests/fake_cupy",
    "tests/display",
    "tests/kernels/bank_conflicts",
    "tests/kernels/emulator",
    "tests/kernels/conv2d/test_conv2d.py",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("--count", type=int, default=300, help="mutants that compile, at least (300)")
    parser.add_argument("--seed", type=int, default=0, help="the same mutants for the same seed and sources (0)")
    parser.add_argument("--area", choices=tuple(choosing.AREAS), action="append", help="all areas if left out")
    parser.add_argument("--jobs", type=int, default=2, help="mutants run at a time (2)")
    parser.add_argument("--file", help="only files whose path contains this")
    parser.add_argument("--again", action="store_true", help="run survivors of earlier runs again")
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--known", action="store_true", help="run all mutants that survivors.json has entries for")
    one.add_argument("--save", action="store_true", help=f"write the run to {SAVED.relative_to(ROOT)}")


def run(args: argparse.Namespace) -> int:
    """Run the mutants; 0 if each survivor is named with its reason and no entry is contradicted, else 1."""
    with interrupted_once():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    areas = args.area or list(choosing.AREAS)
    called = calls.calls(ROOT, CALLS, _traced(), args.jobs) if set(areas) & set(CALLED) else {}
    known = survivors.known_survivors()
    earlier = summary.load_results(SAVED) | summary.load_results(RESULTS)
    results = dict(earlier)
    number = 0

    def counts(outcome: Outcome) -> bool:
        return args.known or survivors.counts(outcome, known)

    def say(outcome: Outcome) -> None:
        nonlocal number
        number += counts(outcome)
        print(summary.line_of(outcome, number, count), flush=True)
        results[outcome.key] = outcome
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"mutants": running.as_json(results.values())}, indent=1), encoding="utf-8")

    mutants = choosing.drawn_of_areas(ROOT, areas, args.seed)
    count = args.count
    if args.known:
        listed = list(choosing.mutants_of_entries(ROOT, ((one.file, one.original, one.mutated) for one in known)))
        mutants, count = iter(listed), len(listed)
    if args.file:
        mutants = (mutant for mutant in mutants if args.file in mutant.file)
    noticing = Noticing(ROOT, called, lambda mutant: survivors.named_test(known, mutant))
    usable = survivors.reusable(earlier, known, args.again)
    outcomes = running.run_all(ROOT, mutants, count, noticing, usable, say, args.jobs, counts)
    print(summary.summary(outcomes, known))
    if args.save:
        SAVED.parent.mkdir(exist_ok=True)
        summary.Run.of(args.seed, _revision(), outcomes, known).save(SAVED)
    wrong = any(survivors.contradiction(outcome, known) for outcome in outcomes)
    return 1 if wrong or survivors.unexplained(outcomes, known) else 0


def _revision() -> str:
    """Return the commit of the run."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _traced() -> list[str]:
    """List the test files to trace, from the repository's root."""
    tests = sorted(path for name in TRACED for path in _python(ROOT / name) if path.name.startswith("test_"))
    return [path.relative_to(ROOT).as_posix() for path in tests]


def _python(path: Path) -> list[Path]:
    """List a Python file, or all files of a folder."""
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))
