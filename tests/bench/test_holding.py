"""The kernel that holds a stream back, run on the emulator, whose clock grows by 1 us with each reading."""

from __future__ import annotations

import pytest

from climb.bench.holding import Hold
from climb.emulator import Counters, Kernel

pytestmark = pytest.mark.emulated


@pytest.mark.parametrize(("nanoseconds", "readings"), [(0, 1), (1000, 1), (1001, 2), (7000, 7)])
def test_one_thread_reads_the_clock_until_the_nanoseconds_have_passed(monkeypatch, nanoseconds, readings) -> None:
    counted: list[Counters] = []
    launch = Kernel.launch
    monkeypatch.setattr(Kernel, "launch", lambda *args, **options: counted.append(launch(*args, **options)))
    Hold()(nanoseconds)
    (held,) = counted
    assert (held.grid, held.block) == ((1, 1, 1), (1, 1, 1))
    assert held.branches == readings  # one after each reading but the first, which is the start
