"""The choice of tests that `make test` runs, and of those that `make test-all`, which CI runs, adds.

`make test` has every chapter, and every kind of test of kernels, bench and emulator. It leaves out repetitions of a
kind: machine code for each architecture, more random sizes, more schedules. And it leaves out what takes seconds and
changes rarely: the package in an environment of its own, the stubs of `climb new`, CUDA's large headers, a book with
an address, axe on the built pages, the scripts of search, playgrounds, boxes and steppers in a browser. Mark such a
test ``@pytest.mark.thorough``, such a parameter ``thorough(value)``, and take from :func:`choose` how many examples
Hypothesis draws. :func:`first_of_each` and :func:`sparse` choose among parameters.

A test that repeats a kind for hundreds of rungs is marked ``@pytest.mark.in_turn`` too, or ``in_turn(value)``: with
``--in-turns``, which `make test-all` passes, a run has a twelfth of those tests. Which one depends on what the
repository contains, so a run can be repeated, and all of them have had their turn after a few changes. ``--thorough``
alone runs every test.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

#: Whether pytest was called with ``--thorough``; set by ``tests/conftest.py`` before any test is imported.
enabled = False
#: Folders of tests whose functions have many cases of one kind, which change with the tools alone.
SAMPLED = {"emulator", "kernels", "toolchain", "validation"}
#: Of how many cases of a kind `make test` has one.
EVERY = 4
#: The parts that tests marked ``in_turn`` are divided into.
TURNS = 12
#: The part that this run has; None for all of them. Set by ``tests/conftest.py`` too.
turn: int | None = None


def choose(usual: int, thorough: int) -> int:
    """One number for `make test`, another for `make test-all`."""
    return thorough if enabled else usual


def thorough(*values: object) -> object:
    """A parameter, or the tuple of parameters, of a test that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def in_turn(*values: object) -> object:
    """A parameter, or the tuple of parameters, of a test that only a twelfth of the runs of `make test-all` have."""
    return pytest.param(*values, marks=(pytest.mark.thorough, pytest.mark.in_turn))


def sparse(values: Iterable[T], every: int = EVERY, unpack: bool = False) -> list[T | object]:
    """Values of a parameter, many of a kind: `make test` takes each ``every``-th, `make test-all` all.

    With ``unpack`` each value is the tuple of several parameters.
    """
    return [
        value if number % every == 0 else thorough(*value) if unpack else thorough(value)  # type: ignore[misc]
        for number, value in enumerate(values)
    ]


def repetitions(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The cases of tests in the folders of SAMPLED that ``--sampled``, which `make test` passes, leaves out.

    Every fourth case of a function remains. Functions of which some cases are marked have chosen for themselves.
    """
    cases: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        folders = item.path.parts[:-1]
        if item.path.name != "test_rungs.py" and "tests" in folders and set(folders) & SAMPLED:
            cases.setdefault((item.path, item.nodeid.partition("[")[0]), []).append(item)
    whole = (found for found in cases.values() if not any(one.get_closest_marker("thorough") for one in found))
    return {one for found in whole for number, one in enumerate(found) if number % EVERY}


def turn_of(root: Path) -> int:
    """The part whose turn it is in a repository: a number below TURNS, from the text of its code and kernels."""
    digest = hashlib.sha256()
    for folder in ("climb", "kernels", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", ".cu", ".cuh"):
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return int.from_bytes(digest.digest()[:8], "big") % TURNS


def has_its_turn(name: str) -> bool:
    """Return whether a test marked ``in_turn`` belongs to the part that this run has. Its name alone decides."""
    return turn is None or zlib.crc32(name.encode()) % TURNS == turn


def first_of_each(values: Iterable[T], *keys: Callable[[T], Hashable], unpack: bool = False) -> list[T | object]:
    """Values of a parameter: `make test` takes each that is the first with one of its keys, `make test-all` all.

    With ``unpack`` each value is the tuple of several parameters. Values that are marked already stay as they are.
    """
    seen: set[tuple[int, Hashable]] = set()
    out: list[T | object] = []
    for value in values:
        if hasattr(value, "marks"):  # it is marked already
            out.append(value)
            continue
        new = {(number, key(value)) for number, key in enumerate(keys)} - seen
        seen |= new
        out.append(value if new else thorough(*value) if unpack else thorough(value))  # type: ignore[misc]
    return out
