"""Random programs whose results must be the same bits on the emulator and on a GPU.

``control`` makes nested branches and loops, which plain Python executes too; ``values`` makes typed operations. Kind
and seed determine a program, its inputs and its outputs. ``climb fuzz`` runs many on a GPU;
``records/<gpu>/emulator/fuzz.json`` keeps the outcome, with hashes of the GPU's results of the first programs, which
the tests compare with the emulator's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from climb.bench import records
from climb.emulator.running import launch
from climb.toolchain import Compiled, compile_cuda
from climb.validation.fuzzing import control, values
from climb.validation.schema import FuzzRecord

COMMAND = "climb fuzz"
KINDS = ("control", "values")
GRID = 2


@dataclass(frozen=True)
class Program:
    """A program: its kernel `k` takes `arrays`, and leaves its results in those at the positions `outputs`."""

    kind: str
    seed: int
    source: str
    options: tuple[str, ...]
    threads: int
    arrays: tuple[np.ndarray, ...]
    outputs: tuple[int, ...]

    def compiled(self) -> Compiled:
        """Compile the program."""
        return compile_cuda(self.source, filename=f"{self.kind}_{self.seed}.cu", options=self.options)


def _words(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return random words; many are edge cases of a format, small numbers, or floats near one."""
    out = rng.integers(0, 2**32, count, np.uint32)
    edges = [
        0, 1, 2, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF, 0xFFFF, 0x8000, 0x7FFF, 0xFF, 0x80,
        0x3F800000, 0xBF800000, 0x3F800001, 0x3F7FFFFF, 0x00800000, 0x007FFFFF, 0x7F7FFFFF, 0x7F800000, 0xFF800000,
        0x4B000000, 0x4F000000, 0x4EFFFFFF, 0x5F000000, 0x3C003C00, 0x7BFF7BFF, 0x04000400, 0x03FF8001, 0x3FF00000,
        0x40000000, 0x7FEFFFFF, 0x00100000, 0x43E00000, 0x41DFFFFF, 0x36A00000, 0x380FFFFF, 0x47EFFFFF,
    ]  # fmt: skip
    kind = rng.random(count)
    out = np.where(kind < 0.3, rng.choice(np.array(edges, np.uint32), count), out)
    near = (rng.standard_normal(count) * 10.0 ** rng.integers(-3, 8, count)).astype(np.float32).view(np.uint32)
    out = np.where((kind >= 0.3) & (kind < 0.55), near, out)
    small = rng.integers(-40, 40, count).astype(np.int32).view(np.uint32)
    return np.where((kind >= 0.55) & (kind < 0.65), small, out)


def program(kind: str, seed: int) -> Program:
    """Return the program of a kind (one of KINDS) and a seed."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    if kind == "control":
        source, _ = control.program(seed)
        data = rng.integers(0, 2**32, control.WORDS, np.uint32)
        return Program(kind, seed, source, (), 40, (data, np.zeros(40 * GRID, np.uint32)), (1,))
    source = values.program(seed)
    out = np.zeros(values.words(source) * values.THREADS * GRID, np.uint32)
    arrays = (_words(rng, values.WORDS), out, _words(rng, values.SUMS))
    options = () if seed % 2 else ("-ftz=false",)
    return Program(kind, seed, source, options, values.THREADS, arrays, (1, 2))


def emulate(one: Program, compiled: Compiled | None = None) -> list[np.ndarray]:
    """Run the program on the emulator. Returns its outputs."""
    arrays = [array.copy() for array in one.arrays]
    launch(compiled or one.compiled(), "k", GRID, one.threads, arrays, compare=False)
    return [arrays[n] for n in one.outputs]


def digest(outputs: Sequence[np.ndarray]) -> str:
    """Return a hash of a program's outputs."""
    found = hashlib.sha256()
    for array in outputs:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def record_path(gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Return the file with the outcome on a GPU; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "emulator" / "fuzz.json"


def record(gpu: str = records.DEFAULT_GPU) -> FuzzRecord:
    """Read the outcome on a GPU. Raises LookupError if there is none, and RecordError."""
    path = record_path(records.gpu_with("emulator/fuzz.json", gpu))
    if not path.exists():
        raise LookupError(f"no random programs were run on {gpu}; on that GPU, run: {COMMAND}")
    return records.load(path, FuzzRecord)
