"""Compare two folders of records point by point: is each rung and peer of B faster, slower or the same as in A?

    climb compare nvidia-h200 nvidia-h100-80gb-hbm3
    climb compare records/nvidia-h200 /tmp/mine --ladder transpose --at-least 2 --fail slower

A and B are folders of records/, or paths. The intervals from the 25th to the 75th percentile of the samples decide:
"faster" and "slower" if they are disjoint, "same" if each median lies in the other's interval, "ambiguous" otherwise.
With --at-least, medians that differ by fewer percent are "same" first; two boards of one model differ by a few percent.
A point of the regime batch is one mean without a spread, so any difference decides there. The ratio is A's median time
over B's: above 1, B is faster.

Exit status: 0, compared; 1, some point has a verdict that --fail names; 2, there is nothing to compare.
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
    parser.add_argument("--at-least", type=float, default=0.0, metavar="PERCENT", help="smaller differences are none")
    parser.add_argument("--fail", action="append", default=[], choices=("faster", "slower", "ambiguous", "same"),
                        help="exit with 1 where some point has this verdict; may be repeated")  # fmt: skip
    parser.add_argument("--regime", default="cold", help="cold (default), batch, or dirty where it was measured")


def run(args: argparse.Namespace) -> int:
    """Print a line for each point that both folders have, and the number of points with each verdict. Raises
    UsageError.

    Returns 1 if some point has a verdict of ``--fail``.
    """
    from climb.bench.comparison import compare_folders, table
    from climb.bench.records import ALL_REGIMES, RECORDS, RecordError

    if args.regime not in ALL_REGIMES:
        raise UsageError(f"regime is '{args.regime}'; expected one of {', '.join(ALL_REGIMES)}")
    a, b = (_folder(name, RECORDS) for name in (args.a, args.b))
    if not args.at_least >= 0:
        raise UsageError(f"--at-least is {args.at_least:g}; expected a percentage of at least 0")
    try:
        found = compare_folders(a, b, args.regime, args.ladder, args.at_least / 100)
    except (LookupError, RecordError) as error:
        raise UsageError(str(error)) from None
    print(table(found))
    return int(any(found.verdicts[name] for name in args.fail))


def _folder(name: str, records: Path) -> Path:
    """Return the folder that a name means. Raises UsageError naming the folders that exist."""
    for folder in (Path(name), records / name):
        if folder.is_dir():
            return folder
    known = ", ".join(sorted(path.name for path in records.glob("*/") if path.is_dir()))
    raise UsageError(f"no folder of records '{name}'; expected a path, or one of {known}")
