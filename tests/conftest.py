"""Set up all tests: the repository on the import path, the markers, what `--thorough` adds, how many workers run."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [path for path in (str(ROOT),) if path not in sys.path]
pytest.register_assert_rewrite("tools.rung_checks", "tools.corners")
# Thousands of tests and parsed kernels live as long as the run; searching them for cycles would take a tenth of it.
gc.set_threshold(100_000, 50, 100)

# Tests run beside each other, and some replace parts of the emulator, which workers would not know of.
os.environ.setdefault("CLIMB_WORKERS", "1")
# After each product of matrices, OpenBLAS's threads wait for the next one in a loop, for 20 ms of CPU, and here other
# tests need the cores. To be set before NumPy is imported; chapters' kernels inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: The backend that each marker needs, and why a test is skipped without it.
_NEEDS = {
    "gpu": ("cupy", "needs an NVIDIA GPU"),
    "emulated": ("emulator", "is about kernels on the emulator, which survives wrong ones"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="run the tests marked `thorough` too")
    parser.addoption("--sampled", action="store_true", help="leave out repetitions in the tools' tests; as `make test`")
    parser.addoption("--in-turns", action="store_true", help="run an eighth of the tests marked `in_turn`, as CI does")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the tests how thorough to be before any of them is imported. Measure what each kind of test costs."""
    from tools import bill, thorough, warm_kernels

    thorough.enabled = config.getoption("--thorough") or "CLIMB_THOROUGH" in os.environ
    thorough.turn = thorough.turn_of(ROOT) if thorough.enabled and config.getoption("--in-turns") else None
    config.pluginmanager.register(bill.Bill(), "bill")
    if hasattr(config, "workerinput"):
        _begin_elsewhere(config)
    if config.getoption("nbval", default=False):
        warm_kernels.install()
        warm_kernels.persist()


def _begin_elsewhere(config: pytest.Config) -> None:
    """Let each worker begin with another folder of tests. In a fresh clone, the assertions of every file have to be
    rewritten, which is kept for all workers: in step with each other, all would do that for the same file."""
    whole = [at for at, one in enumerate(config.args) if Path(config.invocation_params.dir, one) == ROOT / "tests"]
    if len(whole) == 1:
        parts = sorted(str(path) for path in (ROOT / "tests").glob("[a-z]*") if path.name != "conftest.py")
        number, workers = int(config.workerinput["workerid"][2:]), config.workerinput["workercount"]
        first = len(parts) * number // workers
        config.args[whole[0] : whole[0] + 1] = [*parts[first:], *parts[:first]]


#: Begins with a build of the book, for which other tests wait: chapters run on the other workers meanwhile.
_BUILDS = "test_accessibility.py"
#: Folders of tests that start processes and compile much, some of them for ten seconds.
_LONG = ("validation", "cli")


def _place(item: pytest.Item) -> int:
    """A file's place among the others: the first that builds the book; chapters, which take long; then files that wait
    for the built book; then long files, and the checks of rungs. Short files at the end leave no worker alone."""
    folder, file = item.path.parent.name, item.path.name
    first = [file == _BUILDS, file.endswith(".ipynb"), folder == "book", folder in _LONG, file == "test_rungs.py", True]
    return first.index(True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out repetitions and tests marked `thorough` unless asked for, and those marked `in_turn` that have no turn.
    Begin with files that take long, so that no worker is left with one at the end.

    Skip tests marked `gpu` where kernels run on the emulator, and tests marked `emulated` where they do not.
    """
    from tools import thorough

    items.sort(key=lambda item: (_place(item), item.path))
    if thorough.enabled:
        left_out = {one for one in items if one.get_closest_marker("in_turn") and not thorough.has_its_turn(one.nodeid)}
    else:
        left_out = {one for one in items if one.get_closest_marker("thorough")}
        if config.getoption("--sampled"):
            left_out |= thorough.repetitions(items)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [one for one in items if one not in left_out]
    marked = [(item, marker) for item in items for marker in _NEEDS if item.get_closest_marker(marker)]
    if not marked:
        return
    from climb.bench import cuda

    for item, marker in marked:
        backend, reason = _NEEDS[marker]
        if cuda.backend != backend:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_unconfigure() -> None:
    """End the process that forks chapters' kernels, so that its CPU time counts for this one."""
    from tools import warm_kernels

    warm_kernels.close()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """Leave out what is still alive when pytest searches for garbage at the end, which would take seconds."""
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Give `-n auto` a worker for each core that this process may use, at least two, and at most eight, which share one
    GPU.

    One more would fill the time in which others wait for a browser or a page, but costs more: each worker imports
    everything and starts a browser, and the cores' caches hold less for each.
    """
    usable = getattr(os, "sched_getaffinity", None)
    return max(2, min(8, len(usable(0)) if usable else os.cpu_count() or 1))
