"""Compare every bit of random programs, or of random matrix products, on this GPU and on the emulator.

Writes records/<gpu>/emulator/fuzz.json, or tensor.json with --tensor.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from climb.cli import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``climb fuzz``."""
    parser.add_argument("--programs", type=int, default=500, help="of each kind (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, help="processes that emulate")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="only emulate, into a folder; no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FOLDER", help="use what --prepare has written")
    parser.add_argument("--tensor", action="store_true", help="matrix products of tensor cores instead of programs")
    parser.add_argument("--sums", type=int, default=40000, help="of each type and shape, with --tensor")
    parser.add_argument("--samples", type=Path, metavar="FOLDER", help="save what the tests compare, with --tensor")
    common.add_record_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the programs and print what differs. Exit status 1 when a program differs or is refused."""
    from climb.validation.fuzzing import KINDS
    from climb.validation.fuzzing.measuring import prepare, record_fuzzing

    if args.tensor:
        return _compare_products(args)
    jobs = [(kind, seed) for seed in range(args.first, args.first + args.programs) for kind in KINDS]
    if args.prepare:
        prepare(jobs, args.prepare, args.workers)
        return 0
    common.need_gpu("running random programs")
    common.use_commit(args)
    path, found = record_fuzzing(jobs, args.workers, args.records, args.prepared)
    for kind, mine in found["kinds"].items():
        print(f"{kind}: {mine['programs']} programs, {mine['words']} words compared, {len(mine['different'])} programs "
              f"differ, {len(mine['refused'])} refused")  # fmt: skip
        print(*mine["different"][:30], *mine["refused"][:5], sep="\n")
    print(path)
    return int(any(mine["different"] or mine["refused"] for mine in found["kinds"].values()))


def _compare_products(args: argparse.Namespace) -> int:
    from climb.validation.tensor_products.measuring import record_products

    common.need_gpu("comparing matrix products")
    common.use_commit(args)
    path, found = record_products(args.sums, args.first, args.records, args.samples)
    wrong = {name: one for name, one in found["forms"].items() if one["different"]}
    sums = sum(one["sums"] for one in found["forms"].values())
    print(f"{len(found['forms'])} kinds of products, {sums} sums compared, {len(wrong)} kinds differ")
    print(*(f"{name}: {one['different']} of {one['sums']} sums differ" for name, one in wrong.items()), sep="\n")
    print(path)
    return int(bool(wrong))
