"""A pytest plugin that writes the functions of ``climb`` that each test calls, and the time that the test takes.

``-p climb.validation.mutation.tracing`` with ``MUTATION_TRACE=<file>`` in the environment: a JSON object of the tests
by id, ``{"seconds": s, "functions": ["climb/emulator/warps.py::shuffle", ...]}``. Calls in other processes are not
traced. Kernels are translated anew: with a translation that is kept on disk, a test would not call what translates.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType

import pytest

from climb.emulator.translation import cache

ROOT = Path(__file__).resolve().parents[3]
_FOLDER = str(ROOT / "climb") + os.sep
_TESTS: dict[str, dict[str, object]] = {}


def function_name(file: str, qualname: str) -> str:
    """Return a function's name in the map: nested functions belong to the outermost, which calls them."""
    return f"{file}::{qualname.split('.<locals>')[0]}"


def pytest_configure() -> None:
    """Leave kept translations unused."""
    cache.keep = lambda name, make: make()  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Trace one test with its fixtures."""
    called: set[CodeType] = set()

    def trace(frame: FrameType, event: str, argument: object) -> None:
        called.add(frame.f_code)

    began = time.perf_counter()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        names = {
            function_name(Path(code.co_filename).relative_to(ROOT).as_posix(), code.co_qualname)
            for code in called
            if code.co_filename.startswith(_FOLDER)
        }
        _TESTS[item.nodeid] = {"seconds": round(time.perf_counter() - began, 3), "functions": sorted(names)}


def pytest_sessionfinish() -> None:
    """Write the map."""
    Path(os.environ["MUTATION_TRACE"]).write_text(json.dumps(_TESTS), encoding="utf-8")
