"""Compare two folders of records point by point: is each rung and peer of B faster, slower or the same as in A?

    climb compare nvidia-h200 nvidia-h100-80gb-hbm3
    climb compare records/nvidia-h200 /tmp/mine --ladder transpose

A and B are folders of records/, or paths. Disjoint intervals from the 25th to the 75th percentile decide; "same" means
that each median lies in the other's interval, "ambiguous" everything else. The ratio is A's median time over B's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb compare``."""
    parser.add_argument("a", metavar="A", help="a GPU's folder of records, or a path")
    parser.add_argument("b", metavar="B", help="the folder that is compared with it")
    parser.add_argument("--ladder", action="append", default=[], help="compare this ladder only; may be repeated")
    parser.add_argument("--regime", default="cold", help="cold (default), batch, or dirty where it was measured")


def run(args: argparse.Namespace) -> int:
    """Print a line for each point that both folders have, and how many have which verdict. Raises UsageError."""
    from climb.bench.comparison import compare_folders, table
    from climb.bench.records import ALL_REGIMES, RECORDS, RecordError

    if args.regime not in ALL_REGIMES:
        raise UsageError(f"regime is '{args.regime}'; expected one of {', '.join(ALL_REGIMES)}")
    a, b = (_folder(name, RECORDS) for name in (args.a, args.b))
    try:
        found = compare_folders(a, b, args.regime, args.ladder)
    except (LookupError, RecordError) as error:
        raise UsageError(str(error)) from None
    print(table(found))
    return 0


def _folder(name: str, records: Path) -> Path:
    """The folder that a name means. Raises UsageError naming the folders that there are."""
    for folder in (Path(name), records / name):
        if folder.is_dir():
            return folder
    known = ", ".join(sorted(path.name for path in records.glob("*/") if path.is_dir()))
    raise UsageError(f"no folder of records '{name}'; expected a path, or one of {known}")
