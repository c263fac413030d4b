"""Counting on the hardware: the launches of `kernels.lab.agreement`, once each, under Nsight Compute.

The kernels are loaded as the toolchain here compiles them, so that the machine code that is counted is the one that the
marks are read from.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.toolchain import Compiled
from kernels.toolchain.nvrtc import nvrtc_version

from .. import hardware
from ..problem import Launch
from . import (
    METRICS,
    all_rungs,
    code_sha256,
    compiled_patterns,
    measured_size,
    pattern_launch,
    record_path,
)
from .cases import cases

RUNS = 2


@dataclass(frozen=True)
class Step:
    """One launch to be counted. `names` tell which; `first` that its arrays are new; `zeros`: further arrays, their
    bytes by name.
    """

    names: dict[str, Any]
    compiled: Compiled
    launch: Launch
    code: str
    first: bool
    arrays: dict[str, np.ndarray]
    zeros: dict[str, int]


def rung_steps() -> Iterator[Step]:
    """The launches of all rungs, in order."""
    for rung in all_rungs():
        problem, size = rung.ladder.problem, measured_size(rung)
        inputs, compiled = rung.ladder.inputs(size), rung.compiled(size)
        shapes = {a.name: (a.extents(size), a.dtype) for a in problem.outputs} | dict(rung.rung.workspace(size))
        zeros = {n: int(np.prod(s, dtype=np.int64)) * np.dtype(d).itemsize for n, (s, d) in shapes.items()}
        for index, launch in enumerate(rung.launches(size)):
            names = {"ladder": rung.ladder.name, "rung": rung.name, "size": dict(size), "launch": index}
            code = code_sha256(compiled, launch, inputs)
            yield Step(names, compiled, launch, code, index == 0, inputs, zeros)


def pattern_steps() -> Iterator[Step]:
    """The patterns, in order."""
    compiled = compiled_patterns()
    for case in cases():
        launch = pattern_launch(case)
        arrays = {f"array {n}": arg for n, arg in enumerate(case.args) if isinstance(arg, np.ndarray)}
        yield Step({"label": case.label}, compiled, launch, code_sha256(compiled, launch, {}), True, arrays, {})


STEPS = {"rungs": rung_steps, "patterns": pattern_steps}


def launch_all(which: str) -> None:
    """Launch each step once, through CuPy. This is what ncu looks at."""
    import cupy

    modules: dict[int, Any] = {}
    held: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS[which]():
            key = id(step.compiled)
            if key not in modules:
                path = Path(folder, f"{key}.cubin")
                path.write_bytes(step.compiled.cubin)
                modules[key] = step.compiled, cupy.RawModule(path=str(path))
            if step.first:
                held = {name: cupy.asarray(value) for name, value in step.arrays.items()}
                held |= {name: cupy.zeros(max(n, 1), cupy.uint8) for name, n in step.zeros.items()}
            function = modules[key][1].get_function(step.compiled.lowered(step.launch.kernel))
            if step.launch.shared_mem > 48 * 1024:
                function.max_dynamic_shared_size_bytes = step.launch.shared_mem
            args = tuple(held[a] if isinstance(a, str) else np.array([a]) for a in step.launch.args)
            function(step.launch.grid, step.launch.block, args, shared_mem=step.launch.shared_mem)
            cupy.cuda.Device().synchronize()


def count(which: str) -> list[dict[str, float]]:
    """What ncu counts of each step. Raises RuntimeError with what it said."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--cache-control", "none", "--metrics", ",".join(METRICS),
               sys.executable, "-m", "kernels.lab.agreement", "--child", which]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = parse(done.stdout)
    wanted = sum(1 for _ in STEPS[which]())
    if done.returncode or len(rows) != wanted:
        raise RuntimeError(f"ncu counted {len(rows)} of {wanted} launches:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return rows


def parse(page: str) -> list[dict[str, float]]:
    """The counts of each launch from ncu's raw page as CSV. Raises KeyError for a metric that ncu did not give."""
    lines = [line for line in page.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the row under the head holds units
    return [{metric: _number(row[metric]) for metric in METRICS} for row in rows]


def _number(text: str) -> float:
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def measure() -> dict[str, Any]:
    """The record: every step, counted in RUNS runs."""
    points: dict[str, list[dict[str, Any]]] = {}
    for which, steps in STEPS.items():
        runs = [count(which) for _ in range(RUNS)]
        points[which] = [
            {**step.names, "code_sha256": step.code, "counts": [list(run[index].values()) for run in runs]}
            for index, step in enumerate(steps())
        ]
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True, check=True).stdout
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": hardware.commit(),
        "tool": "Nsight Compute " + re.findall(r"Version (\S+)", version)[0],
        "nvrtc": ".".join(map(str, nvrtc_version())),
        "device": hardware.device_block(),
        "metrics": METRICS,
        **points,
    }


def main(arguments: list[str]) -> int:
    """The command. `--child rungs` or `--child patterns` is what ncu looks at."""
    if arguments[:1] == ["--child"]:
        launch_all(arguments[1])
        return 0
    data = measure()
    path = record_path(hardware.gpu_slug(data["device"]["name"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dump(data), encoding="utf-8")
    print(path)
    return 0


def dump(data: dict[str, Any]) -> str:
    """The record as text: one launch a line."""
    head = {key: value for key, value in data.items() if key not in STEPS}
    text = json.dumps(head, indent=1)[:-2]
    for which in STEPS:
        rows = ",\n".join("  " + json.dumps(point) for point in data[which])
        text += f',\n "{which}": [\n{rows}\n ]'
    return text + "\n}\n"
