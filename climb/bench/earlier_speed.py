"""The emulator's own kernels, timed with this checkout and with an earlier commit, in turns: `climb speed --against`.

Each turn is a separate process. The best turn of a kernel counts, so that other work on the machine matters less. The
speed comes from the last column of `climb speed --kernels-only`: the speed with the number of processes that launches
use.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import geometric_mean

TURNS = 3
_READY = re.compile(r"\d+\.\d")
Bench = Callable[[Path], str]


def unpack(commit: str, repository: Path, folder: Path) -> None:
    """Write the packages of a commit to `folder`. Raises ValueError with Git's words if there is no such commit."""
    made = subprocess.run(
        ["git", "-C", repository, "archive", commit, "climb", "kernels", "pyproject.toml"], capture_output=True
    )
    if made.returncode:
        raise ValueError(made.stderr.decode(errors="replace").strip())
    with tarfile.open(fileobj=io.BytesIO(made.stdout)) as files:
        files.extractall(folder, filter="data")


def bench(folder: Path) -> str:
    """Return the output of `climb speed --kernels-only` with the package in `folder`. Raises CalledProcessError on
    failure."""
    command = [sys.executable, "-m", "climb", "speed", "--kernels-only"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def speeds(printed: str) -> dict[str, tuple[float, float]]:
    """Map each kernel to the milliseconds until it is ready, and its millions of thread-instructions per second."""
    head, *lines = (line for line in printed.splitlines() if line.strip())
    if not head.startswith("kernel") or "ready" not in head:
        raise ValueError(f"climb speed printed {head!r} first; expected the head of its table")
    found = {}
    for line in lines:
        kernel, *words = line.split()
        # The words before the first number with a decimal point describe the size.
        found[kernel] = float(next(each for each in words if _READY.fullmatch(each))), float(words[-1])
    return found


def compare(commit: str, repository: Path, run: Bench = bench) -> Iterable[str]:
    """Format a table: each kernel with the earlier commit and now. Raises ValueError for an unknown commit."""
    with tempfile.TemporaryDirectory() as name:
        earlier = Path(name)
        unpack(commit, repository, earlier)
        found = [[speeds(run(folder)) for folder in (earlier, repository)] for _ in range(TURNS)]
    yield f"{'kernel':12} {'ready ms':>20} {'M per s':>20} {'ratio':>7}"
    yield f"{'':12} {'earlier':>10}{'now':>10} {'earlier':>10}{'now':>10}"
    ratios = []
    for kernel in found[0][1]:
        if kernel not in found[0][0]:
            continue
        ready = [min(turn[side][kernel][0] for turn in found) for side in (0, 1)]
        speed = [max(turn[side][kernel][1] for turn in found) for side in (0, 1)]
        ratios.append(speed[1] / speed[0])
        yield f"{kernel:12} {ready[0]:10.1f}{ready[1]:10.1f} {speed[0]:10.0f}{speed[1]:10.0f} {ratios[-1]:7.2f}"
    yield f"{'geometric mean':54} {geometric_mean(ratios):7.2f}"
