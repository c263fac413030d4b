"""Measure what moving a ladder's arrays costs, and write records/<gpu>/transfers/<ladder>.json."""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb transfers``."""
    common.add_ladders(parser)
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file of each ladder and print its path. Raises UsageError and Unavailable."""
    from climb.bench.transfers import record_transfers

    common.loaded(args.ladders)
    common.need_gpu("measuring transfers")
    common.use_commit(args)
    for name in args.ladders:
        print(record_transfers(name, args.records))
    return 0
