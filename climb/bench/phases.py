"""The time spent measuring, by phase: for each point, and in total."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator


class Phases:
    """Seconds of wall time by phase. A phase is timed by ``with phases("check"):``; time between phases is "other"."""

    def __init__(self) -> None:
        self._all: dict[str, float] = {}
        self._point: dict[str, float] = {}
        self._begun = self._first = time.monotonic()

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            taken = time.monotonic() - start
            for seconds in (self._all, self._point):
                seconds[name] = seconds.get(name, 0.0) + taken

    def next_point(self) -> None:
        """Begin a new point."""
        self._point, self._begun = {}, time.monotonic()

    def point(self) -> str:
        """The time spent on the current point: ``1.2 s: 0.4 case, 0.3 check, 0.5 sample``. Phases under 0.05 s are left
        out."""
        return _said(self._point, time.monotonic() - self._begun, least=0.05)

    def total(self) -> str:
        """The time spent so far in total, in the format of ``point``."""
        return _said(self._all, time.monotonic() - self._first, least=0.0)


def _said(seconds: dict[str, float], whole: float, least: float) -> str:
    parts = {**seconds, "other": whole - sum(seconds.values())}
    text = ", ".join(f"{taken:.1f} {name}" for name, taken in parts.items() if taken >= least)
    return f"{whole:.1f} s: {text}" if text else f"{whole:.1f} s"
