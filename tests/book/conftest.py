"""Fixtures that the tests of the built book share: one build for all of them, its address, and a browser."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools import browser as chromium
from tools.building import build, warnings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built book. Several workers share one build: the first builds, the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built-book"
    folder.mkdir(exist_ok=True)
    said, output = folder / "returncode", folder / "output"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            done = build(ROOT, folder)
            output.write_text(done.stdout + done.stderr, encoding="utf-8")
            said.write_text(str(done.returncode), encoding="utf-8")
    assert said.read_text(encoding="utf-8") == "0", warnings(output.read_text(encoding="utf-8"))
    return folder / "_build" / "html"


@pytest.fixture(scope="session")
def address(book: Path) -> Iterator[str]:
    """The address of the built book on this machine: its pages are below ``{address}/book/``."""
    with chromium.serve(book) as url:
        yield url


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    """A headless Chromium, shared by the tests of a worker; each test closes the pages that it opens.

    Where no browser is installed, the tests that ask for it are skipped.
    """
    if chromium.executable() is None:
        pytest.skip("needs a browser: `apt-get install chromium` installs one")
    with chromium.Browser() as one:
        yield one
