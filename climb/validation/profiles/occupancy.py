"""Profile the occupancy of many launches with Nsight Compute: ``climb occupancy``.

Needs an NVIDIA GPU and ``ncu``. Writes ``records/<gpu>/profiles/occupancy.json``, which the chapter reads and
``tests/bench/test_occupancy.py`` compares with ``climb.toolchain.occupancy``. A child process launches every case once,
and ncu profiles that process.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climb.bench import hardware, records
from climb.bench.records.kinds import OccupancyRecord
from climb.bench.registry import load_ladder
from climb.validation import nsight

METRICS = {
    "theoretical_pct": "sm__maximum_warps_per_active_cycle_pct",
    "achieved_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
    "static_shared": "launch__shared_mem_per_block_static",
    "dynamic_shared": "launch__shared_mem_per_block_dynamic",
    "driver_shared": "launch__shared_mem_per_block_driver",
    "blocks_by_registers": "launch__occupancy_limit_registers",
    "blocks_by_shared": "launch__occupancy_limit_shared_mem",
    "blocks_by_warps": "launch__occupancy_limit_warps",
    "blocks_by_sm": "launch__occupancy_limit_blocks",
    "shared_configured": "launch__shared_mem_config_size",
    "waves": "launch__waves_per_multiprocessor",
    "grid": "launch__grid_size",
    "block": "launch__block_size",
    "nanoseconds": "gpu__time_duration.sum",
}
KERNELS = Path(__file__).with_name("occupancy_kernels.cu")
#: Blocks of the kernels of ``occupancy_kernels.cu``: 32 for each of the 132 SMs of an H200.
BLOCKS = 132 * 32
FLOATS = 1 << 26
THREADS = (32, 48, 64, 96, 100, 128, 160, 192, 224, 256, 320, 384, 480, 512, 640, 736, 768, 1000, 1024)
#: Bytes of dynamic shared memory, round and not: just below and above what an SM divides among its blocks.
SHARED = (1, 1000, 1024, 3000, 10_000, 13_568, 13_569, 49_152, 75_776, 75_777, 102_400, 116_224, 204_800, 232_448)
CHAINS = ((20, 96), (37, 160), (50, 224), (61, 33), (90, 128), (111, 352), (150, 64), (201, 256), (230, 96))
NEIGHBOURS = ((256, 192, 768), (1024, 192, 7000), (5000, 192, 768), (5000, 500, 20_000))
#: Rungs of other chapters, each at a size that fills the GPU. If a rung has several launches, the first is profiled.
RUNGS = {
    "copy": {"n": 1 << 26},
    "fma": {"n": 4 * 132 * 8 * 256 * 8},
    "transpose": {"rows": 4096, "cols": 4096},
    "matmul": {"m": 2048, "n": 2048, "k": 256},
    "reduction": {"n": 1 << 24},
}


@dataclass(frozen=True)
class Case:
    """One launch. ``ladder`` is empty for a kernel of ``occupancy_kernels.cu``, whose rung is its name expression."""

    ladder: str
    rung: str
    size: dict[str, int]
    threads: int = 0
    shared: int = 0

    @property
    def launches(self) -> int:
        return len(load_ladder(self.ladder)[self.rung].launches(self.size)) if self.ladder else 1

    @property
    def label(self) -> str:
        return ", ".join([f"{self.ladder} {self.rung}".strip(), *(f"{k}={v}" for k, v in self.size.items())])


def cases() -> Iterator[Case]:
    """Return the launches to profile, in order."""
    for threads in THREADS:
        yield Case("occupancy", "one_float", {"n": FLOATS, "threads": threads, "shared": 0})
    for shared in SHARED:
        yield Case("occupancy", "one_quad", {"n": FLOATS, "threads": 128, "shared": shared})
    for ladder in ("occupancy", "occupancy_fma"):
        loaded = load_ladder(ladder)
        for size in loaded.problem.recorded:
            for rung in loaded:
                yield Case(ladder, rung.name, dict(size))
    for chains, threads in CHAINS:
        yield Case("", f"chains<{chains}>", {"threads": threads, "shared": 0}, threads)
    for static, threads, shared in NEIGHBOURS:
        yield Case("", f"neighbours<{static}>", {"threads": threads, "shared": shared}, threads, shared)
    for ladder, size in RUNGS.items():
        for rung in load_ladder(ladder):
            if rung.rung.requires(size) is None:
                yield Case(ladder, rung.name, size)


def launch_all() -> None:
    """Launch every case once, through CuPy, with the profiler switched on."""
    import cupy
    from cupyx import profiler

    for case in cases():
        if case.ladder:
            ladder = load_ladder(case.ladder)
            arrays = {a.name: cupy.zeros(a.extents(case.size), dtype=a.dtype) for a in ladder.problem.arguments}
            launch = ladder[case.rung].prepare(arrays, case.size)
        else:
            module = cupy.RawModule(
                code=KERNELS.read_text(encoding="utf-8"), options=("-std=c++17",), name_expressions=(case.rung,)
            )
            function = module.get_function(case.rung)
            arrays = {name: cupy.zeros(BLOCKS * 256 * 256, dtype="float32") for name in ("source", "target")}

            def launch(function=function, arrays=arrays, case=case) -> None:
                function((BLOCKS,), (case.threads,), tuple(arrays.values()), shared_mem=case.shared)

        cupy.cuda.Device().synchronize()
        with profiler.profile():
            launch()
            cupy.cuda.Device().synchronize()
        del arrays
        cupy.get_default_memory_pool().free_all_blocks()


def profile() -> dict[str, Any]:
    """Run ncu over the child process. Raises RuntimeError with ncu's output."""
    command = [*nsight.COMMAND, "--profile-from-start", "off", "--section", "Occupancy", "--section", "LaunchStats",
               "--metrics", ",".join(m for m in METRICS.values() if not m.startswith("launch")),
               # The two sections hold the metrics that begin with "launch".
               sys.executable, "-W", "ignore", "-m", "climb.validation.profiles.occupancy"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    pages, wanted = nsight.parse(done.stdout, tuple(METRICS.values())), list(cases())
    rows = [{name: page[metric] for name, metric in METRICS.items()} for page in pages]
    first = list(itertools.accumulate((case.launches for case in wanted), initial=0))
    if done.returncode or len(rows) != first.pop():
        raise RuntimeError(
            f"ncu profiled {len(rows)} launches of {len(wanted)} kernels:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return {
        **hardware.origin(),
        "tool": nsight.version(),
        "device": hardware.device_block(),
        "metrics": METRICS,
        "points": [
            {"label": case.label, "ladder": case.ladder, "rung": case.rung, "size": case.size, "counts": rows[row]}
            for case, row in zip(wanted, first, strict=True)
        ],
    }


def record_occupancy(folder: Path | None = None) -> Path:
    """Profile every case and write the record below ``folder`` (``records/<gpu>`` by default). Raises RuntimeError."""
    data = profile()
    path = (folder or records.RECORDS / hardware.gpu_slug(data["device"]["name"])) / "profiles" / "occupancy.json"
    records.save(path, data, OccupancyRecord)
    return path


if __name__ == "__main__":  # the process that ncu profiles
    launch_all()
