"""GPU results of the exhibit ``stages`` of the chapter on tiling, whose asynchronous copies overtake its reads.

A copy overtakes a read depending on the time that it takes, so a GPU's result may be right or wrong. ``climb sanitize
stages`` launches each variant many times on a GPU, counts the wrong elements, runs it under compute-sanitizer, and
writes ``records/<gpu>/emulator/stages.json``.
"""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from climb import paths
from climb.bench import hardware, records
from climb.bench.cuda import cp
from climb.display.cell_output import CellOutput, table
from climb.emulator import AsyncRace
from climb.toolchain.includes import cuda_include_dirs
from climb.toolchain.nvrtc import nvrtc_version
from climb.validation.faults import COMMAND, TOOLS, Fault
from climb.validation.faults.measuring import Prepared, digest, sanitizer_version, under
from climb.validation.schema import StagesRecord, VariantRow

SOURCE = paths.KERNELS / "tiling" / "exhibits" / "stages.cu"
TILE = 16
#: Side of the matrices, and the number of launches of each variant; side under the sanitizer.
N, LAUNCHES, SMALL = 1024, 100, 128
#: A sum of N products of numbers below 1 in float32 is this close; a wrong tile is off by more than 0.1.
TOLERANCE = 1e-2
#: The changes of each variant: pairs of texts.
VARIANTS: dict[str, tuple[str, ...]] = {
    "as published": (),
    "one stage less": ("filled <= stage", "filled < stage"),
    "one stage less and a barrier": (
        "filled <= stage", "filled < stage", "// No barrier: the next stage fills another buffer.", "__syncthreads();",
    ),
    "two stages less": ("stage + kBuffers;", "stage + kBuffers - 2;"),
}  # fmt: skip


def text_of(name: str) -> str:
    """Return the source of a variant. Raises ValueError if the exhibit lacks a text that the variant replaces."""
    text, changes = SOURCE.read_text(encoding="utf-8"), VARIANTS[name]
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        if text.count(old) != 1:
            raise ValueError(f"{SOURCE.name} does not have this once: {old}")
        text = text.replace(old, new)
    return text


def fault_of(name: str, n: int) -> Fault:
    """Make a launch of a variant for matrices of side `n`, of random numbers."""
    a, b = np.random.default_rng(0).random((2, n, n), dtype=np.float32)
    body = text_of(name).replace("product(", "k(")
    args = [a, b, np.zeros((n, n), np.float32), n]
    return Fault(name, body, "", "", AsyncRace, "", grid=(n // TILE, n // TILE), threads=(TILE, TILE), args=args)


def wrong_elements(name: str, n: int = N, launches: int = LAUNCHES, seed: int = 0) -> tuple[list[int], list[int]]:
    """Count the wrong elements of each launch: of random matrices, and of matrices of constants, as the sample has.

    It runs on the device of `climb.cp`: on a GPU, or on the emulator, where `checking(())` lets a fault pass.
    """
    options = ("-std=c++17", *(f"-I{folder}" for folder in cuda_include_dirs(nvrtc_version()[0])))
    kernel = cp.RawModule(code=text_of(name), options=options, name_expressions=("product",)).get_function("product")
    random = np.random.default_rng(seed).random((2, n, n), dtype=np.float32)
    constant = np.stack([np.ones((n, n), np.float32), np.full((n, n), 0.01, np.float32)])
    found = []
    for a, b in (random, constant):
        on_device, right, counts = (cp.asarray(a), cp.asarray(b)), a.astype(np.float64) @ b, []
        for _ in range(launches):
            out = cp.full((n, n), np.nan, dtype=np.float32)
            kernel((n // TILE, n // TILE), (TILE, TILE), (*on_device, out, np.int32(n)))
            counts.append(int((~(np.abs(cp.asnumpy(out) - right) <= TOLERANCE)).sum()))
        found.append(counts)
    return found[0], found[1]


def prepare() -> list[Prepared]:
    """Compile every variant for the sanitizer. Needs no GPU."""
    faults = [fault_of(name, SMALL) for name in VARIANTS]
    names = [f"fault_{index}" for index in range(len(faults))]
    return [Prepared(one, True, name, one.compiled(True, name).cubin) for one, name in zip(faults, names, strict=True)]


def write_prepared(file: Path) -> None:
    """Compile every variant into a file; needs no GPU."""
    file.write_bytes(pickle.dumps([(one.fault.name, one.kernel, one.cubin) for one in prepare()]))


def read_prepared(file: Path) -> list[Prepared]:
    """Read the variants that `write_prepared` wrote."""
    return [
        Prepared(fault_of(name, SMALL), True, kernel, cubin)
        for name, kernel, cubin in pickle.loads(file.read_bytes())
    ]  # fmt: skip


def measure(prepared: list[Prepared]) -> list[VariantRow]:
    """Launch every variant on this GPU, and run it under the tools of compute-sanitizer."""
    rows: list[VariantRow] = []
    with tempfile.TemporaryDirectory() as folder:
        reports = {tool: under(tool, prepared, Path(folder)) for tool in TOOLS}
    for one in prepared:
        wrong, constant = wrong_elements(one.fault.name)
        said = {tool: reports[tool].get(one.kernel, {}) for tool in TOOLS}
        rows.append(
            {"name": one.fault.name, "source_sha256": digest(one.fault), "n": N, "launches": LAUNCHES, "wrong": wrong,
             "constant": constant, "tools": {tool: {"errors": each["errors"], "says": each["says"]}
                                             for tool, each in said.items() if each}}
        )  # fmt: skip
    return rows


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with a GPU's results for the variants; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "stages.json"


def stages_record(gpu: str = records.DEFAULT_GPU) -> StagesRecord:
    """Return the GPU's results for the variants. Raises LookupError if they were not run, and RecordError."""
    path = record_path(records.gpu_with("emulator/stages.json", gpu))
    if not path.exists():
        raise LookupError(f"the exhibit stages was not run on {gpu}; on that GPU, run: {COMMAND} stages")
    return records.load(path, StagesRecord)


def stages_table() -> CellOutput:
    """Show how many elements each variant got wrong on the GPU of the record, and what racecheck says of it."""
    try:
        found = stages_record()
    except LookupError as error:
        return table([[str(error)]], ["pending"])
    rows = []
    for row in found["variants"]:
        shares = [100 * median(row[of]) / row["n"] ** 2 for of in ("wrong", "constant")]
        reports = row["tools"]["racecheck"]["errors"]
        rows.append([row["name"], *(f"{share:.1f} %" for share in shares), reports])
    one = found["variants"][0]
    caption = f"Wrong elements, the median of {one['launches']} launches with matrices of side {one['n']}; "
    caption += f"{found['device']['name']}, {found['date']}"
    return table(rows, ["kernel", "random matrices", "constants", "reports of racecheck"], caption=caption)


def record_stages(folder: Path | None = None, prepared: Path | None = None) -> tuple[Path, dict[str, Any]]:
    """Run the variants on this GPU and write the record. Returns the file and the record."""
    kernels = read_prepared(prepared) if prepared else prepare()
    device = hardware.device_block()
    path = record_path(hardware.gpu_slug(device["name"]), folder)
    found = {
        **hardware.origin(),
        "tool": sanitizer_version(),
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "device": device,
        "variants": measure(kernels),
    }
    records.save(path, found, StagesRecord)
    return path, found
