"""Runs and times the standalone cells of one chapter, in a process that has CuPy and no ladder or tool of the book.

CuPy still compiles with the locked NVRTC and its headers: they are chosen before CuPy looks for any.

:mod:`climb.bench.event_timing` starts it: it reads ``{"sources", "repetitions", "warm_seconds"}`` from standard input,
and prints the times.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import math
import sys
import time
from typing import Any

from climb.toolchain.includes import before_cupy


def time_cells(sources: list[str], repetitions: int, warm_seconds: float) -> list[list[list[float]]]:
    """Return the milliseconds of each time that a cell measured, in order: for each cell, a list per repetition.

    Each cell sees NaN, as if nothing were recorded. Raises RuntimeError if a repetition prints a different text, or
    measures a different number of times, than the first run, which compiles and is not counted.
    """
    before_cupy()
    cp: Any = importlib.import_module("cupy")
    _warm(cp, warm_seconds)
    measured = cp.cuda.get_elapsed_time
    taken: list[float] = []

    def get_elapsed_time(start_event: Any, end_event: Any) -> float:
        taken.append(float(measured(start_event, end_event)))
        return math.nan

    cp.cuda.get_elapsed_time = get_elapsed_time
    namespace: dict[str, Any] = {"__name__": "__main__", "cp": cp}
    found = []
    for number, source in enumerate(sources):
        code = compile(source, f"standalone cell {number}", "exec")
        runs = [_run(code, namespace, taken)]
        if runs[0][0]:  # a cell without a time runs once
            runs += [_run(code, namespace, taken) for _ in range(repetitions)]
        first_times, first_text = runs[0]
        for times, text in runs:
            if text != first_text or len(times) != len(first_times):
                raise RuntimeError(
                    f"standalone cell {number} gave {len(first_times)} times and {first_text!r}, "
                    f"and when it ran again {len(times)} and {text!r}"
                )
        found.append([times for times, _ in runs[1:]])
    return found


def _run(code: Any, namespace: dict[str, Any], taken: list[float]) -> tuple[list[float], str]:
    """Return the times and the text of one execution."""
    taken.clear()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return list(taken), printed.getvalue()


def _warm(cp: Any, seconds: float) -> None:
    """Keep the GPU busy, so that its clocks are up."""
    ends = time.monotonic() + seconds
    values = cp.ones(1 << 24, dtype=cp.float32) if seconds else None
    while time.monotonic() < ends:
        for _ in range(50):
            values *= 1
        cp.cuda.Device().synchronize()


if __name__ == "__main__":
    print(json.dumps(time_cells(**json.load(sys.stdin))))
