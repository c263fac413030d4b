"""What ncu counts of kernels that diverge: ``PYTHONPATH=tests python -m tools.divergence_profile [FILE]``.

Needs an NVIDIA GPU and Nsight Compute. Writes ``tests/ncu/divergence.json``, which ``tests/test_divergence.py`` holds
against the emulator. Every case is launched once, in a child process that ncu looks at.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.lab import hardware, load_ladder

ROOT = Path(__file__).resolve().parents[2]
PROFILE = ROOT / "tests" / "ncu" / "divergence.json"
METRICS = {
    "warp_instructions": "smsp__inst_executed.sum",
    "thread_instructions": "smsp__thread_inst_executed.sum",
    "thread_instructions_on": "smsp__thread_inst_executed_pred_on.sum",
    "threads_per_instruction": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "divergent_branches": "smsp__sass_branch_targets_threads_divergent.sum",
}
#: Points of the ladder, and elements of the single kernels: small enough to be emulated in a moment.
POINTS, ELEMENTS = 1 << 14, 1 << 12
#: Multiply-adds in each half of `sides`.
WORK = (1, 4, 16, 64)
THREADS = 256


@dataclass(frozen=True)
class Case:
    """One launch of one kernel. ``label`` says which; ``kernel`` is a name expression in ``source``."""

    label: str
    source: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: tuple[Any, ...]


def text(name: str) -> str:
    return (ROOT / "kernels" / "exercises" / f"divergence_{name}.cu").read_text(encoding="utf-8")


def cases() -> Iterator[Case]:
    """What is profiled, in order. Arrays among the arguments are NumPy's."""
    from kernels.lab.ladder import expand_includes

    ladder = load_ladder("divergence")
    for data in ladder.problem.kinds["data"]:
        size = {"n": POINTS, "data": data}
        arrays = {**ladder.inputs(size), "counts": np.zeros(POINTS, np.int32)}
        for rung in ladder:
            (launch,) = rung.launches(size)
            args = tuple(arrays[a] if isinstance(a, str) else a for a in launch.args)
            source = expand_includes(rung.path)
            yield Case(f"{rung.name}, {data}", source, launch.kernel, launch.grid, launch.block, args)
    values = np.random.default_rng(0).standard_normal(ELEMENTS).astype(np.float32)
    grid = (ELEMENTS // THREADS,)
    for work in WORK:
        args = (values, np.zeros_like(values), np.int32(ELEMENTS))
        yield Case(f"sides<{work}>", text("sides"), f"sides<{work}>", grid, (THREADS,), args)
    numbers = np.arange(ELEMENTS, dtype=np.int32)
    for kernel in ("with_branch", "without_branch"):
        yield Case(kernel, text("parity"), kernel, grid, (THREADS,), (numbers, np.int32(ELEMENTS)))


def launch_all() -> None:
    """Launch every case once, through CuPy."""
    import cupy

    for case in cases():
        module = cupy.RawModule(code=case.source, options=("-std=c++17",), name_expressions=(case.kernel,))
        args = tuple(cupy.asarray(a) if isinstance(a, np.ndarray) else a for a in case.args)
        module.get_function(case.kernel)(case.grid, case.block, args)
        cupy.cuda.Device().synchronize()


def parse(page: str) -> list[dict[str, float]]:
    """The counts of each launch from ncu's raw page as CSV."""
    lines = [line for line in page.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the row under the head holds units
    return [{name: float(row[metric].replace(",", "")) for name, metric in METRICS.items()} for row in rows]


def profile() -> dict[str, Any]:
    """Run ncu over the child. Raises RuntimeError with what it said."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--kernel-name", "regex:^(escape_|sides|with_branch|without_branch)",
               "--metrics", ",".join(METRICS.values()),
               sys.executable, "-m", "tools.divergence_profile", "--child"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows, labels = parse(done.stdout), [case.label for case in cases()]
    if done.returncode or len(rows) != len(labels):
        raise RuntimeError(f"ncu profiled {len(rows)} of {len(labels)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "tool": "Nsight Compute " + re.findall(r"Version (\S+)", version)[0],
        "device": hardware.device_block(),
        "metrics": METRICS,
        "counts": dict(zip(labels, rows, strict=True)),
    }


def main(arguments: list[str]) -> None:
    if arguments == ["--child"]:
        launch_all()
        return
    path = Path(arguments[0]) if arguments else PROFILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(profile(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
