"""Code shared by several commands: ladders by name, a GPU, the options that all measuring commands have."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from climb import paths
from climb.cli.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from climb.bench.ladder import Ladder


def add_ladders(parser: argparse.ArgumentParser, *, all_by_default: bool = False) -> None:
    """Add the positional argument ``ladders``: names as in the book, or dotted modules that hold a ladder."""
    parser.add_argument(
        "ladders",
        nargs="*" if all_by_default else "+",
        metavar="LADDER",
        help="a ladder's name, or a module that holds one" + ("; all ladders by default" if all_by_default else ""),
    )


def add_record_options(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--records`` and ``--commit`` of a command that writes a record."""
    parser.add_argument("--records", type=Path, metavar="DIR", help="folder to write to (default records/<gpu>)")
    parser.add_argument("--commit", help="the commit that is measured, where the files are not a git checkout")


def add_prepared(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--prepare`` and ``--prepared`` of a command whose kernels can be compiled on another
    machine."""
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only compile, into a file; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="use what --prepare has written")


def use_commit(args: argparse.Namespace) -> None:
    """Write the commit that ``--commit`` gives into the records made from now on."""
    if args.commit:
        os.environ["WORKLOG_COMMIT"] = args.commit


@contextlib.contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Within a `with` block, let SIGTERM, which ``timeout`` sends, end this command like Ctrl-C, with its children."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def loaded(names: Iterable[str]) -> list[Ladder]:
    """Load the ladders of those names. Raises UsageError for an unknown name."""
    from climb.bench.registry import UnknownLadder, load_ladder

    try:
        return [load_ladder(name) for name in names]
    except UnknownLadder as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        if error.name is None or not any(name.startswith(error.name) for name in names):
            raise
        raise UsageError(f"no module {error.name}") from None


def need_gpu(what: str) -> None:
    """Raise Unavailable unless kernels run on a GPU here. ``what`` begins the message: "recording"."""
    from climb.bench import cuda

    if cuda.backend != "cupy":
        raise Unavailable(
            f"{what} needs an NVIDIA GPU and CuPy (pip install '.[gpu]'); here kernels run on the emulator"
        )


def need_checkout(what: str) -> None:
    """Raise Unavailable in an installed package. ``what`` begins the message: "drawing the pictures of README.md"."""
    if not paths.IN_CHECKOUT:
        raise Unavailable(f"{what} needs a checkout of the repository; this is an installed package")


def check_versions(go_on: bool) -> None:
    """Report the versions that differ from the locked ones. Raises Unavailable for another compiler, unless told to go
    on."""
    from climb.bench import versions

    found = versions.differences(versions.compiler())
    for package, how in found.items():
        print(f"not as locked: {package} {how}", file=sys.stderr, flush=True)
    reason = versions.compiler_differs(found)
    if reason and not go_on:
        raise Unavailable(f"{reason}; --any-compiler records all the same")


#: The programs of the CUDA toolkit that commands run, and the message if one is missing.
TOOLS = {
    "ncu": "Nsight Compute (ncu), which comes with the CUDA toolkit",
    "compute-sanitizer": "compute-sanitizer, which comes with the CUDA toolkit",
}


def need_tool(name: str) -> None:
    """Raise Unavailable unless a program of ``TOOLS`` is on the PATH."""
    if shutil.which(name) is None:
        raise Unavailable(f"it needs {TOOLS[name]}; it is not on the PATH")
