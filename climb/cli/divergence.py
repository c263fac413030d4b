"""Count what diverging kernels execute with Nsight Compute, and write records/<gpu>/profiles/divergence.json."""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb divergence``."""
    common.add_record_options(parser)
    common.add_prepared(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file and print its path. Raises Unavailable."""
    from climb.validation.profiles.divergence import record_divergence, write_prepared

    if args.prepare:
        write_prepared(args.prepare)
        return 0
    common.need_gpu("profiling")
    common.need_tool("ncu")
    common.use_commit(args)
    print(record_divergence(args.records, args.prepared))
    return 0
