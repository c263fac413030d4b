"""The command of the agreement: count launches under Nsight Compute on this GPU, then compare the emulator's counts."""

from __future__ import annotations

import argparse
import lzma
import pickle
from pathlib import Path

from climb.bench import hardware
from climb.validation.agreement import record_path
from climb.validation.agreement.measuring import STEPS, launch_all, measure, prepare
from climb.validation.agreement.summary import write_summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--compare", action="store_true", help="only compare the committed counts again; needs no GPU")
    parser.add_argument("--only", choices=tuple(STEPS), help="count only the rungs, or only the patterns")
    parser.add_argument("--ladder", action="append", default=[], help="count only this ladder's rungs; may be repeated")
    parser.add_argument("--seconds", type=float, default=600, help="start nothing that would take longer than this")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only compile, into a file; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="count what --prepare has compiled")
    parser.add_argument("--counts-only", action="store_true", help="count, but do not compare afterwards")


def run(args: argparse.Namespace) -> int:
    """Count, then compare. Returns 1 where launches are left uncounted.

    ``--child`` is the process that ncu profiles: it only launches the steps in a file.
    """
    if args.child is not None:
        launch_all(pickle.loads(args.child.read_bytes()))
        return 0
    if args.compare:
        print(write_summary())
        return 0
    kinds = ("rungs",) if args.ladder else (args.only,) if args.only else tuple(STEPS)
    if args.prepare is not None:
        args.prepare.write_bytes(lzma.compress(pickle.dumps(prepare(kinds, args.ladder))))
        return 0
    steps = (
        prepare(kinds, args.ladder)
        if args.prepared is None
        else pickle.loads(lzma.decompress(args.prepared.read_bytes()))
    )
    gpu = hardware.device_block()
    path = record_path(hardware.gpu_slug(gpu["name"]))
    complete = measure({kind: steps[kind] for kind in kinds}, path, gpu, args.seconds)
    print(path)
    if complete and not args.counts_only:
        print(write_summary())
    return 0 if complete else 1
