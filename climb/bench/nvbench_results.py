"""Read NVBench's results: its JSON, the binary files of raw samples beside it, and its log.

NVBench writes every accepted sample of a cold measurement, as little-endian float32 seconds, to one file per benchmark,
and one mean for a batch measurement. Numbers are strings in its JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

_SAMPLES = "nv/json/bin:nv/cold/sample_times"
_RUN = re.compile(r"^Run:.*?\b(point-\d+(?:-[a-z]+)?)\b")
_THROTTLED = "GPU throttled below threshold"
_BATCH = re.compile(r"\bBatch: ([0-9.]+)ms GPU.*?\b([0-9]+)x$")
_WALL = re.compile(r"\bCold: .*?\b([0-9.]+)s total wall")


class ResultsError(RuntimeError):
    """NVBench's output lacks what a point needs; ``benchmark`` is the name of the benchmark concerned."""

    def __init__(self, benchmark: str, what: str):
        super().__init__(f"{benchmark}: {what}")
        self.benchmark = benchmark
        self.what = what


@dataclass(frozen=True)
class Measured:
    """One benchmark: cold samples in seconds, the batch mean in seconds over ``batch_launches`` launches.

    ``cold_wall_s`` is the wall time of the cold measurement, ``sm_clock_hz`` the mean SM clock during it.
    """

    cold: tuple[float, ...]
    cold_wall_s: float
    batch_mean_s: float | None
    batch_launches: int
    sm_clock_hz: float | None


def read_results(path: Path) -> dict[str, Measured]:
    """Return every benchmark that was not skipped, by name. Raises :class:`ResultsError` for one without samples."""
    data = json.loads(path.read_text(encoding="utf-8"))
    found = {}
    for benchmark in data["benchmarks"]:
        for state in benchmark["states"]:
            if not state.get("is_skipped"):
                found[benchmark["name"]] = _measured(benchmark["name"], state, path.parent)
    return found


def read_samples(path: Path) -> tuple[float, ...]:
    """Read the samples in one of NVBench's binary files, in seconds."""
    return tuple(float(sample) for sample in np.fromfile(path, dtype="<f4"))


def read_log(path: Path) -> dict[str, list[str]]:
    """Read the log's lines by benchmark."""
    return log_lines(path.read_text(encoding="utf-8", errors="replace"))


def log_lines(text: str) -> dict[str, list[str]]:
    """Split the lines of a log, or of a part of it, by benchmark. Those before the first "Run:" are left out."""
    lines: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if match := _RUN.match(line):
            current = lines.setdefault(match[1], [])
        current.append(line)
    return lines


def throttled_samples(lines: list[str]) -> int:
    """Count the samples that NVBench discarded because the GPU had throttled, from a benchmark's log lines."""
    return sum(_THROTTLED in line for line in lines)


def batch_mean_s(lines: list[str]) -> float | None:
    """Return the batch mean from the log, in seconds, or None."""
    means = [float(match[1]) for line in lines if (match := _BATCH.search(line))]
    return means[-1] * 1e-3 if means else None


def finished(samples: Path, clocks: Path | None, lines: list[str]) -> Measured:
    """Read one benchmark before NVBench has written its JSON: from its files of samples and clocks, and its log lines.

    The log gives the batch mean to a nanosecond, and the wall time to a hundredth of a second. Raises
    :class:`ResultsError`.
    """
    cold = read_samples(samples)
    if not cold:
        raise ResultsError(samples.name, "NVBench accepted no sample")
    walls = [float(match[1]) for line in lines if (match := _WALL.search(line))]
    batches = [match for line in lines if (match := _BATCH.search(line))]
    rates = read_samples(clocks) if clocks else ()
    return Measured(
        cold=cold,
        cold_wall_s=walls[-1] if walls else 0.0,
        batch_mean_s=float(batches[-1][1]) * 1e-3 if batches else None,
        batch_launches=int(batches[-1][2]) if batches else 0,
        sm_clock_hz=fmean(rates) if rates else None,
    )


def _measured(name: str, state: dict[str, Any], folder: Path) -> Measured:
    summaries = {s["tag"]: {d["name"]: d.get("value") for d in s.get("data", [])} for s in state.get("summaries") or []}
    accepted = summaries.get("nv/cold/sample_size", {}).get("value")
    binary = summaries.get(_SAMPLES)
    if binary is None or not int(accepted or 0):
        raise ResultsError(name, f"NVBench accepted no sample (sample_size {accepted}, no file of samples)")
    samples = read_samples(_locate(name, binary["filename"], folder))
    if len(samples) != int(binary["size"]):
        raise ResultsError(name, f"{binary['filename']} holds {len(samples)} samples, expected {binary['size']}")

    def number(tag: str) -> float | None:
        value = summaries.get(tag, {}).get("value")
        return None if value is None else float(value)

    return Measured(
        cold=samples,
        cold_wall_s=number("nv/cold/walltime") or 0.0,
        batch_mean_s=number("nv/batch/time/gpu/mean"),
        batch_launches=int(number("nv/batch/sample_size") or 0),
        sm_clock_hz=number("nv/cold/sm_clock_rate/mean"),
    )


def _locate(name: str, filename: str, folder: Path) -> Path:
    """Return the file under its recorded name, or in the folder beside the JSON when both have been moved."""
    given = Path(filename)
    moved = folder / given.parent.name / given.name
    for path in (given, folder / given, moved):
        if path.exists():
            return path
    raise ResultsError(name, f"NVBench's file of samples is missing: {filename}")
