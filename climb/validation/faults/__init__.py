"""Planted faults: small kernels with one mistake each, run on the emulator and under NVIDIA's compute-sanitizer.

``catalogue.FAULTS`` holds them, each with the error that the emulator must raise. ``climb sanitize faults`` runs
them on a GPU under the four tools of compute-sanitizer; ``records/<gpu>/emulator/sanitizer.json`` keeps the tools'
reports.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench import records
from climb.emulator import ALL_CHECKS, DeviceMemory, EmulatorError, checking, load
from climb.toolchain import Compiled, compile_cuda
from climb.validation.schema import CleanRecord, SanitizerRecord

COMMAND = "climb sanitize"
#: The tools of compute-sanitizer.
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


@dataclass(frozen=True)
class Pair:
    """A launch parameter or argument that differs between the faulty and the mended launch."""

    wrong: Any
    mended: Any


@dataclass(frozen=True)
class Fresh:
    """An argument: a pointer to uninitialised memory."""

    nbytes: int


@dataclass(frozen=True)
class Freed:
    """An argument: a pointer to memory that is freed before the faulty launch."""

    nbytes: int


@dataclass(frozen=True)
class Null:
    """An argument: a null pointer in the faulty launch, memory in the mended one."""

    nbytes: int


@dataclass(frozen=True)
class Fault:
    """A kernel with one mistake, and the error that the emulator must raise.

    `body` is the source of the kernel `k`, in which `@@` becomes `wrong` or `mended`. `error` is the class of the
    error, `says` a regular expression that its message matches, `at` the text of the source line at fault, and
    `block`, `thread`, `lanes` and `allocation` the place that it names. `args` are arrays, numbers, and the classes
    above. `details` are further attributes of the error; `other` is the source line of the earlier access of a race.
    """

    name: str
    body: str
    wrong: str
    mended: str
    error: type[EmulatorError]
    says: str
    at: str | None = ""
    block: tuple[int, int, int] | None = (0, 0, 0)
    thread: tuple[int, int, int] | None = (0, 0, 0)
    lanes: int | None = None
    allocation: str = ""
    grid: Any = 1
    threads: Any = 32
    shared: Any = 0
    args: Sequence[Any] = ()
    details: dict[str, object] = field(default_factory=dict)
    other: str = ""

    def value(self, name: str, faulty: bool) -> Any:
        """Return `grid`, `threads` or `shared` of the faulty or the mended launch."""
        found = getattr(self, name)
        return (found.wrong if faulty else found.mended) if isinstance(found, Pair) else found

    def arguments(self, faulty: bool) -> list[Any]:
        """Return the arguments of the faulty or the mended launch."""
        return [(arg.wrong if faulty else arg.mended) if isinstance(arg, Pair) else arg for arg in self.args]

    def compiled(self, faulty: bool, kernel: str = "k") -> Compiled:
        """Return the faulty or the mended kernel, compiled under the name `kernel`."""
        source = self.body.replace("@@", self.wrong if faulty else self.mended)
        source = source.replace("__global__", 'extern "C" __global__', 1)
        return compile_cuda(re.sub(r"\bk\(", f"{kernel}(", source, count=1), filename="fault.cu")


def number(value: Any) -> bytes:
    """Return the bytes of a scalar argument: float32, int32, or the type of a NumPy scalar."""
    if isinstance(value, np.generic):
        return value.tobytes()
    return struct.pack("<f" if isinstance(value, float) else "<i", value)


def emulate(fault: Fault, faulty: bool, max_steps: int) -> None:
    """Run the faulty or the mended launch with every check on. Raises the EmulatorError that the emulator finds."""
    compiled, memory = fault.compiled(faulty), DeviceMemory()
    packed = []
    for index, arg in enumerate(fault.arguments(faulty)):
        if isinstance(arg, np.ndarray):
            held = memory.allocate(arg.nbytes, f"argument {index}")
            held.data[:] = arg.reshape(-1).view(np.uint8)
        elif isinstance(arg, Fresh):
            held = memory.allocate(arg.nbytes, "fresh", initialised=False)
        elif isinstance(arg, Freed):
            held = memory.allocate(arg.nbytes, "scratch")
            if faulty:
                memory.free(held)
        elif isinstance(arg, Null):
            held = memory.allocate(arg.nbytes, f"argument {index}")
        else:
            packed.append(number(arg))
            continue
        packed.append(struct.pack("<Q", 0 if isinstance(arg, Null) and faulty else held.address))
    kernel = load(compiled.ptx, compiled.sources).kernel("k")
    with checking(ALL_CHECKS):
        kernel.launch(
            fault.value("grid", faulty),
            fault.value("threads", faulty),
            packed,
            memory=memory,
            shared_bytes=fault.value("shared", faulty),
            max_steps=max_steps,
        )


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with compute-sanitizer's reports on the planted faults; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "sanitizer.json"


def record(gpu: str = records.DEFAULT_GPU) -> SanitizerRecord:
    """Read compute-sanitizer's reports on the planted faults. Raises LookupError if there are none, and RecordError."""
    path = record_path(records.gpu_with("emulator/sanitizer.json", gpu))
    if not path.exists():
        raise LookupError(f"compute-sanitizer was not run on {gpu}; on that GPU, run: {COMMAND} faults")
    return records.load(path, SanitizerRecord)


def clean_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with compute-sanitizer's reports on the rungs; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "clean.json"


def clean_record(gpu: str = records.DEFAULT_GPU) -> CleanRecord:
    """Read compute-sanitizer's reports on the rungs. Raises LookupError if there are none, and RecordError."""
    path = clean_path(records.gpu_with("emulator/clean.json", gpu))
    if not path.exists():
        raise LookupError(f"the rungs were not run under compute-sanitizer on {gpu}; on that GPU, run: {COMMAND} clean")
    return records.load(path, CleanRecord)
