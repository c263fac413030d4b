"""Print every ladder at its headline sizes, from the committed records, as Markdown.

--readme writes the table into README.md between its two markers. --check fails, and says what to run, when README.md
differs from the table or a record is stale. With --gpu it checks that GPU's folder instead, which needs no README;
--gpu nvidia-h200-x2 has the ladders over two GPUs.
Rungs and standalone cells that no record has measured yet are listed as pending, and recorded cells that are gone as
orphans; they fail nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb report``."""
    parser.add_argument("--readme", action="store_true", help="write the table into README.md")
    parser.add_argument("--check", action="store_true", help="fail when README.md or a record is out of date")
    parser.add_argument("--gpu", metavar="GPU", help="folder of records/ to read (default CLIMB_GPU or nvidia-h200)")


def run(args: argparse.Namespace) -> int:
    """Print, write or check the table. Exit status 1 when ``--check`` finds a difference."""
    from climb.bench import events, records, report
    from climb.bench.record_folders import SEVERAL, folder_problems

    gpu = args.gpu or records.DEFAULT_GPU
    if SEVERAL.search(gpu):
        return _several(gpu, args.check)
    if gpu != records.DEFAULT_GPU and (records.RECORDS / gpu / "tuning").is_dir():
        return _in_its_own_process(gpu, args)
    if args.readme or (args.check and gpu == records.BOOK_GPU):
        common.need_checkout("comparing with README.md" if args.check else "writing README.md")
    block = report.report(gpu=gpu)
    if args.readme:
        report.write_readme(block)
    if not args.check:
        print(block)
    for found in (*report.find_pending(gpu=gpu), *events.pending_cells(gpu), *events.orphans(gpu)):
        print(found, file=sys.stderr)
    if not args.check:
        return 0
    problems = [str(stale) for stale in report.find_stale(gpu=gpu)]
    if gpu != records.BOOK_GPU:
        problems += folder_problems(records.RECORDS / gpu)
    elif report.read_readme() != block:
        problems.append("README.md differs from the records; run: climb report --readme")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _in_its_own_process(gpu: str, args: argparse.Namespace) -> int:
    """Report on a GPU with tuning tables of its own: ladders take their launches from them as they are imported."""
    flags = [f"--{name}" for name in ("readme", "check") if getattr(args, name)]
    command = [sys.executable, "-m", "climb", "report", *flags]
    return subprocess.run(command, env={**os.environ, "CLIMB_GPU": gpu}).returncode


def _several(gpu: str, check: bool) -> int:
    """Return the ladders over several GPUs, from a folder such as ``nvidia-h200-x2``."""
    from climb.bench import records
    from climb.distributed import recorded
    from climb.distributed.registry import load_shared_ladder, shared_ladder_names

    if not check:
        print(recorded.table(gpu))
    problems = recorded.problems(records.RECORDS / gpu)
    for name in shared_ladder_names():
        ladder, record = load_shared_ladder(name), recorded.shared_record(name, gpu)
        for text in recorded.pending_points(ladder, record):
            print(f"pending: {name} {text}", file=sys.stderr)
        problems += [f"stale: {name} {text}" for text in (recorded.stale_points(ladder, record) if record else ())]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if check and problems else 0
