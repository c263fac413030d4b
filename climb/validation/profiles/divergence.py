"""Profile the instructions of diverging kernels with Nsight Compute: ``climb divergence``.

Needs an NVIDIA GPU and ``ncu``. Writes ``records/<gpu>/profiles/divergence.json``, which
``tests/kernels/divergence/test_divergence.py`` compares with the emulator and with the SASS interpreter. A child
process launches every case once, with the machine code that the toolchain here makes, and ncu profiles that process.
``--prepare FILE`` writes the machine code; ``--prepared FILE`` uses it on a GPU whose machine has another compiler.
"""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from climb import paths
from climb.bench import hardware, records
from climb.bench.identity import expand_includes
from climb.bench.registry import load_ladder
from climb.toolchain import Compiled, compile_cuda
from climb.validation import nsight
from climb.validation.schema import DivergenceRecord

EXHIBITS = paths.KERNELS / "divergence" / "exhibits"
METRICS = {
    "warp_instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "thread_instructions_on": "smsp__thread_inst_executed_pred_on.sum",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "divergent_branches": "smsp__sass_branch_targets_threads_divergent.sum",
    # The same quantities, counted by instructions that ncu inserts into the machine code.
    "patched_warp_instructions": "smsp__sass_inst_executed.sum",
    "patched_thread_instructions": "smsp__sass_thread_inst_executed.sum",
}
#: Points of the ladder, and elements of the single kernels: small enough to be emulated in a moment.
POINTS, ELEMENTS = 1 << 14, 1 << 12
#: Multiply-adds in each half of `sides`.
WORK = (1, 4, 16, 64)
THREADS = 256
#: Rungs that are not profiled: with this few points they mostly start and end, which hardly counts at 2^24.
LEFT_OUT = ("replayed", "compacted", "cycle_check")


@dataclass(frozen=True)
class Case:
    """One launch of one kernel. ``label`` says which; ``kernel`` is a name expression in ``source``."""

    label: str
    source: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]


def _exhibit(name: str) -> str:
    return (EXHIBITS / f"{name}.cu").read_text(encoding="utf-8")


def cases() -> Iterator[Case]:
    """Return the launches to profile, in order. Arrays among the arguments are NumPy's."""
    ladder = load_ladder("divergence")
    for data in ladder.problem.kinds["data"]:
        size = {"n": POINTS, "data": data}
        arrays = {**ladder.inputs(size), "counts": np.zeros(POINTS, np.int32)}
        for rung in ladder:
            if rung.name in LEFT_OUT:
                continue
            (launch,) = rung.launches(size)
            args = tuple(arrays[a] if isinstance(a, str) else a for a in launch.args)
            source = expand_includes(rung.path)
            yield Case(f"{rung.name}, {data}", source, launch.kernel, launch.grid, launch.block, args)
    values = np.random.default_rng(0).standard_normal(ELEMENTS).astype(np.float32)
    grid = (ELEMENTS // THREADS,)
    for work in WORK:
        args = (values, np.zeros_like(values), np.int32(ELEMENTS))
        yield Case(f"sides<{work}>", _exhibit("sides"), f"sides<{work}>", grid, (THREADS,), args)
    numbers = np.arange(ELEMENTS, dtype=np.int32)
    for kernel in ("with_branch", "without_branch"):
        yield Case(kernel, _exhibit("parity"), kernel, grid, (THREADS,), (numbers, np.int32(ELEMENTS)))


def compiled(case: Case) -> Compiled:
    """Return the case's kernel, as the toolchain here compiles it."""
    return compile_cuda(case.source, filename="kernel.cu", options=("-std=c++17",), name_expressions=(case.kernel,))


@dataclass(frozen=True)
class Prepared:
    """Machine code by label, its kernel's name in it, and the version of NVRTC that made it."""

    nvrtc: tuple[int, int]
    code: dict[str, tuple[bytes, str]]


def prepare() -> Prepared:
    """Compile every case. Needs no GPU."""
    found = {case.label: compiled(case) for case in cases()}
    (version,) = {one.nvrtc_version for one in found.values()}
    kernels = {case.label: case.kernel for case in cases()}
    return Prepared(version, {label: (one.cubin, one.lowered(kernels[label])) for label, one in found.items()})


def launch_all(prepared: Prepared) -> None:
    """Launch every case once, through CuPy."""
    import cupy

    modules: dict[bytes, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            cubin, name = prepared.code[case.label]
            if cubin not in modules:
                path = Path(folder, f"{len(modules)}.cubin")
                path.write_bytes(cubin)
                modules[cubin] = cupy.RawModule(path=str(path))
            args = tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in case.args)
            modules[cubin].get_function(name)(case.grid, case.block, args)
            cupy.cuda.Device().synchronize()


def profile(prepared: Prepared) -> dict[str, Any]:
    """Run ncu over the child process. Raises RuntimeError with ncu's output."""
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump((prepared.nvrtc, prepared.code), file)
        file.flush()
        command = [*nsight.COMMAND, "--metrics", ",".join(METRICS.values()),
                   sys.executable, "-m", "climb.validation.profiles.divergence", file.name]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    pages, labels = nsight.parse(done.stdout, tuple(METRICS.values())), [case.label for case in cases()]
    rows = [{name: float(page[metric]) for name, metric in METRICS.items()} for page in pages]
    if done.returncode or len(rows) != len(labels):
        raise RuntimeError(f"ncu profiled {len(rows)} of {len(labels)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {
        "date": hardware.today(),
        "tool": nsight.version(),
        "device": hardware.device_block(),
        "nvrtc": ".".join(map(str, prepared.nvrtc)),
        "metrics": METRICS,
        "cubins": {label: hashlib.sha256(cubin).hexdigest() for label, (cubin, _) in prepared.code.items()},
        "counts": dict(zip(labels, rows, strict=True)),
    }


def profile_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the committed profile of a GPU; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "profiles" / "divergence.json"


def divergence_profile(gpu: str = records.DEFAULT_GPU) -> DivergenceRecord:
    """Read the committed profile. Raises FileNotFoundError if there is none, and RecordError."""
    return records.load(profile_path(records.gpu_with("profiles/divergence.json", gpu)), DivergenceRecord)


def write_prepared(file: Path) -> None:
    """Compile every case into a file; needs no GPU."""
    prepared = prepare()
    file.write_bytes(pickle.dumps((prepared.nvrtc, prepared.code)))


def read_prepared(file: Path) -> Prepared:
    """Read the file written by ``write_prepared``. Plain values are pickled, so that the file does not depend on a
    module's name."""
    return Prepared(*pickle.loads(file.read_bytes()))


def record_divergence(folder: Path | None = None, prepared: Path | None = None) -> Path:
    """Profile every case and write the record below ``folder`` (``records/<gpu>`` by default). Raises RuntimeError."""
    data = profile(read_prepared(prepared) if prepared else prepare())
    path = profile_path(hardware.gpu_slug(data["device"]["name"]), folder)
    records.save(path, data, DivergenceRecord)
    return path


if __name__ == "__main__":  # the process that ncu profiles
    launch_all(read_prepared(Path(sys.argv[1])))
