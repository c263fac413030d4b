"""Keep the machine code that chapters show of rungs for which NVRTC makes another code in each process.

Compiles the rungs of SHOWN in climb/bench/shown_code.py in several processes, and writes all codes that they made to
records/<the book's GPU>/code/. A fresh file stays as it is, unless --more names its ladder: then what further
processes make is added. Rare codes need many processes. Needs no GPU.
"""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb keep-code``."""
    parser.add_argument("--more", action="append", default=[], metavar="LADDER", help="add to its fresh files, too")
    parser.add_argument("--processes", type=int, default=16, help="compile in so many (default %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Write the files, and print each with the number of processes that made each of its codes."""
    from climb.bench.shown_code import SHOWN, keep_all, missing_or_stale

    common.need_checkout("keeping machine code")
    asked = {ladder.name: ladder for ladder in common.loaded(args.more)}
    rungs = [rung for rung in missing_or_stale() if rung.ladder.name not in asked]
    rungs += [asked[ladder][rung] for ladder, rung in sorted(SHOWN) if ladder in asked]
    for path, times in keep_all(rungs, args.processes):
        print(f"{path}: {len(times)} codes, made by {', '.join(map(str, times))} processes")
    return 0
