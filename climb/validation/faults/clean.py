"""Run every rung under the tools of compute-sanitizer, which should report nothing.

``climb sanitize clean`` launches the rungs of every ladder on a GPU, at the small size of the agreement, and writes
``records/<gpu>/emulator/clean.json`` with a row for each ladder.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from climb.bench import hardware, records
from climb.validation.agreement.measuring import Step, launch_all, prepare, read_prepared
from climb.validation.faults import TOOLS, clean_path
from climb.validation.faults.measuring import OPTIONS, sanitizer_version
from climb.validation.schema import CleanRecord

#: Processes that share the ladders under one tool: few, since importing takes longer than launching.
GROUPS = 4
_REPORT = re.compile(r"^========= (?!COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY| )(\S.*)$")
_LAUNCH = re.compile(r"^launch (\S+) (.*)$")


def code_of(codes: Iterable[str]) -> str:
    """Return the hash of all that a ladder launches, made from the hashes of its launches."""
    return hashlib.sha256("".join(sorted(codes)).encode()).hexdigest()


def codes_by_ladder(counted: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the hashes of each ladder's launches, from the ``rungs`` of a record of the agreement."""
    found: dict[str, list[str]] = {}
    for one in counted:
        found.setdefault(one["ladder"], []).append(one["code_sha256"])
    return found


def read(said: str) -> dict[str, dict[str, Any]]:
    """Read the output of compute-sanitizer and of the launches.

    Returns, by ladder, the number of `launches`, the number of reports (`errors`) and the first report (`says`). A
    report belongs to the launch before it.
    """
    found: dict[str, dict[str, Any]] = {}
    ladder = where = ""
    for line in said.splitlines():
        launched = _LAUNCH.match(line)
        if launched:
            ladder, where = launched[1], launched[2]
            found.setdefault(ladder, {"launches": 0, "errors": 0, "says": ""})["launches"] += 1
        report = _REPORT.match(line)
        if report:
            one = found.setdefault(ladder, {"launches": 0, "errors": 0, "says": ""})
            one["errors"] += 1
            one["says"] = one["says"] or f"{where}: {report[1]}"
    return found


def under(tool: str, steps: Sequence[Step], folder: Path, seconds: float) -> dict[str, dict[str, Any]]:
    """Return the findings of a tool, by ladder, on the launches that it reached within `seconds`.

    A tool that ends the process with its report has not seen the launches after it: the next rungs run in another
    process. What is left of the same rung needs what the ended launch would have written, and counts as not reached.
    """
    end = time.monotonic() + seconds
    found: dict[str, dict[str, Any]] = {}
    left = list(steps)
    while left:
        said, finished = _output(tool, left, folder, end - time.monotonic())
        reached = 0
        for ladder, one in read(said).items():
            reached += one["launches"]
            before = found.setdefault(ladder, {"launches": 0, "errors": 0, "says": ""})
            says = before["says"] or one["says"]
            found[ladder] = {**{key: before[key] + one[key] for key in ("launches", "errors")}, "says": says}
        if not finished or not _ends_with_report(said):
            break
        left = left[next((at for at in range(reached, len(left)) if left[at].first), len(left)) :]
    return found


def _output(tool: str, steps: Sequence[Step], folder: Path, seconds: float) -> tuple[str, bool]:
    """Return what the tool and the launches print within `seconds`, and whether the process has ended by then."""
    file = folder / f"{tool}_{steps[0].names['ladder']}.pickle"
    file.write_bytes(pickle.dumps(list(steps)))
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "1000", *OPTIONS.get(tool, ()),
               sys.executable, "-m", "climb.validation.faults.clean", str(file)]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=max(seconds, 1))
        return done.stdout + done.stderr, True
    except subprocess.TimeoutExpired as late:
        out = late.stdout or b""
        print(f"{tool}: {file.name} did not finish within {seconds:.0f} s")
        return out.decode() if isinstance(out, bytes) else out, False


def _ends_with_report(said: str) -> bool:
    """Return whether the last launch has a report."""
    last = [line for line in said.splitlines() if _LAUNCH.match(line) or _REPORT.match(line)][-1:]
    return bool(last and _REPORT.match(last[0]))


def shares(ladders: dict[str, list[Step]], number: int) -> list[list[Step]]:
    """Divide whole ladders into at most `number` shares with similar numbers of launches."""
    out: list[list[Step]] = [[] for _ in range(min(number, len(ladders)))]
    for steps in sorted(ladders.values(), key=len, reverse=True):
        min(out, key=len).extend(steps)
    return out


def measure(ladders: dict[str, list[Step]], seconds: float) -> list[dict[str, Any]]:
    """Run every ladder under every tool, for at most `seconds`. Returns a row for each ladder."""
    start = time.monotonic()
    found: dict[str, dict[str, Any]] = {name: {} for name in ladders}
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(GROUPS * len(TOOLS)) as pool:
        left = seconds - (time.monotonic() - start)
        jobs = [
            (tool, pool.submit(under, tool, share, Path(name), left))
            for share in shares(ladders, GROUPS)
            for tool in TOOLS
        ]
        for tool, job in jobs:
            for ladder, said in job.result().items():
                if ladder in found and said["launches"] == len(ladders[ladder]):
                    found[ladder][tool] = said
                elif said["errors"] or ladder not in found:
                    print(f"{tool}: {ladder}: {said}")
    return [
        {
            "ladder": ladder,
            "rungs": len({step.names["rung"] for step in steps}),
            "launches": len(steps),
            "code_sha256": code_of(step.code for step in steps),
            "tools": {tool: {key: found[ladder][tool][key] for key in ("errors", "says")} for tool in found[ladder]},
        }
        for ladder, steps in sorted(ladders.items())
    ]


def child(steps: Sequence[Step]) -> None:
    """Launch the steps for compute-sanitizer: every array is its own allocation, and outputs are uninitialised."""
    import cupy

    cupy.cuda.set_allocator(None)
    with contextlib.suppress(ImportError):
        # The first call of these bindings asks the driver for functions that it may not have, which memcheck reports.
        from cuda.bindings import driver

        driver.cuDriverGetVersion()

    def announce(step: Step) -> None:
        print(f"launch {step.names['ladder']} {step.names['rung']} {step.names['launch']}", flush=True)

    launch_all(steps, announce, cupy.empty)


def record_clean(
    ladders: Sequence[str] = (), seconds: float = 600, folder: Path | None = None, prepared: Path | None = None
) -> tuple[Path, list[dict[str, Any]]]:
    """Run the rungs of all ladders, or of those named, and write a row for each below ``folder`` (``records/<gpu>``).

    The rows of other ladders stay. Returns the file, and the rows with a report or with a tool that has not finished.
    """
    steps = read_prepared(prepared) if prepared else prepare(["rungs"], ladders)
    asked: dict[str, list[Step]] = {}
    for step in steps["rungs"]:
        asked.setdefault(step.names["ladder"], []).append(step)
    device = hardware.device_block()
    path = clean_path(hardware.gpu_slug(device["name"]), folder)
    rows = measure(asked, seconds)
    kept = rows_with_tools(records.load(path, CleanRecord)) if ladders and path.exists() else []
    data = {
        **hardware.origin(),
        "tool": sanitizer_version(),
        "device": device,
        "ladders": sorted([*(row for row in kept if row["ladder"] not in asked), *rows], key=lambda row: row["ladder"]),
    }
    records.save(path, data, CleanRecord)
    return path, [row for row in rows if not _is_clean(row)]


def rows_with_tools(record: CleanRecord) -> list[Any]:
    """Return the rows, each with the version of the tool that it is by, so that a later version's can join them."""
    return [{**row, "tool": row.get("tool", record["tool"])} for row in record["ladders"]]


def _is_clean(row: dict[str, Any]) -> bool:
    return len(row["tools"]) == len(TOOLS) and not any(said["errors"] for said in row["tools"].values())


if __name__ == "__main__":  # the process that compute-sanitizer checks
    child(pickle.loads(Path(sys.argv[1]).read_bytes()))
