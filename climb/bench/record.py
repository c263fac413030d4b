"""``python -m climb.bench.record [ladder ...]``: measure ladders on this GPU and write their records.

A ladder is recorded whole, with its peers and the ceilings, because ratios must come from one run. With
``--rung`` or ``--size`` a part is measured and printed, and no record is written. ``--together`` records several
ladders in one run, in a fraction of the time that the ceilings of each would take.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from climb.bench import cuda, hardware, measure, records
from climb.bench.measure import MeasurementFailed, Sampling, Target
from climb.bench.problem import Size
from climb.bench.registry import UnknownLadder, ladder_names, load_ladder


def parse_size(text: str) -> dict[str, Any]:
    """``rows=4096,cols=512`` as a size; what is no number names a kind of data. Raises argparse.ArgumentTypeError."""
    try:
        pairs = [(key.strip(), value.strip()) for key, value in (part.split("=") for part in text.split(","))]
    except ValueError:
        pairs = []
    if not pairs or not all(key and re.fullmatch(r"-?\d+|[a-z]\w*", value) for key, value in pairs):
        raise argparse.ArgumentTypeError(f"'{text}' is no size; expected key=value,key=value")
    return {key: value if value[0].isalpha() else int(value) for key, value in pairs}


def choose_targets(load_name: str, rungs: Sequence[str], sizes: Sequence[Size]) -> list[Target] | None:
    """The points of a partial measurement, or None when the whole ladder is asked for.

    Raises KeyError for a rung that the ladder has not, and ValueError for a size with other keys than the
    problem's.
    """
    if not rungs and not sizes:
        return None
    ladder = load_ladder(load_name)
    for size in sizes:
        if tuple(sorted(size)) != tuple(sorted(ladder.problem.size_keys)):
            raise ValueError(f"{ladder.name}'s size has the keys {', '.join(ladder.problem.size_keys)}; got {size}")
        for key, value in size.items():
            names = ladder.problem.kinds.get(key)
            if value not in names if names else not isinstance(value, int):
                raise ValueError(f"{ladder.name}: {key} is {value!r}; expected {_expected(names)}")
    at = sizes or ladder.problem.recorded
    chosen = [ladder[name] for name in rungs] if rungs else list(ladder)
    targets = [Target(load_name, "rung", b.name, dict(s)) for s in at for b in chosen if b.rung.requires(s) is None]
    if not rungs:
        targets += [Target(load_name, "peer", peer.name, dict(s)) for s in at for peer in ladder.peers]
    return targets


def _expected(names: Sequence[str] | None) -> str:
    return f"one of {', '.join(names)}" if names else "a whole number"


def ceilings_first() -> list[str]:
    """All ladders, those that define a ceiling first: the others then measure just their fastest points
    again."""
    return sorted(ladder_names(), key=lambda name: load_ladder(name).ceiling is None)


def main(argv: Sequence[str] | None = None) -> int:
    """The command. Exit status 0, 1 when something could not be measured, 130 when interrupted."""
    args = _parser().parse_args(argv)
    if args.commit:
        os.environ["WORKLOG_COMMIT"] = args.commit
    if cuda.backend != "cupy":
        print("recording needs an NVIDIA GPU and CuPy; this machine runs kernels on the emulator", file=sys.stderr)
        return 1
    batch_seconds = min(Sampling().batch_seconds, args.seconds_per_point / 4)
    sampling = replace(Sampling(), seconds=args.seconds_per_point, batch_seconds=batch_seconds)
    gpu = hardware.gpu_slug(hardware.device_block()["name"])
    folder = args.records or records.RECORDS / gpu
    known = (folder, records.RECORDS / gpu)
    try:
        names = args.ladders or ceilings_first()
        if args.together:
            return _record_together(names, sampling, folder, known, args)
        for position, name in enumerate(names, start=1):
            targets = choose_targets(name, args.rung, args.size)
            keep = args.keep / name if args.keep else None
            _say(f"== {name} on {gpu} ({position}/{len(names)})")
            start = time.monotonic()
            if targets is not None:
                measure.try_out(targets, sampling, known, keep=keep)
                _say(f"{len(targets)} points in {time.monotonic() - start:.0f} s; a part: no record is written")
                continue
            record = measure.record_ladder(name, sampling, known, keep=keep)
            path = records.record_path(record.ladder, folder=folder)
            records.save_record(record, path)
            took = time.monotonic() - start
            _say(f"{path}: {len(record.points)} points in {took:.0f} s, {_ceilings(record)}")
    except (MeasurementFailed, UnknownLadder, KeyError, ValueError) as error:
        _say(f"{type(error).__name__}: {error}\nThe records that are there are as they were.")
        return 1
    except KeyboardInterrupt:
        _say("interrupted; the records that are there are as they were")
        return 130
    return 0


def _record_together(
    names: Sequence[str], sampling: Sampling, folder: Path, known: Sequence[Path], args: argparse.Namespace
) -> int:
    if args.rung or args.size:
        raise ValueError("--together records whole ladders; --rung and --size measure parts")
    start = time.monotonic()
    failures: dict[str, str] = {}
    found = measure.record_ladders(names, sampling, known, keep=args.keep, failures=failures)
    for record in found:
        path = records.record_path(record.ladder, folder=folder)
        records.save_record(record, path)
        _say(f"{path}: {len(record.points)} points, {_ceilings(record)}")
    for message in failures.values():
        _say(f"{message}\nIts record is as it was.")
    _say(f"{len(found)} ladders in {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m climb.bench.record", description=__doc__)
    parser.add_argument("ladders", nargs="*", metavar="ladder", help="all ladders, when none is named")
    parser.add_argument("--together", action="store_true",
                        help="one run for all: the ceilings are measured once")  # fmt: skip
    parser.add_argument("--seconds-per-point", type=float, default=Sampling().seconds, metavar="S",
                        help="wall time for the cold samples of one point (default %(default)s)")  # fmt: skip
    parser.add_argument("--rung", action="append", default=[], help="measure just this rung; may be repeated")
    parser.add_argument("--size", action="append", default=[], type=parse_size, metavar="K=V,K=V",
                        help="measure at this size; may be repeated")  # fmt: skip
    parser.add_argument("--records", type=Path, metavar="DIR", help="folder to write to (default records/<gpu>)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep NVBench's own files there")
    parser.add_argument("--commit", help="the commit measured, where the files are no git checkout")
    return parser


def _ceilings(record: records.Record) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in record.ceilings.items())


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
