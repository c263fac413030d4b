"""Keep the machine code that chapters show of rungs for which NVRTC makes another code in each process.

Compiles the rungs of SHOWN in climb/bench/shown_code.py in several processes, and writes all codes that they made to
records/<the book's GPU>/code/. Fresh files stay as they are: delete one to make it anew. Needs no GPU.
"""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb keep-code``."""
    parser.add_argument("--processes", type=int, default=16, help="compile in so many (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write the files, and print each with the number of processes that made each of its codes."""
    from climb.bench.shown_code import keep_all, missing_or_stale

    common.need_checkout("keeping machine code")
    for path, times in keep_all(missing_or_stale(), args.processes):
        print(f"{path}: {len(times)} codes, made by {', '.join(map(str, times))} processes")
    return 0
