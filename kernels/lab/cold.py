"""What a cold cache costs: ``python -m kernels.lab.cold LADDER ...`` on a GPU.

Before each cold sample NVBench writes as many bytes as the L2 cache holds. The cache is then full of lines that DRAM
has not seen, and each must be written there before its place can be taken. The command times every rung at the
headline sizes from three states of the cache, by CUDA events, and writes ``kernels/records/<gpu>/cold/<ladder>.json``:

- ``written``: the cache is full of written lines, as in the regime "cold" of a record;
- ``read``: the cache is full of lines that were only read, which can be dropped;
- ``kept``: whatever the launch before left there.

Events take about as long as NVBench's, a microsecond or two more than a kernel: compare states, not with a record.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import hardware, records
from .ladder import BoundRung, Ladder
from .problem import Size, size_label
from .registry import load_ladder

STATES = ("written", "read", "kept")
SAMPLES = 25
#: A rung that takes longer than this is left out, in seconds: a cache of megabytes no longer matters.
LONGEST = 1e-3
_COMMAND = "python -m kernels.lab.cold"
#: Bytes written or read to fill the cache, in copies of its size, and clock cycles to hide the launch behind.
_TIMES_L2, _SPIN = 4, 200_000
_SOURCE = """
extern "C" __global__ void spin(long long cycles)
{
    const long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

extern "C" __global__ void read_all(const uint4* data, unsigned long long n, unsigned* out)
{
    unsigned mixed = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n; i += size_t(gridDim.x) * blockDim.x) {
        const uint4 v = data[i];
        mixed |= v.x ^ v.y ^ v.z ^ v.w;
    }
    if (mixed == 1) *out = mixed;
}
"""


@dataclass(frozen=True)
class ColdStates:
    """The median times of one ladder from each state of the cache, in seconds. ``at(rung, size)["written"]``."""

    ladder: Ladder
    gpu: str
    date: str
    command: str
    points: tuple[dict[str, Any], ...]

    def at(self, rung: str, size: Size) -> dict[str, float]:
        """The times of one rung by state. Raises LookupError when there are none, or when they are stale."""
        for point in self.points:
            if point["name"] == rung and point["size"] == dict(size):
                if point["source_sha256"] != self.ladder[rung].sha256(size):
                    raise LookupError(
                        f"stale cold states of {rung}: the kernel has changed; on that GPU: {self.command}"
                    )
                return point["seconds"]
        raise LookupError(f"no cold states of {rung} at {size_label(size)}; on that GPU: {self.command}")


def cold_states(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> ColdStates:
    """Read what was committed for a ladder. Raises LookupError where there is nothing."""
    ladder = load_ladder(ladder) if isinstance(ladder, str) else ladder
    path = cold_path(ladder.name, gpu)
    if not path.exists():
        raise LookupError(f"no cold states of {ladder.name} on {gpu}; on that GPU: {_COMMAND} {ladder.name}")
    data = json.loads(path.read_text(encoding="utf-8"))
    return ColdStates(ladder, data["device"]["name"], data["date"], data["command"], tuple(data["points"]))


def cold_path(ladder: str, gpu: str = records.DEFAULT_GPU) -> Path:
    """Where the cold states of a ladder stand."""
    return records.RECORDS / gpu / "cold" / f"{ladder}.json"


class Gpu:
    """What is asked of CUDA, through CuPy."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        nbytes = _TIMES_L2 * cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        self.junk = cupy.zeros(nbytes // 16 * 16, dtype=cupy.uint8)
        self.out = cupy.zeros(1, dtype=cupy.uint32)
        module = cupy.RawModule(code=_SOURCE)
        self.spin, self.read_all = module.get_function("spin"), module.get_function("read_all")

    def bring(self, state: str) -> None:
        """Bring the cache into one of ``STATES``."""
        if state == "written":
            self.junk.fill(1)
        elif state == "read":
            self.read_all((1024,), (256,), (self.junk, self.junk.nbytes // 16, self.out))

    def seconds(self, launch: Callable[[], None]) -> float:
        """The GPU time of one launch, by events, with the launch's own latency hidden behind a kernel that waits."""
        start, stop = self.cupy.cuda.Event(), self.cupy.cuda.Event()
        self.spin((1,), (1,), (_SPIN,))
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        return self.cupy.cuda.get_elapsed_time(start, stop) * 1e-3


def times(launch: Callable[[], None], gpu: Any, samples: int = SAMPLES) -> dict[str, float] | None:
    """The median time from each state, or None for a launch of more than ``LONGEST``."""
    launch()
    if gpu.seconds(launch) > LONGEST:
        return None
    found = {}
    for state in STATES:
        taken = []
        for _ in range(samples):
            gpu.bring(state)
            taken.append(gpu.seconds(launch))
        found[state] = float(f"{statistics.median(taken):.4g}")
    return found


def measure(ladder: Ladder, gpu: Any) -> list[dict[str, Any]]:
    """Every rung at every headline size: name, size, hash and times."""
    from .cuda import cp

    points = []
    for size in ladder.problem.headline:
        host = ladder.inputs(size)
        arrays = {name: cp.asarray(value) for name, value in host.items()}
        arrays |= {a.name: cp.empty(a.extents(size), dtype=a.dtype) for a in ladder.problem.outputs}
        for rung in ladder:
            if rung.rung.requires(size) is None and (found := times(rung.prepare(arrays, size), gpu)):
                points.append(_point(rung, size, found))
                print(f"{ladder.name} {rung.name} {size_label(size)}: {found}", file=sys.stderr)
    return points


def _point(rung: BoundRung, size: Size, seconds: Mapping[str, float]) -> dict[str, Any]:
    return {"name": rung.name, "size": dict(size), "source_sha256": rung.sha256(size), "seconds": dict(seconds)}


def main(arguments: Sequence[str]) -> int:
    """The command: ladders by name; ``--commit HASH`` where the files are no git checkout."""
    names = list(arguments)
    if "--commit" in names:
        at = names.index("--commit")
        os.environ["WORKLOG_COMMIT"] = names[at + 1]
        del names[at : at + 2]
    if not names:
        print("usage: python -m kernels.lab.cold [--commit HASH] LADDER ...", file=sys.stderr)
        return 2
    gpu = Gpu()
    for name in names:
        ladder = load_ladder(name)
        device = hardware.device_block()
        data = {
            "ladder": ladder.name,
            "command": f"{_COMMAND} {name}",
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "commit": hardware.commit(),
            "device": device,
            "samples": SAMPLES,
            "points": measure(ladder, gpu),
        }
        path = cold_path(ladder.name, hardware.gpu_slug(device["name"]))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
