"""Check whether a rung gives the same bits in every launch: ``climb repeats LADDER ...`` on a GPU.

Blocks finish in an order that no program chooses, so a sum by atomics may differ from launch to launch. The command
launches each rung many times on the same inputs, counts how often each result appeared, and writes
``records/<gpu>/repeats/<ladder>.json``. It takes problems with a single output of one element.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climb.bench import hardware, records
from climb.bench.ladder import Ladder
from climb.bench.records.kinds import RepeatsPoint, RepeatsRecord
from climb.bench.registry import load_ladder

_COMMAND = "climb repeats"
LAUNCHES = 300


@dataclass(frozen=True)
class Repeats:
    """The number of times each result appeared, by rung, at ``size`` in ``launches`` launches; ``reference`` is in
    float64."""

    ladder: Ladder
    gpu: str
    size: dict[str, Any]
    launches: int
    reference: float
    points: tuple[RepeatsPoint, ...]

    def of(self, rung: str) -> dict[float, int]:
        """Return the results of one rung, each with its number of occurrences. Raises LookupError if there are none, or
        for stale ones."""
        for point in self.points:
            if point.name == rung:
                if point.source_sha256 != self.ladder[rung].sha256(self.size):
                    raise LookupError(f"stale repeats of {rung}: the kernel has changed; on that GPU: {self._again}")
                return {float.fromhex(value): count for value, count in point.results.items()}
        raise LookupError(f"no repeats of {rung}; on that GPU: {self._again}")

    @property
    def _again(self) -> str:
        return f"{_COMMAND} {self.ladder.name}"


def repeated(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> Repeats:
    """Read a ladder's committed repeats. Raises LookupError if there are none, and RecordError."""
    ladder = load_ladder(ladder) if isinstance(ladder, str) else ladder
    path = repeats_path(ladder.name, records.gpu_with(f"repeats/{ladder.name}.json", gpu))
    if not path.exists():
        raise LookupError(f"no repeats of {ladder.name} on {gpu}; on that GPU: {_COMMAND} {ladder.name}")
    found = records.load(path, RepeatsRecord)
    return Repeats(ladder, found.device["name"], found.size, found.launches, found.reference, found.points)


def repeats_path(ladder: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's repeats; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "repeats" / f"{ladder}.json"


def repeat(ladder: Ladder, launches: int = LAUNCHES) -> dict[str, Any]:
    """Launch every rung ``launches`` times at the first headline size and count the results; return the record's
    data."""
    from climb.bench.cuda import cp

    problem = ladder.problem
    size = dict(problem.headline[0])
    host = ladder.inputs(size)
    (output,) = problem.outputs
    reference = float(problem.reference(host, size)[output.name][0])
    device = {name: cp.asarray(value) for name, value in host.items()}
    points = []
    for rung in ladder:
        out = cp.empty(output.extents(size), dtype=output.dtype)
        launch = rung.prepare({**device, output.name: out}, size)
        results: Counter[str] = Counter()
        for _ in range(launches):
            launch()
            results[float(cp.asnumpy(out)[0]).hex()] += 1
        points.append({"name": rung.name, "source_sha256": rung.sha256(size), "results": dict(sorted(results.items()))})
        print(f"{ladder.name} {rung.name}: {len(results)} result(s) in {launches} launches", file=sys.stderr)
    return {
        "ladder": ladder.name,
        "command": f"{_COMMAND} {ladder.name}",
        **hardware.origin(),
        "device": hardware.device_block(),
        "size": size,
        "launches": launches,
        "reference": reference,
        "points": points,
    }


def record_repeats(name: str, folder: Path | None = None) -> Path:
    """Count the results of a ladder's rungs and write them below ``folder`` (``records/<gpu>`` by default)."""
    data = repeat(load_ladder(name))
    path = repeats_path(data["ladder"], hardware.gpu_slug(data["device"]["name"]), folder)
    records.save(path, data, RepeatsRecord)
    return path
