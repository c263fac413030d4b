"""The references' threads: one for each core of the host, and at least one."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from climb.bench import references


def test_as_many_bands_as_cores_are_computed_at_a_time(monkeypatch):
    """Three bands wait for each other: with fewer threads the first would wait in vain, and the barrier break."""
    monkeypatch.setattr(references.os, "cpu_count", lambda: 3)
    together = threading.Barrier(3, timeout=5)
    done = []

    def work(item: int) -> None:
        together.wait()
        done.append(item)

    references._on_all_cores(work, range(6))
    assert sorted(done) == list(range(6))


def test_a_host_that_does_not_know_its_cores_computes_all_bands(monkeypatch):
    monkeypatch.setattr(references.os, "cpu_count", lambda: None)
    monkeypatch.setattr(references, "BAND", 4)
    source = np.arange(24.0).reshape(6, 4)
    np.testing.assert_array_equal(
        references.correlate(source, np.array([[0.0, 0, 0], [0, 2, 0], [0, 0, 0]])), 2 * source
    )


def test_an_error_in_a_band_is_raised():
    def work(item: int) -> None:
        raise ArithmeticError(item)

    with pytest.raises(ArithmeticError):
        references._on_all_cores(work, range(2))
