"""Records: the committed measurements of a ladder on one GPU, and whether they still belong to its kernels.

One JSON object a ladder, in ``records/<gpu>/<ladder>.json``. Times are in seconds, sizes in elements,
work in bytes and FLOPs. ``source_sha256`` is the hash of what was measured; when the kernel of today has
another, the point is stale.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from climb.bench.ladder import REGIMES, Ladder
from climb.bench.problem import Size, size_label

RECORDS = Path(__file__).resolve().parents[2] / "records"
DEFAULT_GPU = "nvidia-h200"
#: All regimes that there are; ``measure`` says what they mean.
ALL_REGIMES = (*REGIMES, "dirty")
KINDS = ("rung", "peer")


class RecordError(ValueError):
    """A record that does not follow the schema; the message names the file, the field and what was expected."""


class MissingRecord(LookupError):
    """There is no record of this ladder on this GPU; the message says what makes one."""


@dataclass(frozen=True)
class Point:
    """One rung or peer at one size in one regime.

    ``samples`` in seconds: every accepted sample of the regime "cold" (before each, L2 is flushed and left with nothing
    to write back) or "dirty" (L2 is flushed by overwriting it); in the regime "batch" (launches back to back) one
    number, NVBench's mean over ``sampling["launches"]`` of them.
    ``sampling`` says how the sampling ended: criterion, whether it was met, what was not met, and how many
    throttled samples were discarded. ``library`` describes a peer; ``source_sha256`` and ``launch`` a rung.
    """

    name: str
    kind: str
    size: dict[str, Any]
    dtype: str
    regime: str
    samples: tuple[float, ...]
    median_s: float
    p25_s: float
    p75_s: float
    flops: int
    bytes: int
    max_rel_error: float
    library: dict[str, str] | None = None
    source_sha256: str | None = None
    launch: dict[str, Any] | None = None
    sampling: dict[str, Any] = field(default_factory=dict)

    @property
    def noise(self) -> float:
        """The interquartile range relative to the median."""
        return (self.p75_s - self.p25_s) / self.median_s


@dataclass(frozen=True)
class Record:
    """The measurements of one ladder in one run on one GPU.

    ``ceilings`` are in GB/s and TFLOP/s by name; ``ceiling_points`` says which point of which ladder gave
    each.
    """

    ladder: str
    date: str
    commit: str
    device: dict[str, Any]
    ceilings: dict[str, float]
    points: tuple[Point, ...]
    ceiling_points: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def gpu(self) -> str:
        """The GPU's name as the driver gives it."""
        return self.device["name"]

    def find(self, name: str, size: Size, regime: str) -> Point | None:
        """The point of that name, size and regime, or None."""
        wanted = dict(size)
        for point in self.points:
            if point.name == name and point.size == wanted and point.regime == regime:
                return point
        return None


@dataclass(frozen=True)
class Stale:
    """A point that a record lacks, or that was measured on another kernel than today's."""

    ladder: str
    name: str
    size: str
    reason: str

    @property
    def command(self) -> str:
        """What mends it, on a machine with the GPU of the record."""
        return f"make record LADDER={self.ladder}"

    def __str__(self) -> str:
        at = f" at {self.size}" if self.size else ""
        return f"stale record: {self.ladder} '{self.name}'{at}: {self.reason}; on the GPU run: {self.command}"


def quantiles(samples: Sequence[float]) -> tuple[float, float, float]:
    """The 25th percentile, median and 75th percentile of samples, linearly interpolated."""
    p25, median, p75 = np.quantile(np.asarray(samples, dtype=np.float64), (0.25, 0.5, 0.75))
    return float(p25), float(median), float(p75)


def rounded(samples: Sequence[float]) -> tuple[float, ...]:
    """Samples as they are stored, to four significant digits."""
    return tuple(float(f"{sample:.4g}") for sample in samples)


def record_path(ladder: str, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> Path:
    """Where the record of a ladder on a GPU is."""
    return (folder or RECORDS / gpu) / f"{ladder}.json"


def load_record(ladder: str, gpu: str = DEFAULT_GPU, folder: Path | None = None) -> Record:
    """Read and validate a record. Raises :class:`MissingRecord` and :class:`RecordError`."""
    path = record_path(ladder, gpu, folder)
    if not path.exists():
        raise MissingRecord(f"no record of {ladder} on {gpu} ({path}); on that GPU run: make record LADDER={ladder}")
    try:
        return parse_record(json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, RecordError) as error:
        raise RecordError(f"{path}: {error}") from None


def parse_record(data: Any) -> Record:
    """A record from its JSON object. Raises :class:`RecordError` naming the field that is wrong."""
    _check_fields(data, Record, "the record")
    points = tuple(_parse_point(p, f"points[{i}]") for i, p in enumerate(data["points"]))
    for name in (
        "name",
        "compute_capability",
        "sm_count",
        "l2_bytes",
        "driver",
        "cuda",
        "nvrtc",
        "cupy",
        "clocks",
    ):
        if name not in data["device"]:
            raise RecordError(f"device lacks '{name}'")
    for name, value in data["ceilings"].items():
        _check_positive(value, f"ceilings['{name}']")
    seen = set()
    for point in points:
        key = (point.name, tuple(sorted(point.size.items())), point.regime)
        if key in seen:
            raise RecordError(f"two points are '{point.name}' at {size_label(point.size)}, {point.regime}")
        seen.add(key)
    return Record(**{**data, "points": points})


def write_whole(path: Path, text: str) -> None:
    """Write a file so that an interruption leaves the old one as it was: to ``.partial``, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def save_record(record: Record, path: Path) -> None:
    """Write a record, whole or not at all.

    Raises :class:`RecordError` rather than write what could not be read again.
    """
    data = asdict(record)
    parse_record(json.loads(json.dumps(data)))
    write_whole(path, _dump(data))


def expected_points(ladder: Ladder) -> list[tuple[str, str, Size]]:
    """What a whole record holds: ``(kind, name, size)`` of each rung that takes a headline size, of each that is swept
    and takes a further one, and of each peer."""
    points: list[tuple[str, str, Size]] = []
    for size in ladder.problem.recorded:
        headline = size in ladder.problem.headline
        points += [
            ("rung", b.name, size) for b in ladder if (headline or b.rung.swept) and b.rung.requires(size) is None
        ]
        points += [("peer", peer.name, size) for peer in ladder.peers]
    return points


def stale_points(record: Record | None, ladder: Ladder) -> list[Stale]:
    """Where a record and its ladder have parted: missing, changed, or gone. Empty when it is fresh."""
    if record is None:
        return [Stale(ladder.name, name, "", "there is no record") for name in ladder.names]
    found: list[Stale] = []
    expected = expected_points(ladder)
    for kind, name, size in expected:
        reason = _why_stale(record, ladder, kind, name, size)
        if reason:
            found.append(Stale(ladder.name, name, size_label(size), reason))
    known = {(name, tuple(sorted(size.items()))) for _, name, size in expected}
    for point in record.points:
        if point.regime == REGIMES[0] and (point.name, tuple(sorted(point.size.items()))) not in known:
            found.append(Stale(ladder.name, point.name, size_label(point.size), "the ladder has it no more"))
    return found


def _why_stale(record: Record, ladder: Ladder, kind: str, name: str, size: Size) -> str | None:
    for regime in ladder.regimes:
        point = record.find(name, size, regime)
        if point is None:
            return f"missing in the regime '{regime}'"
        if point.kind != kind:
            return f"recorded as a {point.kind}"
        if kind == "rung" and point.source_sha256 != ladder[name].sha256(size):
            return "its kernel, options or launch have changed since it was measured"
        if (point.flops, point.bytes) != (ladder.problem.flops(size), ladder.problem.bytes(size)):
            return "the problem counts other FLOPs or bytes than when it was measured"
    return None


def _parse_point(data: Any, where: str) -> Point:
    _check_fields(data, Point, where)
    if data["kind"] not in KINDS:
        raise RecordError(f"{where}: kind is {data['kind']!r}; expected one of {', '.join(KINDS)}")
    if data["regime"] not in ALL_REGIMES:
        raise RecordError(f"{where}: regime is {data['regime']!r}; expected one of {', '.join(ALL_REGIMES)}")
    if not data["samples"]:
        raise RecordError(f"{where}: no samples")
    for sample in data["samples"]:
        _check_positive(sample, f"{where}: a sample")
    for name, value in zip(("p25_s", "median_s", "p75_s"), quantiles(data["samples"]), strict=True):
        if not abs(data[name] - value) <= 1e-9 * value:
            raise RecordError(f"{where}: {name} is {data[name]!r}, but its samples give {value!r}")
    wanted = "source_sha256" if data["kind"] == "rung" else "library"
    if not data.get(wanted):
        raise RecordError(f"{where}: a {data['kind']} needs '{wanted}'")
    return Point(**{**data, "samples": tuple(data["samples"])})


def _check_fields(data: Any, kind: type, where: str) -> None:
    if not isinstance(data, Mapping):
        raise RecordError(f"{where} is {type(data).__name__}; expected an object")
    names = {f.name for f in fields(kind)}
    optional = {"library", "source_sha256", "launch", "sampling", "ceiling_points"}
    if missing := names - optional - set(data):
        raise RecordError(f"{where} lacks {', '.join(sorted(missing))}")
    if unknown := set(data) - names:
        raise RecordError(f"{where} has unknown fields: {', '.join(sorted(unknown))}")


def _check_positive(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise RecordError(f"{where} is {value!r}; expected a positive number")


def _dump(data: Mapping[str, Any]) -> str:
    """JSON with one line a field and one field a line, so that a diff shows what was measured anew."""
    head = [f" {_field(name, value)}" for name, value in data.items() if name != "points"]
    points = [
        "  {\n" + ",\n".join(f"   {_field(name, value)}" for name, value in point.items()) + "\n  }"
        for point in data["points"]
    ]
    return "{\n" + ",\n".join([*head, ' "points": [\n' + ",\n".join(points) + "\n ]"]) + "\n}\n"


def _field(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}"
