"""Run kernels on this GPU under the tools of NVIDIA's compute-sanitizer.

``climb sanitize faults`` runs the planted faults and their mended kernels, and writes
records/<gpu>/emulator/sanitizer.json. ``climb sanitize clean`` runs every rung, in which no tool may find a fault, and
writes records/<gpu>/emulator/clean.json. ``climb sanitize stages`` runs an exhibit whose copies overtake its reads,
counts its wrong results, and writes records/<gpu>/emulator/stages.json.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb sanitize faults``, ``clean`` and ``stages``."""
    what = parser.add_subparsers(dest="what", metavar="{faults,clean,stages}", required=True)
    faults = what.add_parser("faults", help="the planted faults")
    faults.add_argument("--workers", type=int, default=8, help="processes at a time")
    common.add_prepared(faults)
    clean = what.add_parser("clean", help="the rungs of all ladders")
    clean.add_argument("--ladder", action="append", default=[], help="this ladder's rungs only; may be repeated")
    clean.add_argument("--prepared", metavar="FILE", type=Path,
                       help="use what climb agreement --prepare has written")  # fmt: skip
    stages = what.add_parser("stages", help="the exhibit with asynchronous copies")
    common.add_prepared(stages)
    common.add_record_options(stages)
    for one in (faults, clean):
        one.add_argument("--seconds", type=float, default=600, help="begin nothing later than this")
        common.add_record_options(one)


def run(args: argparse.Namespace) -> int:
    """Run the tools and print what they report. Exit status 1 when a rung is not clean or a report is missing."""
    return {"faults": _faults, "clean": _clean, "stages": _stages}[args.what](args)


def _faults(args: argparse.Namespace) -> int:
    from climb.validation.faults.measuring import record_faults, write_prepared

    if args.prepare:
        write_prepared(args.prepare)
        return 0
    _need_sanitizer(args)
    path, found = record_faults(args.seconds, args.workers, args.records, args.prepared)
    for one in found["faults"]:
        print(one["name"], {tool: said.get("errors", "missing") for tool, said in one["tools"].items()})
    print(path)
    return int(any(not said for one in found["faults"] for said in one["tools"].values()))


def _clean(args: argparse.Namespace) -> int:
    from climb.validation.faults.clean import record_clean

    common.loaded(args.ladder)
    _need_sanitizer(args)
    path, faulty = record_clean(args.ladder, args.seconds, args.records, args.prepared)
    for row in faulty:
        print(row["ladder"], row["tools"])
    print(path)
    return int(bool(faulty))


def _stages(args: argparse.Namespace) -> int:
    from climb.validation.faults.stages import record_stages, write_prepared

    if args.prepare:
        write_prepared(args.prepare)
        return 0
    _need_sanitizer(args)
    path, found = record_stages(args.records, args.prepared)
    for row in found["variants"]:
        bad = [count for count in row["wrong"] if count]
        reports = {tool: said["errors"] for tool, said in row["tools"].items()}
        print(f"{row['name']}: wrong in {len(bad)} of {row['launches']} launches, at most {max(row['wrong'])} elements;"
              f" with constant matrices at most {max(row['constant'])}; {reports}")  # fmt: skip
    print(path)
    return 0


def _need_sanitizer(args: argparse.Namespace) -> None:
    common.need_gpu("running under compute-sanitizer")
    common.need_tool("compute-sanitizer")
    common.use_commit(args)
