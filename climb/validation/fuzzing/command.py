"""The command of the random programs: run them on this GPU and on the emulator, and compare their bits."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from climb.bench import hardware, records
from climb.validation.fuzzing import KINDS, record_path
from climb.validation.fuzzing.measuring import compare, prepare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--programs", type=int, default=500, help="number of programs of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, help="number of processes that emulate")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="only emulate, into a folder; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FOLDER", help="run what --prepare has emulated")


def run(args: argparse.Namespace) -> int:
    """Run the programs and write the record. Returns 1 where a program came out differently or was refused."""
    jobs = [(kind, seed) for seed in range(args.first, args.first + args.programs) for kind in KINDS]
    if args.prepare:
        prepare(jobs, args.prepare, args.workers)
        return 0
    if args.prepared:
        found = compare(args.prepared)
    else:
        with tempfile.TemporaryDirectory() as folder:
            prepare(jobs, Path(folder), args.workers)
            found = compare(Path(folder))
    path = record_path(hardware.gpu_slug(found["device"]["name"]))
    records.write_whole(path, json.dumps(found, indent=1) + "\n")
    for kind, mine in found["kinds"].items():
        print(f"{kind}: {mine['programs']} programs, {mine['words']} words compared, {len(mine['different'])} programs "
              f"differ, {len(mine['refused'])} refused")  # fmt: skip
        print(*mine["different"][:30], *mine["refused"][:5], sep="\n")
    print(path)
    return int(any(mine["different"] or mine["refused"] for mine in found["kinds"].values()))
