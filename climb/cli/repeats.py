"""Launch each rung many times, count how often each result appears, and write records/<gpu>/repeats/<ladder>.json."""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb repeats``."""
    common.add_ladders(parser)
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file of each ladder and print its path. Raises UsageError and Unavailable."""
    from climb.bench.repeats import record_repeats

    common.loaded(args.ladders)
    common.need_gpu("counting results")
    common.use_commit(args)
    for name in args.ladders:
        print(record_repeats(name, args.records))
    return 0
