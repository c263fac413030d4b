"""Write the repository's address, repository.url in _config.yml, into the first cell of every chapter.

A chapter that was downloaded or opened in Colab then installs the book from there. Without an address the cell does
what it does in a clone. Nothing is executed: outputs stay as they are. --check only says which chapters differ.
"""

from __future__ import annotations

import argparse
import sys

from climb import paths
from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb address``."""
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a chapter has another address")


def run(args: argparse.Namespace) -> int:
    """Write, and print the changed chapters. Exit status 1 when ``--check`` finds one."""
    from climb.cli.scaffold.first_cell import read_address, replaced, write_address
    from climb.cli.scaffold.notebook import read

    common.need_checkout("writing the address into the chapters")
    address = read_address(paths.ROOT / "_config.yml")
    changed = []
    for chapter in sorted((paths.ROOT / "book").glob("*.ipynb")):
        try:
            if args.check:
                first = next(("".join(c["source"]) for c in read(chapter) if c["cell_type"] == "code"), None)
                differs = first is not None and replaced(first, address) != first
            else:
                differs = write_address(chapter, address)
        except ValueError as error:
            raise UsageError(f"book/{chapter.name}: {error}") from None
        changed += [f"book/{chapter.name}"] if differs else []
    if args.check:
        for name in changed:
            print(f"{name} has another address than _config.yml; run: make address", file=sys.stderr)
        return 1 if changed else 0
    print("\n".join(changed) or "every chapter has the address already")
    return 0
