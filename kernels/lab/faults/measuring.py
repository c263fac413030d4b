"""Run the planted faults on a GPU under the tools of compute-sanitizer, and write what they say."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.emulator import EmulatorError, EndlessLoop
from kernels.toolchain.nvrtc import nvrtc_version

from .. import hardware
from . import TOOLS, Fault, Freed, Fresh, Null, emulate, number, record_path
from .catalogue import FAULTS, STEPS

CHILD = Path(__file__).with_name("child.py")
#: Seconds after which a kernel is taken for one that does not end; the sanitizer itself needs a few.
PATIENCE = 10
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_SAID = re.compile(r"^========= (\S.*)$", re.MULTILINE)
_FRAME = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application", "Program hit")


@dataclass(frozen=True)
class Prepared:
    """A launch, compiled: what the child runs."""

    fault: Fault
    faulty: bool
    cubin: bytes


def prepare() -> list[Prepared]:
    """Every fault, and every mended kernel; this needs no GPU."""
    return [Prepared(fault, faulty, fault.compiled(faulty).cubin) for fault in FAULTS for faulty in (True, False)]


def plain(one: Prepared) -> dict[str, Any]:
    """The launch as `child.launch` takes it."""
    args: list[tuple[str, Any]] = []
    for arg in one.fault.args:
        if isinstance(arg, np.ndarray):
            args.append(("array", arg.tobytes()))
        elif isinstance(arg, Null) and one.faulty:
            args.append(("null", 0))
        elif isinstance(arg, Fresh | Freed | Null):
            args.append(("freed" if isinstance(arg, Freed) and one.faulty else "fresh", arg.nbytes))
        else:
            args.append(("number", number(arg)))
    grid, block = (_extents(one.fault.value(name, one.faulty)) for name in ("grid", "threads"))
    shared = one.fault.value("shared", one.faulty)
    return {"cubin": one.cubin, "grid": grid, "block": block, "shared": shared, "args": args}


def _extents(value: int | Sequence[int]) -> tuple[int, int, int]:
    given = (value,) if isinstance(value, int) else tuple(value)
    return (*given, 1, 1)[:3]


def under(tool: str, one: Prepared, folder: Path) -> dict[str, Any]:
    """What a tool says of a launch: `errors`, the first sentence that it `says`, and what the `driver` said."""
    path = folder / f"{FAULTS.index(one.fault)}_{one.faulty}_{tool}.pickle"
    path.write_bytes(pickle.dumps(plain(one)))
    options = ["--leak-check", "no"] if tool == "memcheck" else []
    command = ["compute-sanitizer", "--tool", tool, *options, sys.executable, "-S", "-E", str(CHILD), str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as child:
        try:
            said = child.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            return {"errors": None, "says": f"nothing in {PATIENCE} s", "driver": ""}
    return read(said)


def read(said: str) -> dict[str, Any]:
    """The output of compute-sanitizer and of the child. Raises ValueError where there is no summary in it."""
    found = _SUMMARY.search(said)
    driver = re.search(r"^driver: (.*)$", said, re.MULTILINE)
    if found is None:
        raise ValueError(f"compute-sanitizer said no sum:\n{said[-1500:]}")
    sentences = [text for text in _SAID.findall(said) if not text.startswith(_FRAME)]
    return {
        "errors": int(found[1]),
        "says": re.sub(r"\s+at \S+\+0x.*| at k.*", "", sentences[0]) if sentences else "",
        "driver": driver[1] if driver else "",
    }


def emulator_says(fault: Fault) -> str:
    """The emulator's first line, and the line of the source."""
    try:
        emulate(fault, True, STEPS)
    except EmulatorError as error:
        return f"{type(error).__name__}: {error.what}"
    return ""


def known(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What a record has of each (fault, tool), of the kernels as they are now."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    sources = {fault.name: digest(fault) for fault in FAULTS}
    return {
        (one["name"], tool): said
        for one in data["faults"]
        if sources.get(one["name"]) == one["source_sha256"]
        for tool, said in one["tools"].items()
        if said
    }


def digest(fault: Fault) -> str:
    """The hash of what is launched."""
    what = (fault.body, fault.wrong, fault.mended, *(str(getattr(fault, n)) for n in ("grid", "threads", "shared")))
    return hashlib.sha256(repr((what, fault.args)).encode()).hexdigest()


def measure(prepared: Sequence[Prepared], workers: int, path: Path, seconds: float) -> dict[str, Any]:
    """The record: every fault under every tool; a tool that found something sees the mended kernel too. What the record
    at `path` has already is kept; what would begin later than `seconds` is left out, and missing."""
    start = time.monotonic()
    # What does not end comes last, so that it holds up nobody.
    order = sorted(FAULTS, key=lambda fault: issubclass(fault.error, EndlessLoop))
    launches = {(one.fault.name, one.faulty): one for one in prepared}
    found = known(path)

    def both(name: str, tool: str, folder: Path) -> dict[str, Any]:
        if time.monotonic() - start > seconds:
            return {}
        try:
            said = under(tool, launches[name, True], folder)
            if said["errors"]:
                said["mended"] = under(tool, launches[name, False], folder)["errors"]
        except ValueError as error:
            print(name, tool, str(error)[-400:], flush=True)
            return {}
        return said

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(workers) as pool:
        jobs = {
            (fault.name, tool): pool.submit(both, fault.name, tool, Path(name))
            for fault in order
            for tool in TOOLS
            if (fault.name, tool) not in found
        }
        found |= {key: job.result() for key, job in jobs.items()}
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": hardware.commit(),
        "tool": "compute-sanitizer " + re.findall(r"Version (\S+)", version)[0],
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "faults": [
            {
                "name": fault.name,
                "source_sha256": digest(fault),
                "emulator": emulator_says(fault),
                "tools": {tool: found[fault.name, tool] for tool in TOOLS},
            }
            for fault in FAULTS
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m kernels.lab.faults", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="begin nothing later than this")
    parser.add_argument("--workers", type=int, default=8, help="processes at a time")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only compile, into a file; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="take what --prepare has written")
    options = parser.parse_args(arguments)
    if options.prepare:
        options.prepare.write_bytes(pickle.dumps([one.cubin for one in prepare()]))
        return 0
    if options.prepared:
        every = [(fault, faulty) for fault in FAULTS for faulty in (True, False)]
        cubins = pickle.loads(options.prepared.read_bytes())
        prepared = [Prepared(*key, cubin) for key, cubin in zip(every, cubins, strict=True)]
    else:
        prepared = prepare()
    device = hardware.device_block()
    path = record_path(hardware.gpu_slug(device["name"]))
    found = measure(prepared, options.workers, path, options.seconds) | {"device": device}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for one in found["faults"]:
        said = {tool: said.get("errors", "missing") for tool, said in one["tools"].items()}
        print(one["name"], said)
    print(path)
    return int(any(not said for one in found["faults"] for said in one["tools"].values()))
