"""Record ladders over several GPUs. Every rank runs this: climb launch -n 2 -m climb record-shared halo3d exchange

Rank 0 writes records/<gpu>-x<ranks>/<ladder>.json when all rungs are measured, whole or not at all, and the timelines
of their steps beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.bench import records
from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb record-shared``."""
    parser.add_argument("ladders", nargs="*", help="which ladders (all)")
    parser.add_argument("--records", type=Path, default=records.RECORDS, help="the folder of records")
    parser.add_argument("--rungs", help="comma-separated: print the times of these and write nothing")


def run(args: argparse.Namespace) -> int:
    """Run on one rank; return 0 if all was recorded. Raises Unavailable without a GPU."""
    common.need_gpu("measuring")
    from climb.distributed.record import record

    record(args.ladders, args.records, args.rungs.split(",") if args.rungs else None)
    return 0
