"""What Nsight Compute counted on a GPU for the chapter on bank conflicts: committed as data, made by this command.

``python -m kernels.exercises.profiles.bank_conflicts`` on a machine with a GPU and ``ncu`` profiles every rung of the
transpose at its two large sizes, and the tiled transpose with tiles of several widths, and writes
``bank_conflicts.json`` beside this file (or the file that its argument names). The chapter reads it with
:func:`load_profile`, and a test compares the hashes in it with today's kernels.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernels.exercises.bank_conflicts import exhibit
from kernels.lab import cp, load_ladder
from kernels.lab.problem import Size

PROFILE = Path(__file__).with_name("bank_conflicts.json")
LARGE = {"rows": 16384, "cols": 16384}
ODD = {"rows": 16383, "cols": 16381}
#: Widths of the tile's row in floats. Lane l's word of a column lies pitch * l words on, so gcd(pitch, 32) lanes meet.
PITCHES = (33, 34, 36, 40, 48, 32)
#: Launches of one width, of which the profile holds each one's time.
REPEATS = 5
#: Short names of the counters, and what Nsight Compute calls them.
METRICS = {
    "seconds": "gpu__time_duration.sum",
    "cycles": "sm__cycles_elapsed.max",
    "pipe_wavefronts": "l1tex__data_pipe_lsu_wavefronts.sum",
    "pipe_percent": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "shared_load_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "instructions": "smsp__inst_executed.sum",
    "issue_percent": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_written_bytes": "dram__bytes_write.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    "l2_write_misses": "lts__t_sectors_op_write_lookup_miss.sum",
}


@dataclass(frozen=True)
class Planned:
    """One kernel to profile: its name and size, the hash of its source, how often it is launched, and the launch."""

    name: str
    size: Size
    source_sha256: str
    repeats: int
    launch: Callable[[Any, Any], None]


def plan() -> Iterator[Planned]:
    """Every kernel of the profile, in the order in which they are launched. Needs no GPU."""
    ladder = load_ladder("transpose")
    for size in (LARGE, ODD):
        for rung in ladder:
            yield Planned(
                rung.name, size, rung.sha256(size), 1, lambda source, target, rung=rung: rung(source, out=target)
            )
    digest = hashlib.sha256(exhibit("pitch").encode()).hexdigest()
    for pitch in PITCHES:
        yield Planned(
            f"pitch {pitch}",
            LARGE,
            digest,
            REPEATS,
            lambda source, target, pitch=pitch: _launch_pitch(pitch, source, target),
        )


def _launch_pitch(pitch: int, source: Any, target: Any) -> None:
    name = f"transpose_pitch<{pitch}>"
    module = cp.RawModule(code=exhibit("pitch"), options=("-std=c++17",), name_expressions=(name,))
    rows, cols = source.shape
    grid = (-(-cols // 32), -(-rows // 32))
    module.get_function(name)(grid, (32, 8), (source, target, np.int32(rows), np.int32(cols)))


def launch_all() -> None:
    """Launch the plan on the GPU: this is what runs under ``ncu``. Raises ValueError for a wrong result."""
    for one in plan():
        source = cp.random.random((one.size["rows"], one.size["cols"]), dtype=cp.float32)
        target = cp.empty(source.shape[::-1], dtype=cp.float32)
        for _ in range(one.repeats):
            one.launch(source, target)
        if not bool((target == source.T).all()):
            raise ValueError(f"{one.name} at {dict(one.size)} does not transpose")


def read_csv(text: str) -> list[dict[str, float]]:
    """The counters of each launch in the order of the launches, from what ``ncu --csv --print-units base`` prints."""
    rows = csv.DictReader(text[text.index('"ID"') :].splitlines())
    short = {metric: name for name, metric in METRICS.items()}
    found: dict[int, dict[str, float]] = {}
    for row in rows:
        value = float(row["Metric Value"].replace(",", ""))
        name = short[row["Metric Name"]]
        found.setdefault(int(row["ID"]), {})[name] = value / 1e9 if name == "seconds" else value
    for launched, counters in found.items():
        if missing := METRICS.keys() - counters.keys():
            raise ValueError(f"launch {launched} has no {', '.join(sorted(missing))}")
    return [found[launched] for launched in sorted(found)]


def assemble(counted: list[dict[str, float]], device: dict[str, Any], tool: str, date: str) -> dict[str, Any]:
    """The profile as it is stored: one entry per kernel of the plan, with the counters of each of its launches."""
    kernels, position = [], 0
    for one in plan():
        launches = counted[position : position + one.repeats]
        position += one.repeats
        kernels.append(
            {"name": one.name, "size": dict(one.size), "source_sha256": one.source_sha256, "launches": launches}
        )
    if position != len(counted):
        raise ValueError(f"the plan has {position} launches, but {len(counted)} were counted")
    return {"date": date, "device": device, "tool": tool, "metrics": METRICS, "kernels": kernels}


def load_profile(path: Path = PROFILE) -> dict[str, Any]:
    """The committed profile."""
    return json.loads(path.read_text(encoding="utf-8"))


def counted(name: str, size: Size, counter: str) -> float:
    """One counter of one kernel, the median over its launches. Raises LookupError for a kernel that is not there."""
    for kernel in load_profile()["kernels"]:
        if kernel["name"] == name and kernel["size"] == dict(size):
            return float(np.median([launch[counter] for launch in kernel["launches"]]))
    raise LookupError(f"no kernel '{name}' at {dict(size)} in {PROFILE.name}")


def main(arguments: list[str]) -> int:
    """Profile, and write the file; with the argument ``launch`` only launch."""
    if arguments == ["launch"]:
        launch_all()
        return 0
    ncu = shutil.which("ncu")
    if ncu is None:
        print("Nsight Compute's ncu is not on the PATH; it comes with the CUDA toolkit", file=sys.stderr)
        return 2
    from kernels.lab.hardware import device_block

    done = subprocess.run(
        [ncu, "--clock-control", "none", "--kernel-name", "regex:transpose", "--csv", "--print-units", "base",
         "--metrics", ",".join(METRICS.values()), sys.executable, "-m", __spec__.name, "launch"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        return 1
    version = subprocess.run([ncu, "--version"], capture_output=True, text=True, check=True).stdout.split("Version ")[1]
    profile = assemble(
        read_csv(done.stdout), device_block(), f"ncu {version.split()[0]}", datetime.date.today().isoformat()
    )
    path = Path(arguments[0]) if arguments else PROFILE
    path.write_text(json.dumps(profile, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.name}: {len(profile['kernels'])} kernels")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
