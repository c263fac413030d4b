"""Check your solution of an exercise on the emulator.

    climb check --list                                      the exercises, by chapter
    climb check --skeleton coalescing/fields > mine.cu      the kernel to complete
    climb check mine.cu --exercise coalescing/fields        the verdict

The exit status is 0 when every check passes, 1 otherwise. No GPU is needed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from climb.cli.errors import UsageError

if TYPE_CHECKING:
    from climb.bench.exercise import Exercise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb check``."""
    parser.add_argument("file", nargs="?", type=Path, help="a .cu file with your kernel")
    parser.add_argument("--exercise", metavar="CHAPTER/NAME", help="the exercise that it solves")
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
    if args.file is None or args.exercise is None:
        raise UsageError("expected FILE.cu --exercise CHAPTER/NAME; climb check --list names the exercises")
    from climb.bench.exercise import check

    exercise = find(args.exercise)
    try:
        source = args.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {args.file}: {error}") from None
    verdict = check(source, exercise)
    print(verdict)
    return 0 if verdict.passed else 1


def find(name: str) -> Exercise:
    """The exercise that ``chapter/name`` means. Raises UsageError naming those that there are."""
    from climb.bench.registry import exercise_chapters, load_exercises

    chapter, slash, short = name.partition("/")
    if not slash or chapter not in exercise_chapters():
        known = ", ".join(exercise_chapters())
        raise UsageError(f"no exercise '{name}'; expected CHAPTER/NAME, where CHAPTER is one of {known}")
    exercises = {one.name: one for one in load_exercises(chapter)}
    if short not in exercises:
        raise UsageError(f"{chapter} has no exercise '{short}'; it has {', '.join(exercises)}")
    return exercises[short]


def _list() -> int:
    from climb.bench.registry import exercise_chapters, load_exercises

    for chapter in exercise_chapters():
        for exercise in load_exercises(chapter):
            print(f"{chapter}/{exercise.name}: {exercise.problem.title}")
    return 0


def _print_cells(chapter: str) -> int:
    from climb.bench.exercise import cell
    from climb.bench.registry import exercise_chapters, load_exercises

    if chapter not in exercise_chapters():
        raise UsageError(f"no chapter '{chapter}' with exercises; there are {', '.join(exercise_chapters())}")
    for exercise in load_exercises(chapter):
        print(f"# {exercise.name}\n{cell(exercise)}\n")
    return 0
