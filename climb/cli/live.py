"""Execute chapters on your GPU, measuring anew; the executed notebooks go to _build/live.

This runs ``make live``, which executes a copy of each chapter, so it needs a checkout of the repository and make.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from pathlib import Path

from climb.cli import common
from climb.cli.errors import Unavailable, UsageError

ROOT = Path(__file__).resolve().parents[2]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb live``."""
    parser.add_argument("chapter", nargs="?", help="such as coalescing; all chapters by default")


def run(args: argparse.Namespace) -> int:
    """Run ``make live``; its exit status. Raises UsageError for an unknown chapter, Unavailable without a GPU."""
    chapters = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))
    if not chapters or not (ROOT / "Makefile").exists() or shutil.which("make") is None:
        raise Unavailable("executing chapters needs a checkout of the repository and make")
    if args.chapter and args.chapter not in chapters:
        raise UsageError(f"no chapter '{args.chapter}'; the chapters are {', '.join(chapters)}")
    common.need_gpu("measuring live")
    command = ["make", "live", *([f"NOTEBOOK={args.chapter}"] if args.chapter else [])]
    return subprocess.run(command, cwd=ROOT, check=False).returncode
