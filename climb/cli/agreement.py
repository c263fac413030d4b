"""Compare the emulator's counts with those of Nsight Compute.

On a GPU with ncu, this counts what is new or has changed, writes records/<gpu>/emulator/agreement.json, and compares.
With --only programs, it runs the kernels of public projects, compares their results with NumPy's, counts their
launches, and writes records/<gpu>/emulator/programs.json. With --compare, it compares the committed counts again
(with --only programs, those of the programs), which needs no GPU.
"""

from __future__ import annotations

import argparse

from climb.cli import common
from climb.cli.errors import UsageError

KINDS = ("rungs", "patterns")
PROGRAMS = "programs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb agreement``."""
    parser.add_argument("--compare", action="store_true", help="compare the committed counts; needs no GPU")
    parser.add_argument("--only", choices=(*KINDS, PROGRAMS), help="count these only")
    parser.add_argument("--ladder", action="append", default=[], help="count this ladder's rungs; may be repeated")
    parser.add_argument("--seconds", type=float, default=600, help="begin nothing that would take longer")
    parser.add_argument("--counts-only", action="store_true", help="do not compare afterwards")
    common.add_prepared(parser)
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Count and compare. Exit status 1 when counts are missing. Raises UsageError and Unavailable."""
    from climb.bench.records import RecordError
    from climb.validation.agreement.measuring import record_agreement, write_prepared
    from climb.validation.agreement.summary import write_summary

    if args.compare and (args.ladder or args.only in KINDS or args.prepare or args.prepared):
        raise UsageError("--compare takes no other option but --only programs")
    if args.compare and args.only == PROGRAMS:
        from climb.validation.foreign import summary

        print(summary.write_summary())
        return 0
    if args.compare:
        print(write_summary())
        return 0
    common.loaded(args.ladder)
    if args.only == PROGRAMS:
        return _programs(args)
    kinds = ("rungs",) if args.ladder else (args.only,) if args.only else KINDS
    if args.prepare:
        write_prepared(args.prepare, kinds, args.ladder)
        return 0
    common.need_gpu("counting")
    common.need_tool("ncu")
    common.use_commit(args)
    try:
        path, complete = record_agreement(kinds, args.ladder, args.seconds, args.records, args.prepared)
    except RecordError as error:
        raise UsageError(str(error)) from None
    print(path)
    if complete and not args.counts_only:
        print(write_summary())
    return 0 if complete else 1


def _programs(args: argparse.Namespace) -> int:
    from climb.validation.foreign.measuring import record_programs, write_prepared

    if args.prepare:
        write_prepared(args.prepare)
        return 0
    common.need_gpu("counting")
    common.need_tool("ncu")
    common.use_commit(args)
    path, complete = record_programs(args.seconds, args.records, args.prepared)
    print(path)
    return 0 if complete else 1
