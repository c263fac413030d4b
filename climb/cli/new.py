"""Make the stubs of a rung, a ladder, a chapter or an exercise. No GPU is needed, and no file is overwritten.

    climb new rung saxpy/evict_first --after float4  a copy of the rung float4, to be changed
    climb new ladder float4/axpby                    a ladder with one rung, complete and tested
    climb new exercise float4/tail                   skeleton, solution, and the cells of the chapter
    climb new chapter warp-specialisation            a page, its folder of kernels, its tests

What it makes passes the tests, with two exceptions: a new rung is a copy, not another program yet, and a chapter has to
show its new ladder. ARCHITECTURE.md says what to do next, step by step.
"""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb new``."""
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True, help="rung, ladder, exercise or chapter")
    rung = kinds.add_parser("rung", help="a copy of a rung of a ladder, to be changed")
    rung.add_argument("name", metavar="LADDER/NAME", help="the ladder, and the new rung's name")
    rung.add_argument("--after", metavar="RUNG", help="the rung that it follows and copies (default: the last)")
    ladder = kinds.add_parser("ladder", help="a ladder with one rung, complete and tested")
    ladder.add_argument("name", metavar="CHAPTER/NAME", help="the chapter that is to show it, and the ladder's name")
    exercise = kinds.add_parser("exercise", help="skeleton, solution and cells of an exercise")
    exercise.add_argument("name", metavar="CHAPTER/NAME", help="the chapter, and the exercise's name")
    chapter = kinds.add_parser("chapter", help="a page of the book, its folder of kernels, its tests")
    chapter.add_argument("name", metavar="NAME", help="the page's name, as in my-chapter")
    chapter.add_argument("--part", metavar="CAPTION", help="the part of _toc.yml (default: the last but one)")


def run(args: argparse.Namespace) -> int:
    """Make the files and print the next steps. Raises UsageError before anything is written."""
    common.need_checkout("adding files")
    if args.kind == "rung":
        from climb.cli.scaffold.rung import new_rung

        new_rung(args.name, args.after)
    elif args.kind == "ladder":
        from climb.cli.scaffold.ladder import new_ladder

        new_ladder(args.name)
    elif args.kind == "exercise":
        from climb.cli.scaffold.exercise import new_exercise

        new_exercise(args.name)
    else:
        from climb.cli.scaffold.chapter import new_chapter

        new_chapter(args.name, args.part)
    return 0
