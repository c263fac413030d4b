"""Give records the hashes of refactored kernels, after proving that a GPU would run the same code.

Compares the committed REVISION, at which the records were fresh, with the working tree. A point gets today's hash if
its kernel has the same tokens, or else the same machine code, registers, shared memory and launch. Others are listed.
"""

from __future__ import annotations

import argparse
import subprocess

from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb rehash``."""
    parser.add_argument("--from", dest="revision", required=True, metavar="REVISION", help="a commit, say main")
    parser.add_argument(
        "--renamed", action="append", default=[], metavar="LADDER/OLD=NEW", help="a renamed rung; may be repeated"
    )


def run(args: argparse.Namespace) -> int:
    """Convert and report. 0: all points have today's hash; 1: some were left. Raises UsageError."""
    common.need_checkout("comparing with a commit")
    from climb.validation.rehash.convert import checkout, convert, inventory_of

    renamed = parse_renames(args.renamed)
    try:
        with checkout(args.revision) as tree:
            old = inventory_of(tree)
    except subprocess.CalledProcessError as error:
        raise UsageError(f"{args.revision} cannot be checked out and listed ({error})") from None
    outcome = convert(old, renamed)
    print(outcome)
    return 1 if outcome.left else 0


def parse_renames(given: list[str]) -> dict[str, dict[str, str]]:
    """Parse ``transpose/turned=swizzled`` as ``{"transpose": {"turned": "swizzled"}}``. Raises UsageError."""
    found: dict[str, dict[str, str]] = {}
    for text in given:
        ladder, slash, names = text.partition("/")
        old, equals, new = names.partition("=")
        if not (slash and equals and ladder and old and new):
            raise UsageError(f"--renamed {text}: expected LADDER/OLD=NEW")
        found.setdefault(ladder, {})[old] = new
    return found
