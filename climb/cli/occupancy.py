"""Read the occupancy of many kernels with Nsight Compute, and write records/<gpu>/profiles/occupancy.json."""

from __future__ import annotations

import argparse

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb occupancy``."""
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Write the file and print its path. Raises Unavailable."""
    from climb.validation.profiles.occupancy import record_occupancy

    common.need_gpu("profiling")
    common.need_tool("ncu")
    common.use_commit(args)
    print(record_occupancy(args.records))
    return 0
