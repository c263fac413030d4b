"""The bill of a test run: CPU seconds by kind of test, printed after a long run.

`make test` has a budget of CPU time (``ARCHITECTURE.md``). Seconds of CPU, of all processes together, do not depend on
how many cores there are and on what else runs, as times by the clock do. The bill fails nothing: it shows who adds
tests what they cost.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator

import pytest

from tools import warm_kernels

#: Runs that take less print no bill: CPU seconds.
LEAST = 60.0
BROWSER = "the browser"
REST = "starting, collecting and reporting"


def cpu_seconds() -> float:
    """User and system time of this process, of its children that have ended and of chapters' kernels that have."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system + warm_kernels.spent


def kind_of(nodeid: str) -> str:
    """``book``, a folder of ``tests``, or the checks that every rung has to pass."""
    path = nodeid.split("::")[0]
    if path.endswith("/test_rungs.py"):
        return "tests/kernels, rungs"
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "tests" and len(parts) > 2 else parts[0]


class Bill:
    """A plugin of pytest: each worker measures its tests, and the process that the workers report to adds them up."""

    def __init__(self, clock: Callable[[], float] = cpu_seconds) -> None:
        self.spent: Counter[str] = Counter()
        self._clock, self._since = clock, clock()
        self._last = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, nextitem: pytest.Item | None) -> Generator[None, object, object]:
        self._since, self._last = self._clock(), nextitem is None
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = self._clock()
        report.cpu_seconds, self._since = now - self._since, now
        report.closes = self._last and report.when == "teardown"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up. A browser ends with the last test of its worker, and only then is its time known."""
        kind = BROWSER if getattr(report, "closes", False) else kind_of(report.nodeid)
        self.spent[kind] += getattr(report, "cpu_seconds", 0.0)

    def lines(self, total: float) -> list[str]:
        """The bill, most expensive kind first; ``total`` are the CPU seconds of the whole run."""
        kinds = [(kind, seconds) for kind, seconds in self.spent.most_common() if seconds >= 0.1]
        rows = [*kinds, (REST, total - sum(self.spent.values())), ("all together", total)]
        return [f"{seconds:8.1f}  {kind}" for kind, seconds in rows]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        total = self._clock()
        if total >= LEAST:
            terminalreporter.section("CPU seconds")
            for line in self.lines(total):
                terminalreporter.line(line)
