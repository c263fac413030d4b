"""How much `make test` runs, and how much `make test-all`, which CI runs, adds.

`make test` has every kind of test, and every chapter. It leaves out what repeats a kind many times: machine code for
each architecture, more random sizes, more schedules. Mark such a test ``@pytest.mark.thorough``, such a parameter
``thorough(value)``, and take from :func:`choose` how many examples Hypothesis draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:  # pytest reads this module before it knows which tests it runs
    from climb import BoundRung

#: Whether pytest was called with ``--thorough``; set by ``tests/conftest.py`` before any test is imported.
enabled = False


def choose(usual: int, thorough: int) -> int:
    """One number for `make test`, another for `make test-all`."""
    return thorough if enabled else usual


def thorough(*values: object) -> object:
    """A parameter, or the tuple of parameters, of a test that only `make test-all` runs."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def last_of_each_ladder(rungs: Iterable[BoundRung]) -> pytest.MarkDecorator:
    """Parametrise a test by ``rung``: by the last rung of each ladder, and in `make test-all` by all of them."""
    rungs = list(rungs)
    last = {rung.ladder.name: rung.name for rung in rungs}
    values = [rung if rung.name == last[rung.ladder.name] else thorough(rung) for rung in rungs]
    return pytest.mark.parametrize("rung", values, ids=lambda rung: f"{rung.ladder.name}-{rung.name}")
