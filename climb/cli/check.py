"""Check your solution of an exercise on the emulator.

    climb check --list                                      the exercises, by chapter
    climb check --skeleton coalescing/fields > fields.cu    the kernel to complete
    climb check fields.cu                                   the verdict
    climb check fields.cu --hint 1                          where to look; 2: what to change

The exercise is found by the file's name, or by the kernels that the file defines; --exercise names it where that is not
enough. The exit status is 0 when every check passes, 1 when one does not, and 2 for a wrong command line. No GPU is
needed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from climb.cli.errors import UsageError

if TYPE_CHECKING:
    from climb.bench.exercise import Exercise, Verdict

_GREEN, _YELLOW, _BOLD, _PLAIN = "\033[32m", "\033[33m", "\033[1m", "\033[0m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb check``."""
    parser.add_argument("file", nargs="?", type=Path, help="a .cu file with your kernel")
    parser.add_argument("--exercise", metavar="CHAPTER/NAME", help="the exercise that it solves")
    parser.add_argument("--hint", type=int, choices=(1, 2), help="print a hint: 1, where to look; 2, what to change")
    parser.add_argument("--list", action="store_true", help="list the exercises by chapter")
    parser.add_argument("--skeleton", metavar="CHAPTER/NAME", help="print the kernel to complete")
    parser.add_argument("--cells", metavar="CHAPTER", help="print the notebook cells of a chapter's exercises")


def run(args: argparse.Namespace) -> int:
    """Check, or list. 0: solved; 1: not yet. Raises UsageError."""
    if args.list:
        return _list()
    if args.cells:
        return _print_cells(args.cells)
    if args.skeleton:
        print(find(args.skeleton).skeleton, end="")
        return 0
    if args.file is None and not (args.hint and args.exercise):
        raise UsageError("expected FILE.cu, with --exercise CHAPTER/NAME; climb check --list names the exercises")
    named = find(args.exercise) if args.exercise else None
    source = _read(args.file) if args.file else ""
    exercise = named or guess(args.file, source)
    if args.hint:
        return _print_hint(exercise, args.hint)
    from climb.bench.exercise import check

    verdict = check(source, exercise)
    print(_coloured(verdict) if _is_terminal() else verdict)
    return 0 if verdict.passed else 1


def find(name: str) -> Exercise:
    """Return the exercise that ``chapter/name`` means. Raises UsageError naming those that exist."""
    from climb.bench.registry import exercise_chapters, load_exercises

    chapter, slash, short = name.partition("/")
    if not slash or chapter not in exercise_chapters():
        known = ", ".join(exercise_chapters())
        raise UsageError(f"no exercise '{name}'; expected CHAPTER/NAME, where CHAPTER is one of {known}")
    exercises = {one.name: one for one in load_exercises(chapter)}
    if short not in exercises:
        raise UsageError(f"{chapter} has no exercise '{short}'; it has {', '.join(exercises)}")
    return exercises[short]


def guess(file: Path, source: str) -> Exercise:
    """Find the exercise that a file solves: the one whose kernels it defines, and among several the one with its name.

    Raises UsageError if no exercise, or more than one, fits.
    """
    from climb.bench.identity import kernels_of, tokens

    mine = set(kernels_of(tokens(source)))
    every = dict(_every_exercise())
    by_kernel = {name for name, one in every.items() if mine and _kernels(one) <= mine}
    by_file = {name for name, one in every.items() if file.stem in (one.name, f"{one.name}_solution")}
    fitting = sorted(by_kernel & by_file or by_kernel or by_file)
    if len(fitting) == 1:
        return every[fitting[0]]
    if fitting:
        raise UsageError(f"{file} may solve {', '.join(fitting)}; say which one with --exercise")
    raise UsageError(f"no exercise is called {file.stem} or has a kernel of {file}; expected --exercise CHAPTER/NAME")


def _kernels(exercise: Exercise) -> set[str]:
    """Return the names of the kernels that an exercise launches, without template arguments."""
    return {launch.kernel.partition("<")[0] for launch in exercise.launches(exercise.sizes[-1])}


def _every_exercise() -> Iterable[tuple[str, Exercise]]:
    from climb.bench.registry import exercise_chapters, load_exercises

    for chapter in exercise_chapters():
        for exercise in load_exercises(chapter):
            yield f"{chapter}/{exercise.name}", exercise


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from None


def _list() -> int:
    every = list(_every_exercise())
    width = max(len(name) for name, _ in every)
    for name, exercise in every:
        print(f"{name:{width}}  {exercise.problem.title}")
    return 0


def _print_hint(exercise: Exercise, number: int) -> int:
    if not exercise.hints:
        raise UsageError(f"the exercise {exercise.name} has no hints")
    print(exercise.hints[number - 1])
    return 0


def _is_terminal() -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR is set (https://no-color.org)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _coloured(verdict: Verdict) -> str:
    """Format the verdict with its first words in colour, and its last line in bold."""
    lines = str(verdict).split("\n")
    for at, line in enumerate(lines):
        for word, colour in (("right:", _GREEN), ("not yet:", _YELLOW)):
            if line.startswith(word):
                lines[at] = f"{colour}{word}{_PLAIN}{line[len(word) :]}"
    lines[-1] = f"{_BOLD}{_GREEN if verdict.passed else _YELLOW}{lines[-1]}{_PLAIN}"
    return "\n".join(lines)


def _print_cells(chapter: str) -> int:
    from climb.bench.exercise import cell
    from climb.bench.registry import exercise_chapters, load_exercises

    if chapter not in exercise_chapters():
        raise UsageError(f"no chapter '{chapter}' with exercises; there are {', '.join(exercise_chapters())}")
    for exercise in load_exercises(chapter):
        print(f"# {exercise.name}\n{cell(exercise)}\n")
    return 0
