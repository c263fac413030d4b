"""A record of the tiny ladder, made up: for tests of what is done with records."""

from __future__ import annotations

from typing import Any

from climb.bench import records
from climb.bench.ladder import Ladder
from climb.bench.records import CeilingPoint, CeilingsRecord, Point, Record
from climb.bench.records.ceilings import Ceiling
from tiny_ladder import scale

DEVICE = {
    "name": "NVIDIA H200",
    "compute_capability": "9.0",
    "sm_count": 132,
    "l2_bytes": 62914560,
    "driver": "580.00",
    "cuda": "12.9",
    "nvrtc": "12.9",
    "cupy": "14.2.0",
    "clocks": {"sm_mhz": 1980, "memory_mhz": 3201, "max_sm_mhz": 1980, "max_memory_mhz": 3201},
}
#: Median seconds by name: plain 4 us, vector 2 us, twice 8 us, the peer 3 us.
SECONDS = {"plain": 4e-6, "vector": 2e-6, "twice": 8e-6, "library": 3e-6}


def point(
    name: str, kind: str, size: dict[str, int], regime: str, ladder: Ladder = scale.ladder, seconds: float | None = None
) -> Point:
    """A point whose samples lie 1 % around ``seconds``, or ``SECONDS[name]``."""
    middle = SECONDS[name] if seconds is None else seconds
    samples = (0.99 * middle, middle, 1.01 * middle) if regime == "cold" else (middle,)
    p25, median, p75 = records.quantiles(samples)
    own = (
        {"source_sha256": ladder[name].sha256(size), "launch": {"grid": [1]}}
        if kind == "rung"
        else {"library": {"name": "None", "version": "1", "algorithm": "plain", "precision": "fp32"}}
    )
    fields: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "size": dict(size),
        "dtype": "float32",
        "regime": regime,
        "samples": samples,
        "median_s": median,
        "p25_s": p25,
        "p75_s": p75,
        "flops": ladder.problem.flops(size),
        "bytes": ladder.problem.bytes(size),
        "max_rel_error": 1e-8,
        **own,
    }
    return Point(**fields)


def ceilings() -> CeilingsRecord:
    """The ceilings of :func:`record`, each from a point of the tiny ladder, whatever its rate."""
    values = {"copy_gb_s": 8.192, "read_gb_s": 9.0, "fma_tflop_s": 60.0}
    size = {"n": 1024}
    return CeilingsRecord(
        date="2026-11-20",
        commit="abc",
        device=DEVICE,
        command="climb record",
        ceilings={name: Ceiling(value, 0.01) for name, value in values.items()},
        points=tuple(CeilingPoint(name, "scale", 8192, point("plain", "rung", size, "cold")) for name in values),
    )


def record(ladder: Ladder = scale.ladder, seconds: dict[str, float] | None = None) -> Record:
    """A whole and fresh record; ``seconds`` are of rungs that ``SECONDS`` does not have."""
    points = [
        point(name, kind, dict(size), regime, ladder, (seconds or {}).get(name))
        for kind, name, size in records.expected_points(ladder)
        for regime in records.REGIMES
    ]
    return Record(
        ladder=ladder.name,
        date="2026-11-20",
        commit="abc",
        device=DEVICE,
        ceilings=ceilings().values,
        points=tuple(points),
    )
