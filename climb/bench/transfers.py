"""The cost of moving a problem's arrays: ``climb transfers LADDER ...`` on a GPU.

A kernel's time begins with its arrays on the device. This measures what comes before and after: allocating device
memory for all arguments, copying the inputs to it and the outputs back, from ordinary (pageable) and from pinned host
memory. The host's clock measures, with the device idle before and after. The command writes
``records/<gpu>/transfers/<ladder>.json``; a chapter reads it with ``transfers(ladder)``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from climb.bench import hardware, records
from climb.bench.ladder import Ladder
from climb.bench.problem import Size, size_label
from climb.bench.records.kinds import TransfersPoint, TransfersRecord
from climb.bench.registry import load_ladder

_COMMAND = "climb transfers"
SAMPLES = 5
#: The steps that are measured, in the order of a program.
STEPS = ("allocate", "to_device", "to_device_pinned", "to_host", "to_host_pinned")


@dataclass(frozen=True)
class Transfers:
    """The transfers of one ladder on one GPU. ``at(size)["to_device"]`` is the median, in seconds."""

    ladder: str
    gpu: str
    date: str
    points: tuple[TransfersPoint, ...]

    def point(self, size: Size) -> TransfersPoint:
        """The record of one size: ``bytes_in``, ``bytes_out``, ``samples`` in seconds by step. Raises LookupError."""
        for point in self.points:
            if point.size == dict(size):
                return point
        raise LookupError(f"no transfers of {self.ladder} at {size_label(size)}; on that GPU: {_COMMAND} {self.ladder}")

    def at(self, size: Size) -> dict[str, float]:
        """Return the median time of each of ``STEPS`` in seconds. Raises LookupError for a size that was not
        measured."""
        return {step: median(samples) for step, samples in self.point(size).samples.items()}


def transfers(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> Transfers:
    """Read a ladder's committed transfers. Raises LookupError if there are none, and RecordError."""
    name = ladder if isinstance(ladder, str) else ladder.name
    path = transfers_path(name, records.gpu_with(f"transfers/{name}.json", gpu))
    if not path.exists():
        raise LookupError(f"no transfers of {name} on {gpu}; on that GPU: {_COMMAND} {name}")
    found = records.load(path, TransfersRecord)
    return Transfers(name, found.device["name"], found.date, found.points)


def transfers_path(ladder: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's transfers; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "transfers" / f"{ladder}.json"


def move(ladder: Ladder, size: Size, samples: int = SAMPLES) -> dict[str, Any]:
    """Measure every step at one size; the first round is a warm-up and is not kept."""
    import cupy

    problem = ladder.problem
    host = {name: np.ascontiguousarray(value) for name, value in ladder.inputs(size).items()}
    host |= {a.name: np.ones(a.extents(size), dtype=a.dtype) for a in problem.outputs}
    pinned = {name: _pinned(cupy, value) for name, value in host.items()}
    device = {name: cupy.asarray(value) for name, value in host.items()}
    inputs, outputs = ([a.name for a in arguments] for arguments in (problem.inputs, problem.outputs))

    def allocate() -> None:
        held = [cupy.cuda.runtime.malloc(max(1, value.nbytes)) for value in host.values()]
        found.append(time.perf_counter())
        for address in held:
            cupy.cuda.runtime.free(address)

    def to_device(memory: dict[str, np.ndarray]) -> None:
        for name in inputs:
            device[name].set(memory[name])

    def to_host(memory: dict[str, np.ndarray]) -> None:
        for name in outputs:
            device[name].get(out=memory[name])

    steps: tuple[Callable[[], None], ...] = (
        allocate,
        lambda: to_device(host),
        lambda: to_device(pinned),
        lambda: to_host(host),
        lambda: to_host(pinned),
    )
    taken: dict[str, list[float]] = {name: [] for name in STEPS}
    found: list[float] = []
    for _ in range(samples + 1):
        for name, step in zip(STEPS, steps, strict=True):
            cupy.cuda.Device().synchronize()
            found.clear()
            start = time.perf_counter()
            step()
            cupy.cuda.Device().synchronize()
            # The time of allocating ends before the memory is freed again.
            taken[name].append((found[0] if found else time.perf_counter()) - start)
    return {
        "size": dict(size),
        "bytes_in": sum(host[name].nbytes for name in inputs),
        "bytes_out": sum(host[name].nbytes for name in outputs),
        "samples": {name: list(records.rounded(values[1:])) for name, values in taken.items()},
    }


def _pinned(cupy: Any, value: np.ndarray) -> np.ndarray:
    """Return a copy of an array in pinned memory, which the driver copies from without staging."""
    memory = cupy.cuda.alloc_pinned_memory(max(1, value.nbytes))
    copy = np.frombuffer(memory, value.dtype, value.size).reshape(value.shape)
    copy[...] = value
    return copy


def record_transfers(name: str, folder: Path | None = None) -> Path:
    """Measure a ladder's transfers at all recorded sizes and write them below ``folder`` (``records/<gpu>``)."""
    ladder = load_ladder(name)
    data = {
        "ladder": ladder.name,
        "command": f"{_COMMAND} {name}",
        **hardware.origin(),
        "device": hardware.device_block(),
        "points": [move(ladder, size) for size in ladder.problem.recorded],
    }
    path = transfers_path(ladder.name, hardware.gpu_slug(data["device"]["name"]), folder)
    records.save(path, data, TransfersRecord)
    return path
