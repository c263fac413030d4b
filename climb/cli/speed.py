"""Measure how fast the emulator runs with counters on: its own kernels, then the book's ladders.

Each ladder runs at the last of the sizes at which its rungs are checked. With names, only those ladders run. All runs
are timed in one process, and in as many as `CLIMB_WORKERS` says, by default one for each CPU core.
"""

from __future__ import annotations

import argparse

from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb speed``."""
    common.add_ladders(parser, all_by_default=True)
    parser.add_argument("--kernels-only", action="store_true", help="leave the ladders out")
    parser.add_argument("--against", metavar="COMMIT", help="run the emulator's own kernels with the files of that "
                        "commit and with those here, in turns, and compare")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Print a line for each kernel and each ladder. Raises UsageError for an unknown ladder or commit."""
    if args.against:
        return _compare(args.against)
    from climb.bench import speed
    from climb.bench.registry import ladder_names
    from climb.emulator import bench
    from climb.emulator.execution.processes import pool
    from climb.emulator.execution.workers import number_of_workers

    pool.start(number_of_workers() - 1)
    ladders = [] if args.kernels_only else common.loaded(args.ladders or ladder_names())
    if not args.ladders:
        bench.main()
    if ladders:
        print(f"\n{speed.head()}", flush=True)
    for ladder in ladders:
        print(speed.speed_of(ladder), flush=True)
    return 0


def _compare(commit: str) -> int:
    common.need_checkout("comparing with a commit")
    from climb import paths
    from climb.bench.earlier_speed import compare

    try:
        for line in compare(commit, paths.ROOT):
            print(line, flush=True)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return 0
