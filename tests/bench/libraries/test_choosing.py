"""The time by which the fastest of a library's ways is chosen, on a double of CuPy's events."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from climb.bench.libraries.choosing import FLUSH, cold_seconds


class Gpu:
    """A GPU on which work passes time: ``now`` in milliseconds."""

    def __init__(self) -> None:
        self.now, self.filled, self.last = 0.0, 0, None
        gpu = self

        class Event:
            at: float | None = None
            done = False

            def record(self) -> None:
                self.at, gpu.last = gpu.now, self

            def synchronize(self) -> None:
                self.done = True

        class Array:
            def __init__(self, elements: int) -> None:
                self.bytes = 4 * elements

            def fill(self, value: float) -> None:
                gpu.now += 1000.0
                gpu.filled += self.bytes

        def elapsed(start: Event, stop: Event) -> float:
            assert start.at is not None and stop.at is not None and stop.done
            return stop.at - start.at

        self.cupy = SimpleNamespace(
            empty=lambda elements, dtype: Array(elements),
            float32="float32",
            cuda=SimpleNamespace(Event=Event, get_elapsed_time=elapsed),
        )


def test_the_time_of_a_launch_is_the_median_between_its_events_after_l2_was_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu, taken = Gpu(), iter((3.0, 7.0, 2.0))
    monkeypatch.setitem(sys.modules, "cupy", gpu.cupy)

    def launch() -> None:
        assert gpu.filled == FLUSH
        gpu.filled = 0
        gpu.now += next(taken)

    assert cold_seconds(launch, launches=3) == pytest.approx(3e-3)
