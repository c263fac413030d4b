"""How much `make test` runs, and how much `make test-all`, which CI runs, adds.

`make test` has every kind of test, and every chapter. It leaves out what repeats a kind many times: machine code for
each architecture, more random sizes, more schedules. Mark such a test ``@pytest.mark.thorough``, such a parameter
``thorough(value)``, and take the number of Hypothesis's examples from :func:`examples`.
"""

from __future__ import annotations

import pytest

#: Whether pytest was called with ``--thorough``; set by ``tests/conftest.py`` before any test is imported.
enabled = False


def examples(few: int, many: int) -> int:
    """``few`` examples in `make test`, ``many`` in `make test-all`."""
    return many if enabled else few


def thorough(*values: object) -> object:
    """A parameter, or the tuple of parameters, of a test that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.thorough)
