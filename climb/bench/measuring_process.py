"""The parent's view of the process that measures: ``bench_child`` in its own session, and its results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from climb.paths import IMPORT_ROOT

_MEANWHILE_S = 3.0
#: The exit status of a measuring process whose GPU no longer responds.
LOST_GPU = 86


def run_child(spec: Path, out: Path, meanwhile: Callable[[], object] | None = None) -> int:
    """Run ``bench_child`` in its own session and return its exit status; an interruption kills it.

    ``meanwhile`` is called every few seconds.
    """
    command = [sys.executable, "-m", "climb.bench.bench_child", str(spec), str(out)]
    child = subprocess.Popen(command, cwd=IMPORT_ROOT, start_new_session=True)
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(timeout=None if meanwhile is None else _MEANWHILE_S)
            if meanwhile is not None:
                meanwhile()
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def read_outcomes(path: Path, count: int) -> list[dict[str, Any] | None]:
    """Read each target's result, None if the child did not reach it. A line that was cut off is ignored."""
    found: list[dict[str, Any] | None] = [None] * count
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(ValueError):
                index, result = json.loads(line)
                found[index] = result
    return found


def log_tail(out: Path, lines: int = 25) -> str:
    """The end of NVBench's log, for a message."""
    log = out / "nvbench.log"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return "NVBench's log ends:\n" + "\n".join(text.splitlines()[-lines:]) if text else "NVBench logged nothing"
