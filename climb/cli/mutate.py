"""Plant single mistakes in rungs, in ``climb/bench`` and in ``climb/emulator``, and say which no test notices.

Mutants are drawn with a seed and run in copies of the repository, two at a time. One that does not compile, or that
compiles to the same code, is replaced by another. ``_build/mutation.json`` keeps what came of them, so that a run that
was interrupted goes on where it ended; a verdict counts until the mutated file or its tests change, that of a known
survivor until the file changes. A survivor is a test to write, or an entry with its kind and reason in
``climb/validation/mutation/survivors.json``. ``--save`` writes the run to ``tests/validation/data/mutation.json``,
which later runs go on from too, and what it came to beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from climb.validation.mutation import calls, choosing, running, summary
from climb.validation.mutation.noticing import Noticing
from climb.validation.mutation.running import Outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "_build" / "mutation.json"
CALLS = ROOT / "_build" / "mutation_calls.json"
SAVED = ROOT / "tests" / "validation" / "data" / "mutation.json"
#: Areas whose mutants are noticed by the tests that call the mutated function.
CALLED = ("bench", "emulator")
#: Test files that are traced to know what each test calls: folders and files from the repository's root.
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
    parser.add_argument("--save", action="store_true", help=f"write the run to {SAVED.relative_to(ROOT)}")


def run(args: argparse.Namespace) -> int:
    """Run the mutants; 0 if each survivor is named with its reason, else 1."""
    areas = args.area or list(choosing.AREAS)
    called = calls.calls(ROOT, CALLS, _traced(), args.jobs) if set(areas) & set(CALLED) else {}
    known = summary.known_survivors()
    earlier = summary.load_results(SAVED) | summary.load_results(RESULTS)
    usable = {key: one for key, one in earlier.items() if _stands(one) or not args.again}
    results = dict(earlier)
    number = 0

    def say(outcome: Outcome) -> None:
        nonlocal number
        number += outcome.status not in running.NOT_COUNTED
        print(summary.line_of(outcome, number, args.count), flush=True)
        results[outcome.key] = outcome
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"mutants": running.as_json(results.values())}, indent=1), encoding="utf-8")

    mutants = choosing.drawn_of_areas(ROOT, areas, args.seed)
    if args.file:
        mutants = (mutant for mutant in mutants if args.file in mutant.file)

    def final(outcome: Outcome) -> bool:
        return outcome.status == "survived" and summary.explanation(known, outcome) is not None

    outcomes = running.run_all(ROOT, mutants, args.count, Noticing(ROOT, called), usable, say, args.jobs, final)
    print(summary.summary(outcomes, known))
    if args.save:
        SAVED.parent.mkdir(exist_ok=True)
        summary.Run.of(args.seed, _revision(), outcomes, known).save(SAVED)
    return 1 if summary.unexplained(outcomes, known) else 0


def _stands(outcome: Outcome) -> bool:
    """Whether an outcome is final: more tests cannot change it."""
    return outcome.status == "killed" or outcome.status in running.NOT_COUNTED


def _revision() -> str:
    """The commit that the run is of."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _traced() -> list[str]:
    """The test files that are traced, from the repository's root."""
    tests = sorted(path for name in TRACED for path in _python(ROOT / name) if path.name.startswith("test_"))
    return [path.relative_to(ROOT).as_posix() for path in tests]


def _python(path: Path) -> list[Path]:
    """A Python file, or all of a folder."""
    return [path] if path.suffix == ".py" else sorted(path.rglob("*.py"))


def main() -> int:
    """The command by itself."""
    parser = argparse.ArgumentParser(prog="climb mutate", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
