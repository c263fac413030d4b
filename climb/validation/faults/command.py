"""The command of the planted faults: run them on this GPU under the tools of compute-sanitizer."""

from __future__ import annotations

import argparse
import json
import pickle
from pathlib import Path

from climb.bench import hardware, records
from climb.validation.faults import record_path
from climb.validation.faults.measuring import ALL, Prepared, measure, prepare


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--seconds", type=float, default=600, help="start nothing later than this")
    parser.add_argument("--workers", type=int, default=8, help="number of processes at a time")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only compile, into a file; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="run what --prepare has compiled")


def run(args: argparse.Namespace) -> int:
    """Run the faults and write the record. Returns 1 where a tool has not looked at a fault."""
    if args.prepare:
        args.prepare.write_bytes(pickle.dumps([(one.kernel, one.cubin) for one in prepare()]))
        return 0
    if args.prepared:
        every = [(fault, faulty) for fault in ALL for faulty in (True, False)]
        made = pickle.loads(args.prepared.read_bytes())
        prepared = [Prepared(*key, *one) for key, one in zip(every, made, strict=True)]
    else:
        prepared = prepare()
    device = hardware.device_block()
    path = record_path(hardware.gpu_slug(device["name"]))
    found = measure(prepared, args.workers, path, args.seconds) | {"device": device}
    records.write_whole(path, json.dumps(found, indent=1) + "\n")
    for one in found["faults"]:
        print(one["name"], {tool: said.get("errors", "missing") for tool, said in one["tools"].items()})
    print(path)
    return int(any(not said for one in found["faults"] for said in one["tools"].values()))
