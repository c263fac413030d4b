"""Run the planted faults on a GPU under the tools of compute-sanitizer, and collect their reports."""

from __future__ import annotations

import hashlib
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

from climb.bench import hardware, identity, records
from climb.emulator import EmulatorError, EndlessLoop
from climb.toolchain.nvrtc import nvrtc_version
from climb.validation.faults import TOOLS, Fault, Freed, Fresh, Null, emulate, number, record_path
from climb.validation.faults.catalogue import FAULTS, STEPS
from climb.validation.faults.exhibits import EXHIBITS
from climb.validation.schema import SanitizerRecord

#: The faults to run.
ALL = (*FAULTS, *EXHIBITS)
CHILD = Path(__file__).with_name("child.py")
#: Seconds after which a kernel counts as endless; the sanitizer itself needs a few.
PATIENCE = 10
#: The number of launches that one process starts with; few under memcheck, since a fault that it finds may end the
#: process.
AT_ONCE = {"memcheck": 4, "racecheck": 16, "initcheck": 16, "synccheck": 16}
OPTIONS = {"memcheck": ("--leak-check", "no", "--destroy-on-device-error", "kernel")}
_SAID = re.compile(r"^========= (\S.*(?:\n=========  .*)*)", re.MULTILINE)
_KERNEL = re.compile(r"\b(fault_\d+)\b")
Findings = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Prepared:
    """A compiled launch. The name `kernel` is unique, so that the sanitizer's reports can be told apart."""

    fault: Fault
    faulty: bool
    kernel: str
    cubin: bytes

    def plain(self) -> dict[str, Any]:
        """Return the launch as `child.Driver.launch` takes it."""
        args: list[tuple[str, Any]] = []
        for arg in self.fault.arguments(self.faulty):
            if isinstance(arg, np.ndarray):
                args.append(("array", arg.tobytes()))
            elif isinstance(arg, Null) and self.faulty:
                args.append(("null", 0))
            elif isinstance(arg, Fresh | Freed | Null):
                args.append(("freed" if isinstance(arg, Freed) and self.faulty else "fresh", arg.nbytes))
            else:
                args.append(("number", number(arg)))
        grid, block = (_extents(self.fault.value(name, self.faulty)) for name in ("grid", "threads"))
        shared = self.fault.value("shared", self.faulty)
        return {"kernel": self.kernel, "cubin": self.cubin, "grid": grid, "block": block, "shared": shared,
                "args": args}  # fmt: skip


def prepare() -> list[Prepared]:
    """Compile every faulty and every mended kernel. Needs no GPU."""
    return [
        Prepared(fault, faulty, f"fault_{index}", fault.compiled(faulty, f"fault_{index}").cubin)
        for index, fault in enumerate(ALL)
        for faulty in (True, False)
    ]


def _extents(value: int | Sequence[int]) -> tuple[int, int, int]:
    given = (value,) if isinstance(value, int) else tuple(value)
    return (*given, 1, 1)[:3]


def under(tool: str, launches: Sequence[Prepared], folder: Path) -> Findings:
    """Run launches under a tool. Returns, by kernel, the number of reports (`errors`), the first sentence of the first
    report (`says`) and the error of the `driver`. Launches that the process did not reach are left out."""
    name = f"{tool}_{launches[0].kernel}_{launches[0].faulty}.pickle"
    (folder / name).write_bytes(pickle.dumps([one.plain() for one in launches]))
    options = OPTIONS.get(tool, ())
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "10000", *options,
               sys.executable, "-S", "-E", str(CHILD),
               str(folder / name)]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            return read(process.communicate(timeout=PATIENCE + len(launches) / 4)[0])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            found = read(process.communicate()[0])
            last = list(found)[-1:] or [launches[0].kernel]
            return found | {last[0]: {"errors": None, "says": f"nothing in {PATIENCE} s", "driver": ""}}


def read(said: str) -> Findings:
    """Read the output of compute-sanitizer and of the child process."""
    launched = re.findall(r"^launch (\S+)$", said, re.MULTILINE)
    found: Findings = {name: {"errors": 0, "says": "", "driver": ""} for name in launched}
    for name, error in re.findall(r"^driver (\S+) (.*)$", said, re.MULTILINE):
        found[name]["driver"] = error
    for report in _SAID.findall(said):
        kernel = _KERNEL.search(report)
        if kernel and kernel[1] in found and not report.startswith("Program hit"):
            one = found[kernel[1]]
            one["errors"] += 1
            one["says"] = one["says"] or re.sub(r"\s+at \S*fault_\d+.*", "", report.splitlines()[0])
    return found


def emulator_says(fault: Fault) -> str:
    """Return the class of the emulator's error and the first line of its message; "" if it finds nothing."""
    try:
        emulate(fault, True, STEPS)
    except EmulatorError as error:
        return f"{type(error).__name__}: {error.what}"
    return ""


def known(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the findings in a record by (fault, tool), of kernels that have not changed since."""
    if not path.exists():
        return {}
    data = records.load(path, SanitizerRecord)
    sources = {fault.name: digest(fault) for fault in ALL}
    return {
        (one["name"], tool): said
        for one in data["faults"]
        if sources.get(one["name"]) == one["source_sha256"]
        for tool, said in one["tools"].items()
        if said
    }


def digest(fault: Fault) -> str:
    """Return the hash of what is launched, by the rule of ``climb.bench.identity``."""
    code = [identity.tokens(text) for text in (fault.body, fault.wrong, fault.mended)]
    what = (identity.RULE, code, *(str(getattr(fault, n)) for n in ("grid", "threads", "shared")))
    return hashlib.sha256(repr((what, fault.args)).encode()).hexdigest()


def measure(prepared: Sequence[Prepared], workers: int, path: Path, seconds: float) -> dict[str, Any]:
    """Run every faulty and every mended kernel under every tool. Returns the record.

    Findings in the record at `path` are kept. Processes that would start later than `seconds` are left out.
    """
    start = time.monotonic()
    wrong = {one.fault.name: one for one in prepared if one.faulty}
    mended = {one.fault.name: one for one in prepared if not one.faulty}
    found = known(path)

    def all_of(tool: str, launches: list[Prepared], folder: Path) -> Findings:
        out: Findings = {}
        while launches and time.monotonic() - start < seconds:
            said = under(tool, launches, folder)
            if not said:
                print(f"{tool}: none of {launches[0].fault.name} and {len(launches) - 1} others was launched")
                return out
            out |= said
            launches = [one for one in launches if one.kernel not in said]
        return out

    def asked(which: dict[str, Prepared], keys: list[tuple[str, str]], pool: ThreadPoolExecutor, folder: Path) -> dict:
        # A kernel that does not end needs a process of its own.
        jobs = []
        for tool in TOOLS:
            mine = [which[name] for name, under_tool in keys if under_tool == tool]
            alone = [one for one in mine if one.faulty and issubclass(one.fault.error, EndlessLoop)]
            rest = [one for one in mine if one not in alone]
            size = AT_ONCE[tool]
            parts = [rest[at : at + size] for at in range(0, len(rest), size)] + [[one] for one in alone]
            jobs += [(tool, part, pool.submit(all_of, tool, part, folder)) for part in parts]
        return {
            (one.fault.name, tool): said[one.kernel]
            for tool, part, job in jobs
            for said in [job.result()]
            for one in part
            if one.kernel in said
        }

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(workers) as pool:
        every = [(fault.name, tool) for fault in ALL for tool in TOOLS]
        found |= asked(wrong, [key for key in every if key not in found], pool, Path(name))
        rest = [key for key in every if key in found and "mended" not in found[key]]
        for key, said in asked(mended, rest, pool, Path(name)).items():
            found[key] |= {"mended": said["errors"], "mended_driver": said["driver"]}
    return {
        **hardware.origin(),
        "tool": sanitizer_version(),
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "faults": [
            {
                "name": fault.name,
                "source_sha256": digest(fault),
                "emulator": emulator_says(fault),
                "tools": {tool: found.get((fault.name, tool), {}) for tool in TOOLS},
            }
            for fault in ALL
        ],
    }


def sanitizer_version() -> str:
    """Return the tool's name and version."""
    said = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    return "compute-sanitizer " + re.findall(r"Version (\S+)", said)[0]


def write_prepared(file: Path) -> None:
    """Compile every fault, and every mended kernel, into a file; needs no GPU."""
    file.write_bytes(pickle.dumps([(one.kernel, one.cubin) for one in prepare()]))


def read_prepared(file: Path) -> list[Prepared]:
    """Read the kernels that ``write_prepared`` wrote."""
    every = [(fault, faulty) for fault in ALL for faulty in (True, False)]
    return [Prepared(*key, *one) for key, one in zip(every, pickle.loads(file.read_bytes()), strict=True)]


def record_faults(
    seconds: float = 600, workers: int = 8, folder: Path | None = None, prepared: Path | None = None
) -> tuple[Path, dict[str, Any]]:
    """Run all faults on this GPU and write the tools' reports below ``folder`` (``records/<gpu>`` by default).

    No process begins later than after ``seconds``. Returns the file and the record.
    """
    kernels = read_prepared(prepared) if prepared else prepare()
    device = hardware.device_block()
    path = record_path(hardware.gpu_slug(device["name"]), folder)
    found = measure(kernels, workers, path, seconds) | {"device": device}
    records.save(path, found, SanitizerRecord)
    return path, found
