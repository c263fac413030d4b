"""Plant single mistakes in rungs, in ``climb/bench`` and in ``climb/emulator``, and say which no test notices.

Mutants are drawn with a seed and run in copies of the repository, two at a time. ``_build/mutation.json`` keeps what
came of them, so that a run that was interrupted goes on where it ended. A survivor is a test to write, or an entry with
its reason in ``climb/validation/mutation/equivalent.json``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path

from climb.validation.mutation import choosing, running, summary
from climb.validation.mutation.noticing import Noticing
from climb.validation.mutation.running import Outcome

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "_build" / "mutation.json"
CALLS = ROOT / "_build" / "mutation_calls.json"
#: Areas whose mutants are noticed by the tests that call the mutated function.
CALLED = ("bench", "emulator")
#: Test files that are traced once to know what each test calls: folders and files from the repository's root.
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


def run(args: argparse.Namespace) -> int:
    """Run the mutants; 0 if each survivor is named with its reason, else 1."""
    areas = args.area or list(choosing.AREAS)
    calls = _calls(args.jobs) if set(areas) & set(CALLED) else {}
    known = summary.known_survivors()
    earlier = summary.load_results(RESULTS)
    usable = {key: one for key, one in earlier.items() if one.status in ("killed", "invalid") or not args.again}
    results = dict(earlier)
    number = 0

    def say(outcome: Outcome) -> None:
        nonlocal number
        number += outcome.status != "invalid"
        print(summary.line_of(outcome, number, args.count), flush=True)
        results[outcome.key] = outcome
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps({"mutants": running.as_json(results.values())}, indent=1), encoding="utf-8")

    mutants = choosing.drawn_of_areas(ROOT, areas, args.seed)
    if args.file:
        mutants = (mutant for mutant in mutants if args.file in mutant.file)
    outcomes = running.run_all(ROOT, mutants, args.count, Noticing(ROOT, calls), usable, say, args.jobs)
    print(summary.summary(outcomes, known))
    return 1 if summary.unexplained(outcomes, known) else 0


def _calls(jobs: int) -> dict[str, dict]:
    """What each test of a module calls, kept until a module or a test changes."""
    tests = sorted(path for name in TRACED for path in _python(ROOT / name) if path.name.startswith("test_"))
    sources = [path for area in CALLED for path in _python(ROOT / "climb" / area)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (*sources, *tests))).hexdigest()
    try:
        kept = json.loads(CALLS.read_text(encoding="utf-8"))
        if kept["sources"] == digest:
            return kept["tests"]
    except (OSError, ValueError, KeyError):
        pass
    print(f"Tracing what the tests of {len(tests)} files call, once.", flush=True)
    made = running.trace(ROOT, [path.relative_to(ROOT).as_posix() for path in tests], jobs)
    CALLS.parent.mkdir(exist_ok=True)
    CALLS.write_text(json.dumps({"sources": digest, "tests": made}), encoding="utf-8")
    return made


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
