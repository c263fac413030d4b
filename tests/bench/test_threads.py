"""Threads that compute on large arrays: one for each core of the host, and at least one."""

from __future__ import annotations

import threading
import time

import pytest

from climb.bench import threads
from climb.bench.threads import on_all_cores


@pytest.mark.parametrize(("cores", "items"), [(2, 2), (3, 6)])
def test_as_many_items_as_cores_are_computed_at_a_time(monkeypatch, cores, items):
    """Items wait for each other: with fewer threads the first would wait in vain, and the barrier break."""
    monkeypatch.setattr(threads.os, "cpu_count", lambda: cores)
    together = threading.Barrier(cores, timeout=10)

    def work(item: int) -> int:
        together.wait()
        return 10 * item

    assert on_all_cores(work, range(items)) == [10 * item for item in range(items)]


def test_no_more_threads_run_than_asked_for(monkeypatch):
    monkeypatch.setattr(threads.os, "cpu_count", lambda: 8)
    names = on_all_cores(lambda item: threading.current_thread().name, range(50), most=2)
    assert len(set(names)) <= 2 and threading.current_thread().name not in names


def test_a_host_that_does_not_know_its_cores_computes_all_items_in_one_thread(monkeypatch):
    monkeypatch.setattr(threads.os, "cpu_count", lambda: None)
    assert on_all_cores(abs, [-1, -2]) == [1, 2]
    names = on_all_cores(lambda item: time.sleep(0.001) or threading.current_thread().name, range(20))
    assert len(set(names)) == 1


def test_one_item_is_computed_by_the_caller_and_no_item_by_nobody():
    assert on_all_cores(lambda item: threading.current_thread(), [1]) == [threading.current_thread()]
    assert on_all_cores(abs, []) == []


@pytest.mark.parametrize("items", [1, 2])
def test_an_error_of_an_item_is_raised(items):
    def work(item: int) -> None:
        raise ArithmeticError(item)

    with pytest.raises(ArithmeticError):
        on_all_cores(work, range(items))
