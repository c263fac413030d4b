"""Run the planted faults on a GPU under the tools of compute-sanitizer, and write what they say."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.emulator import EmulatorError, EndlessLoop
from kernels.toolchain.nvrtc import nvrtc_version

from .. import hardware
from . import TOOLS, Fault, Freed, Fresh, Null, emulate, record_path
from .catalogue import FAULTS, STEPS

#: Seconds after which a kernel is taken for one that does not end; the sanitizer itself needs a few.
PATIENCE = 12
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


def launch(one: Prepared) -> None:
    """Launch on the GPU and wait. Raises RuntimeError with the driver's error."""
    from cuda.bindings import driver

    def call(result: tuple) -> Any:
        status, *values = result
        if int(status) != 0:
            raise RuntimeError(status.name)
        return values[0] if values else None

    call(driver.cuInit(0))
    context = call(driver.cuDevicePrimaryCtxRetain(call(driver.cuDeviceGet(0))))
    call(driver.cuCtxSetCurrent(context))
    module = call(driver.cuModuleLoadData(one.cubin))
    function = call(driver.cuModuleGetFunction(module, b"k"))
    values: list[Any] = []
    kinds: list[Any] = []
    for arg in one.fault.args:
        if isinstance(arg, np.ndarray | Fresh | Freed | Null):
            address = call(driver.cuMemAlloc(arg.nbytes))
            if isinstance(arg, np.ndarray):
                call(driver.cuMemcpyHtoD(address, arg.tobytes(), arg.nbytes))
            if isinstance(arg, Freed) and one.faulty:
                call(driver.cuMemFree(address))
            values.append(0 if isinstance(arg, Null) and one.faulty else int(address))
            kinds.append(ctypes.c_void_p)
        else:
            values.append(arg)
            kinds.append(ctypes.c_float if isinstance(arg, float) else ctypes.c_int)
    shared = one.fault.value("shared", one.faulty)
    grid, block = (_extents(one.fault.value(name, one.faulty)) for name in ("grid", "threads"))
    call(driver.cuLaunchKernel(function, *grid, *block, shared, 0, (tuple(values), tuple(kinds)), 0))
    call(driver.cuCtxSynchronize())


def _extents(value: int | Sequence[int]) -> tuple[int, int, int]:
    given = (value,) if isinstance(value, int) else tuple(value)
    return (*given, 1, 1)[:3]


def under(tool: str, one: Prepared, folder: Path) -> dict[str, Any]:
    """What a tool says of a launch: `errors`, the first sentence that it `says`, and what the `driver` said."""
    path = folder / f"{FAULTS.index(one.fault)}_{one.faulty}_{tool}.pickle"
    path.write_bytes(pickle.dumps((FAULTS.index(one.fault), one.faulty, one.cubin)))
    options = ["--leak-check", "no"] if tool == "memcheck" else []
    command = ["compute-sanitizer", "--tool", tool, *options, sys.executable, "-m", "kernels.lab.faults",
               "--child", str(path)]  # fmt: skip
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


def child(path: Path) -> None:
    """Launch what a file says; the driver's error is printed."""
    index, faulty, cubin = pickle.loads(path.read_bytes())
    try:
        launch(Prepared(FAULTS[index], faulty, cubin))
    except RuntimeError as error:
        print(f"\ndriver: {error}", flush=True)


def emulator_says(fault: Fault) -> str:
    """The emulator's first line, and the line of the source."""
    try:
        emulate(fault, True, STEPS)
    except EmulatorError as error:
        return f"{type(error).__name__}: {error.what}"
    return ""


def measure(prepared: Sequence[Prepared], workers: int) -> dict[str, Any]:
    """The record: every fault under every tool; a tool that found something sees the mended kernel too."""
    # What does not end comes last, so that it holds up nobody.
    order = sorted(FAULTS, key=lambda fault: issubclass(fault.error, EndlessLoop))
    launches = {(one.fault.name, one.faulty): one for one in prepared}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(workers) as pool:
        folder = Path(name)
        jobs = {
            (fault.name, tool): pool.submit(under, tool, launches[fault.name, True], folder)
            for fault in order
            for tool in TOOLS
        }
        found = {key: _result(job) for key, job in jobs.items()}
        again = {key: pool.submit(under, key[1], launches[key[0], False], folder) for key, one in found.items()
                 if one["errors"]}  # fmt: skip
        clean = {key: _result(job)["errors"] for key, job in again.items()}
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": hardware.commit(),
        "tool": "compute-sanitizer " + re.findall(r"Version (\S+)", version)[0],
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "device": hardware.device_block(),
        "faults": [
            {
                "name": fault.name,
                "emulator": emulator_says(fault),
                "tools": {tool: found[fault.name, tool] for tool in TOOLS},
                "mended": {tool: clean[fault.name, tool] for tool in TOOLS if (fault.name, tool) in clean},
            }
            for fault in FAULTS
        ],
    }


def _result(job: Any) -> dict[str, Any]:
    try:
        return job.result()
    except ValueError as error:
        return {"errors": None, "says": "", "driver": str(error)[-300:]}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command. `--child` is what the sanitizer looks at."""
    parser = argparse.ArgumentParser(prog="python -m kernels.lab.faults", description=__doc__)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--workers", type=int, default=8, help="processes at a time")
    parser.add_argument("--prepare", type=Path, metavar="FILE", help="only compile, into a file; needs no GPU")
    parser.add_argument("--prepared", type=Path, metavar="FILE", help="take what --prepare has written")
    options = parser.parse_args(arguments)
    if options.child:
        child(options.child)
        return 0
    if options.prepare:
        options.prepare.write_bytes(pickle.dumps([one.cubin for one in prepare()]))
        return 0
    if options.prepared:
        every = [(fault, faulty) for fault in FAULTS for faulty in (True, False)]
        cubins = pickle.loads(options.prepared.read_bytes())
        prepared = [Prepared(*key, cubin) for key, cubin in zip(every, cubins, strict=True)]
    else:
        prepared = prepare()
    found = measure(prepared, options.workers)
    path = record_path(hardware.gpu_slug(found["device"]["name"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for one in found["faults"]:
        print(one["name"], *(f"{tool} {said['errors']}" for tool, said in one["tools"].items()), one["mended"])
    print(path)
    return 0
