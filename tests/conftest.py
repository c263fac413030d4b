"""What all tests share: the repository on the import path, the `gpu` marker, and how many run at a time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell workers what to run together, and skip what is marked `gpu` where kernels do not run on one."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked:
        return
    from kernels.lab import cuda

    if cuda.backend != "cupy":
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


def _group(item: pytest.Item) -> str:
    """What one worker runs, in order: a file, or of the rungs those of one ladder, whose kernels it compiles once."""
    if item.path.name != "test_rungs.py" or "[" not in item.name:
        return item.path.name
    return "rungs of " + item.name.partition("[")[2].partition("-")[0].rstrip("]")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one worker per core that this process may use, and no more than eight, who share one GPU."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(8, len(usable(0)) if usable else os.cpu_count() or 1)
