"""The hardware's own counters, read with Nsight Compute: ``climb profile LADDER ...`` on a GPU with ``ncu``.

The emulator counts a kernel's requests. Only the hardware knows how its caches serve them (hits, bytes that reach DRAM,
cycles in which a unit was busy). The command profiles each rung at each recorded size and at those of ``ALSO``, cold,
and writes ``records/<gpu>/hardware/<ladder>.json``: of a rung with several launches, the counts of the longest. A
chapter reads it with ``hardware_counters(ladder)``, which refuses the counts of a kernel that has changed since.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climb.bench import hardware, records
from climb.bench.ladder import BoundRung, Ladder
from climb.bench.problem import Size, size_label
from climb.bench.records.kinds import HardwarePoint, HardwareRecord
from climb.bench.registry import load_ladder
from climb.bench.stalls import STALL_METRICS

_COMMAND = "climb profile"
#: The counters by their names in the record: Nsight Compute's name and the unit of each.
METRICS: dict[str, tuple[str, str]] = {
    "load_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "requests"),
    "load_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sectors"),
    "load_sectors_hit_l1": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", "sectors"),
    "load_tag_wavefronts": ("l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum", "wavefronts"),
    "load_data_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_lgds_cmd_read.sum", "wavefronts"),
    "store_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "requests"),
    "store_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sectors"),
    "shared_load_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "wavefronts"),
    "shared_atomics": ("smsp__inst_executed_op_shared_atom.sum", "warp instructions"),
    "shared_atomic_wavefronts": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum", "wavefronts"),
    "reduction_requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum", "requests"),
    "reduction_sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum", "sectors"),
    "l1_data_busy": ("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", "% of cycles"),
    "l2_sectors_asked": ("lts__t_sectors_srcunit_tex_op_read.sum", "sectors"),
    "l2_sectors_filled": ("lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum", "sectors"),
    "l2_write_sectors": ("lts__t_sectors_op_write.sum", "sectors"),
    "l2_write_misses": ("lts__t_sectors_op_write_lookup_miss.sum", "sectors"),
    "l2_busy": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", "% of cycles"),
    "dram_busy": ("dram__cycles_active.avg.pct_of_peak_sustained_elapsed", "% of cycles"),
    "dram_bytes_read": ("dram__bytes_read.sum", "bytes"),
    "dram_bytes_written": ("dram__bytes_write.sum", "bytes"),
    "instructions": ("smsp__inst_executed.sum", "warp instructions"),
    "fused_multiply_adds": ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "thread instructions"),
    "multiplications": ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum", "thread instructions"),
    "additions": ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum", "thread instructions"),
    "issue_busy": ("smsp__issue_active.avg.pct_of_peak_sustained_active", "% of cycles"),
    "dispatch_stalls": (
        "smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio",
        "warps that the dispatcher held back, per instruction issued",
    ),
    "warps_eligible": ("smsp__warps_eligible.avg.per_cycle_active", "warps of a scheduler that could issue, per cycle"),
    "warp_cycles_per_instruction": (
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "cycles that a warp spends per instruction that it issues",
    ),
    "cycles": ("gpc__cycles_elapsed.max", "cycles of the SM clock"),
    "sm_cycles_least": ("sm__cycles_active.min", "cycles, of the SM that was busy for the shortest time"),
    "sm_cycles_most": ("sm__cycles_active.max", "cycles, of the SM that was busy for the longest time"),
    "nanoseconds": ("gpu__time_duration.sum", "ns, under the profiler"),
    **STALL_METRICS,
}

#: Further sizes to profile, by ladder: each differs from a recorded size in one respect.
ALSO: dict[str, tuple[dict[str, int], ...]] = {
    # Rows whose length is not a multiple of 32 floats: the same sectors and lines, other banks.
    "matmul": (
        *({"m": 512, "n": 512, "k": k} for k in (513, 514, 516, 520, 528, 544)),
        {"m": 4096, "n": 4096, "k": 4097},
    ),
    # A quarter of the memory, and strides that are not multiples of 32 floats.
    "strided": (
        *({"n": 1 << 22, "stride": stride} for stride in (16, 32, 64)),
        *({"n": 1 << 24, "stride": stride} for stride in (33, 65)),
    ),
}

#: Sizes to profile instead of the recorded ones, because a first rung is too slow to replay for each counter.
INSTEAD: dict[str, tuple[dict[str, Any], ...]] = {
    "conv1d": ({"i": 1024, "o": 1024, "l": 4, "k": 5},),
    "conv1d_channels": tuple({"i": 1024, "o": 1024, "l": 4, "k": 5, "channels": c} for c in (1, 2, 4, 8, 16)),
    "histogram": (
        *({"n": 1 << 18, "bins": 256, "data": data} for data in ("uniform", "constant", "zipf")),
        {"n": 1 << 28, "bins": 256, "data": "uniform"},
    ),
    # At a batch of one, each rung is a single launch, except those that zero the output first.
    "classifier": (
        {"inputs": 25088, "outputs": 4096, "batch": 1},
        {"inputs": 4096, "outputs": 1024, "batch": 1},
    ),
    "sgemm": ({"m": 4096, "n": 4096, "k": 4096},),
    # Radii that the caches serve, and one that saturates L1.
    "stencil1d": tuple({"n": 1 << 26, "radius": radius} for radius in (1, 4, 32)),
    "conv2d": tuple({"rows": 8192, "cols": 8192, "k": k, "k_cols": k, "border": "zero"} for k in (3, 11)),
    "stencil2d": tuple({"rows": 8192, "cols": 8192, "radius": radius} for radius in (1, 3)),
    "conv3d": ({"n": 256, "k": 7}, {"n": 96, "k": 11}),
    # One size of each kind of bound; the other sizes repeat them, at the cost of minutes of replaying.
    "tgemm": tuple({"m": n, "n": n, "k": n, "data": "normal"} for n in (4096, 1024)),
    "convlayer_tensor": tuple(
        {"n": n, "c_in": c, "c_out": c, "k": 3, "batch": batch} for n, c, batch in ((224, 64, 1), (14, 512, 1))
    ),
    "unet": ({"batch": 1, "width": 256},),
}


@dataclass(frozen=True)
class HardwareCounters:
    """The counters of one ladder on one GPU. ``at(rung, size)["dram_bytes_read"]``; units as in ``METRICS``."""

    ladder: Ladder
    gpu: str
    date: str
    command: str
    points: tuple[HardwarePoint, ...]

    def at(self, rung: str, size: Size) -> dict[str, int | float]:
        """The counts of one rung at one size.

        Raises PendingRung when there are none, or when they are stale, and KeyError for a name that is no rung.
        """
        return self._point(rung, size).counts

    def launches_at(self, rung: str, size: Size) -> tuple[tuple[str, int | float], ...]:
        """The kernel and the nanoseconds of each launch of one rung at one size, in order.

        Raises PendingRung as :meth:`at` does, and for an older record, which counted all launches together.
        """
        launches = self._point(rung, size).launches
        if not launches:
            raise records.PendingRung(f"{rung}'s launches were counted together; on that GPU: {self.command}")
        return launches

    def _point(self, rung: str, size: Size) -> HardwarePoint:
        bound = self.ladder[rung]
        for point in self.points:
            if point.name == rung and point.size == dict(size):
                if point.source_sha256 != bound.sha256(size):
                    raise records.PendingRung(
                        f"stale hardware counters of {rung}: the kernel has changed; on that GPU: {self.command}"
                    )
                return point
        raise records.PendingRung(f"no hardware counters of {rung} at {size_label(size)}; on that GPU: {self.command}")


def hardware_counters(ladder: str | Ladder, gpu: str = records.DEFAULT_GPU) -> HardwareCounters:
    """Read the committed counters of a ladder, those of renamed rungs under today's names.

    Raises LookupError if there are none, and RecordError.
    """
    ladder = load_ladder(ladder) if isinstance(ladder, str) else ladder
    path = counters_path(ladder.name, records.gpu_with(f"hardware/{ladder.name}.json", gpu))
    if not path.exists():
        raise LookupError(f"no hardware counters of {ladder.name} on {gpu}; on that GPU: {_COMMAND} {ladder.name}")
    found = records.load(path, HardwareRecord)
    points = records.under_todays_names(found.points, ladder)
    return HardwareCounters(ladder, found.device["name"], found.date, found.command, points)


def counters_path(ladder: str, gpu: str = records.DEFAULT_GPU, folder: Path | None = None) -> Path:
    """The file of a ladder's counters; ``folder`` replaces ``records/<gpu>``."""
    return (folder or records.RECORDS / gpu) / "hardware" / f"{ladder}.json"


def cases(ladder: Ladder) -> Iterator[tuple[BoundRung, Size]]:
    """List the profiled cases, in order: every rung at every recorded size and at the sizes of ``ALSO``, or of
    ``INSTEAD``."""
    also = ALSO.get(ladder.name, ())
    for size in INSTEAD.get(ladder.name, (*ladder.problem.recorded, *also)):
        for rung in ladder:
            if rung.rung.requires(size) is None:
                yield rung, dict(size)


def _kernels(rung: BoundRung, size: Size) -> list[str]:
    """List the kernels of a rung's launches, in order, without template arguments."""
    return [launch.kernel.split("<")[0] for launch in rung.launches(size)]


def launch_all(ladder: Ladder) -> None:
    """Launch each case once. Inputs are zeros, or the problem's inputs if it has kinds of data, whose values matter."""
    from climb.bench.alignment import aligned
    from climb.bench.cuda import cp

    for rung, size in cases(ladder):
        arrays = {a.name: cp.zeros(a.extents(size), dtype=a.dtype) for a in ladder.problem.arguments}
        if ladder.problem.kinds:
            arrays |= {name: cp.asarray(values) for name, values in ladder.inputs(size).items()}
        rung.prepare({name: aligned(array) for name, array in arrays.items()}, size)()
        cp.cuda.Device().synchronize()
        del arrays
        cp.get_default_memory_pool().free_all_blocks()


def profile(name: str) -> dict[str, Any]:
    """Run ``ncu`` on a child process that launches all cases of a ladder. Raises RuntimeError with ncu's output."""
    ladder = load_ladder(name)
    wanted = [(rung, size, _kernels(rung, size)) for rung, size in cases(ladder)]
    launched = [kernel for *_, kernels in wanted for kernel in kernels]
    if not launched:
        raise RuntimeError(f"{name}: the ladder has no recorded sizes, and climb.bench.profiling none to profile it at")
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
               "--cache-control", "all", "--kernel-name", f"regex:^({'|'.join(sorted(set(launched)))})",
               "--metrics", ",".join(name for name, _ in METRICS.values()),
               sys.executable, "-m", "climb.bench.profiling", name]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = parse(done.stdout)
    if done.returncode or len(rows) != len(launched):
        said = done.stdout[-2000:] + done.stderr[-2000:]
        raise RuntimeError(f"ncu profiled {len(rows)} of {len(launched)} launches:\n{said}")
    counted = iter(rows)
    points = [_recorded(rung, size, kernels, [next(counted) for _ in kernels]) for rung, size, kernels in wanted]
    return {
        "ladder": ladder.name,
        "command": f"{_COMMAND} {name}",
        **hardware.origin(),
        "device": hardware.device_block(),
        "metrics": {name: list(metric) for name, metric in METRICS.items()},
        "points": points,
    }


def _recorded(rung: BoundRung, size: Size, kernels: list[str], rows: list[dict[str, float]]) -> dict[str, Any]:
    """Make the record of one case from the counts of its launches."""
    longest = max(rows, key=lambda counts: counts["nanoseconds"])
    times = [[kernel, counts["nanoseconds"]] for kernel, counts in zip(kernels, rows, strict=True)]
    hashed = rung.sha256(size)
    return {"name": rung.name, "size": size, "source_sha256": hashed, "counts": longest, "launches": times}


def parse(text: str) -> list[dict[str, float]]:
    """Parse the counts of each launch from ncu's raw page as CSV, whole numbers as int.

    Raises KeyError for a metric that ncu did not report.
    """
    lines = [line for line in text.splitlines() if line.startswith('"')]
    table = list(csv.DictReader(lines))[1:]  # the row under the head holds units
    return [{name: _number(row[metric]) for name, (metric, _) in METRICS.items()} for row in table]


def _number(text: str) -> float:
    value = float(text.replace(",", ""))
    return int(value) if value.is_integer() else value


def record_counters(name: str, folder: Path | None = None) -> Path:
    """Profile a ladder and write its counters below ``folder`` (``records/<gpu>`` by default). Raises RuntimeError."""
    data = profile(name)
    path = counters_path(data["ladder"], hardware.gpu_slug(data["device"]["name"]), folder)
    records.save(path, data, HardwareRecord)
    return path


if __name__ == "__main__":  # the process that ncu profiles
    launch_all(load_ladder(sys.argv[1]))
