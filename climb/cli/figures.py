"""Draw the pictures of README.md and the front page from the committed records."""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb figures``."""
    parser.add_argument("folder", nargs="?", type=Path, help="where to write them (default book/_static)")


def run(args: argparse.Namespace) -> int:
    """Draw, and print the files that were written. Raises UsageError, and Unavailable in an installed package."""
    if args.folder is None:
        common.need_checkout("drawing the pictures of README.md")
    elif not args.folder.is_dir():
        raise UsageError(f"no folder {args.folder}")
    from climb.display.figures import PICTURES, draw_readme_pictures

    for written in draw_readme_pictures(args.folder or PICTURES):
        print(written)
    return 0
