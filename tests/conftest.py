"""What all tests share: the repository on the import path, the `gpu` marker, and how many run at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]
pytest.register_assert_rewrite("tools.rung_checks")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `gpu` where kernels do not run on one."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from kernels.lab import cuda

    if cuda.backend != "cupy":
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one worker per core that this process may use, and no more than eight, who share one GPU."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(8, len(usable(0)) if usable else os.cpu_count() or 1)
