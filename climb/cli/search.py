"""Search the tuning parameters of a ladder, and write everything that was tried to records/<gpu>/search/<ladder>.json.

A ladder that can be searched has a module ``search`` beside its rungs, with ``record_search(folder)``, which returns
the path of the file, and ``compile_all()``.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from types import ModuleType

from climb.cli import common
from climb.cli.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb search``."""
    parser.add_argument("ladder", metavar="LADDER", help="a ladder that has a search")
    common.add_record_options(parser)
    parser.add_argument("--compile", action="store_true", help="only compile the candidates, into CuPy's cache")


def run(args: argparse.Namespace) -> int:
    """Search, and print the path of the file. Raises UsageError for a ladder without a search, Unavailable."""
    name = search_module(args.ladder)
    if name is None:
        raise UsageError(f"the ladder {args.ladder} has no search")
    common.need_gpu("searching")
    common.use_commit(args)
    module: ModuleType = importlib.import_module(name)
    if args.compile:
        module.compile_all()
        return 0
    print(module.record_search(args.records))
    return 0


def search_module(ladder: str) -> str | None:
    """Return the module that searches a ladder, or None. Raises UsageError for an unknown ladder."""
    from climb.bench.registry import ladder_module

    common.loaded([ladder])
    name = f"{ladder_module(ladder)}.search"
    return name if importlib.util.find_spec(name) else None
