"""Read the hardware's counters of ladders with Nsight Compute, and write records/<gpu>/hardware/<ladder>.json."""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb profile``."""
    common.add_ladders(parser)
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file of each ladder and print its path. Raises UsageError and Unavailable."""
    from climb.bench.profiling import record_counters

    common.loaded(args.ladders)
    common.need_gpu("profiling")
    common.need_tool("ncu")
    common.use_commit(args)
    for name in args.ladders:
        print(record_counters(name, args.records))
    return 0
