"""Take over records that were made on another machine, with climb record --records DIR.

    climb merge /tmp/rec
    climb merge /tmp/rec --into records/nvidia-h100-80gb-hbm3

A folder may have any part of what climb record writes. Each file is checked first: its schema, its GPU, whether it is
of today's kernels, whether its counts are complete. What fails is left out, and the line of that file says why.
Afterwards climb agreement --compare compares the emulator with the counts.

Exit status: 0, everything was taken over; 1, something was left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb merge``."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder with the records")
    parser.add_argument("--into", type=Path, metavar="DIR", help="default: records/<gpu>, by the GPU of the records")


def run(args: argparse.Namespace) -> int:
    """Merge the files that pass. Returns 1 if a file was left out. Raises UsageError."""
    from climb.bench.merging import gpu_of, merge_records
    from climb.bench.records import RECORDS, RecordError
    from climb.validation.merging import merge_clean, merge_counts, merge_profiles

    gpu = gpu_of(args.folder) if args.folder.is_dir() else ""
    if not gpu:
        raise UsageError(f"{args.folder}: there are no records in it")
    into = args.into or RECORDS / gpu
    left = False
    try:
        for merge in (merge_records, merge_counts, merge_clean, merge_profiles):
            for line in merge(args.folder, into):
                print(line, flush=True)
                left = left or "left out" in line
    except RecordError as error:
        raise UsageError(str(error)) from None
    return int(left)
