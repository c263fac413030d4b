"""Record when each launch of a rung begins and ends, and write records/<gpu>/spans/<ladder>.json."""

from __future__ import annotations

import argparse

from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb spans``."""
    common.add_ladders(parser)
    parser.add_argument("--rung", action="append", default=[], help="only this rung; may be repeated")
    parser.add_argument("--any-compiler", action="store_true",
                        help="record although NVRTC is not the locked one; the record says so")  # fmt: skip
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file of each ladder and print its path. Raises UsageError and Unavailable."""
    from climb.bench.spans import record_spans

    for ladder in common.loaded(args.ladders):
        if unknown := [rung for rung in args.rung if rung not in ladder.names]:
            raise UsageError(f"{ladder.name} has no rung '{unknown[0]}'; it has {', '.join(ladder.names)}")
    common.need_gpu("recording spans")
    common.check_versions(args.any_compiler)
    common.use_commit(args)
    for name in args.ladders:
        print(record_spans(name, args.rung, args.records))
    return 0
