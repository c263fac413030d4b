"""CUDA events on the emulator: CuPy's calls and errors, and NaN for a time, which is explained once."""

from __future__ import annotations

import math
import warnings

import pytest

from climb import fake_cupy as cp
from climb.fake_cupy import events


def recorded() -> cp.cuda.Event:
    event = cp.cuda.Event()
    event.record()
    return event


def test_time_between_events_is_nan_and_explained_once(monkeypatch):
    events._explain.cache_clear()
    with pytest.warns(UserWarning, match="says nothing about a GPU. To see a time"):
        assert math.isnan(cp.cuda.get_elapsed_time(recorded(), recorded()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isnan(cp.cuda.get_elapsed_time(recorded(), recorded()))


def test_event_is_done_at_once_on_any_stream():
    event = cp.cuda.Event(block=True)
    event.record(cp.cuda.Stream.null)
    event.synchronize()
    assert event.done
    stream = cp.cuda.Stream()
    assert stream.record(event) is event and stream.record().done
    stream.wait_event(event)


@pytest.mark.parametrize(
    ("start", "says"),
    [(cp.cuda.Event, "never recorded"), (lambda: cp.cuda.Event(disable_timing=True), "disable_timing=True")],
)
def test_event_without_a_time_is_refused_as_cuda_refuses_it(start, says):
    with pytest.raises(cp.cuda.runtime.CUDARuntimeError, match=f"cudaErrorInvalidResourceHandle.*{says}"):
        cp.cuda.get_elapsed_time(start(), recorded())


def test_what_is_no_event_is_refused():
    with pytest.raises(TypeError, match=r"expected a cp\.cuda\.Event, got float"):
        cp.cuda.get_elapsed_time(0.0, recorded())
