"""What all tests share: the repository on the import path, the markers, and how many run at a time."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]
pytest.register_assert_rewrite("tools.rung_checks", "tools.corners")
# Thousands of tests and parsed kernels live as long as the run: looking for cycles among them takes a tenth of it.
gc.set_threshold(100_000, 50, 100)


#: What each marker asks for: the backend, and why a test without it is skipped.
_NEEDS = {
    "gpu": ("cupy", "needs an NVIDIA GPU"),
    "emulated": ("emulator", "runs what is wrong, which only the emulator survives"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what is marked `gpu` where kernels run on the emulator, and what is marked `emulated` where they do not."""
    marked = [(item, marker) for item in items for marker in _NEEDS if item.get_closest_marker(marker)]
    if not marked:
        return
    from climb.bench import cuda

    for item, marker in marked:
        backend, reason = _NEEDS[marker]
        if cuda.backend != backend:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one worker per core that this process may use, and no more than eight, who share one GPU."""
    usable = getattr(os, "sched_getaffinity", None)
    return min(8, len(usable(0)) if usable else os.cpu_count() or 1)
