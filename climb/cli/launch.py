"""Run a program as several ranks, on a GPU each, and watch them: climb launch -n 2 script.py ...

Each rank is a process with the variables that torchrun sets too, so a program for one also runs under the other. When a
rank dies, or waits too long for another, all are ended, and the message names the rank and what it did. Without a GPU
the ranks are threads of one process. The exit status is that of the first rank that failed, or 0.
"""

from __future__ import annotations

import argparse

from climb.cli.errors import UsageError
from climb.distributed.launcher import SILENCE, launch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb launch``."""
    parser.add_argument("-n", "--ranks", type=int, default=2, help="how many ranks (2)")
    parser.add_argument("-m", "--module", action="store_true", help="the program is a module, not a file")
    parser.add_argument("--silence", type=float, default=SILENCE, help=f"seconds without a sign of life ({SILENCE:g})")
    parser.add_argument(
        "--processes", action="store_true", help="a process for each rank even where there is no GPU for it"
    )
    parser.add_argument("program", help="the program, which calls climb.distributed.connect()")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(args: argparse.Namespace) -> int:
    """Run all ranks. Raises UsageError for fewer than one."""
    if args.ranks < 1:
        raise UsageError(f"there must be at least one rank, not {args.ranks}")
    return launch(args.ranks, args.program, args.arguments, args.module, args.silence, args.processes)
