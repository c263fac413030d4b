"""Waits at mbarriers in vain: a deadlock only if every thread has waited since something could still happen."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from climb.emulator.runtime import polls
from climb.emulator.simt.asynchronous import Asynchronous


def test_a_thread_that_has_polled_long_ago_is_not_taken_for_one_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads 0 and 1 poll, then 1 and 2: there is always one that may still arrive. Then all three poll."""

    class Found(Exception):
        pass

    def place_of(*args: object) -> None:
        raise Found

    monkeypatch.setattr(polls.faults, "place_of", place_of)
    state = Asynchronous.__new__(Asynchronous)
    state.progress()
    site = SimpleNamespace(location=SimpleNamespace(file="k.cu", line=1))
    state.values, state.initialised = np.zeros(1, np.uint64), {0: site}
    batch = SimpleNamespace(
        blocks=1, threads=3, parked={}, asynchronous=state, shared=np.zeros((1, 8), np.uint8),
        alive=lambda: np.ones((1, 3), np.bool_),
    )  # fmt: skip

    def poll(*threads: int) -> None:
        lanes = SimpleNamespace(linear=lambda: np.array(threads))
        for _ in range(polls.PATIENCE):
            polls.waited_in_vain(SimpleNamespace(batch=batch, lanes=lanes), site, np.zeros(len(threads), np.int64))

    poll(0, 1)
    poll(1, 2)
    with pytest.raises(Found):
        poll(0, 1, 2)
