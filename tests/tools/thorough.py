"""How much `make test` runs, and how much `make test-all`, which CI runs, adds.

`make test` has every kind of test, and every chapter. It leaves out what repeats a kind many times: machine code for
each architecture, more random sizes, more schedules. Mark such a test ``@pytest.mark.thorough``, such a parameter
``thorough(value)``, and take from :func:`choose` how many examples Hypothesis draws. :func:`first_of_each` chooses
among parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")

#: Whether pytest was called with ``--thorough``; set by ``tests/conftest.py`` before any test is imported.
enabled = False


def choose(usual: int, thorough: int) -> int:
    """One number for `make test`, another for `make test-all`."""
    return thorough if enabled else usual


def thorough(*values: object) -> object:
    """A parameter, or the tuple of parameters, of a test that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.thorough)


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
