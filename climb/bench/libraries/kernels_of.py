"""The kernels that a launch runs, by the names that CUPTI reports through PyTorch's profiler.

It runs outside any timed region: tracing slows launches down, and ends before the first sample is taken.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any


def kernels_of(launch: Callable[[], None]) -> tuple[str, ...]:
    """Return the names of the kernels, copies and fills of one launch, in the order in which they start.

    A name that comes several times in a row is followed by `` x 3``. Empty without PyTorch.
    """
    try:
        import torch
        from torch.profiler import ProfilerActivity, profile
    except ImportError:
        return ()
    # Release CUPTI at the end, so that it does not slow the launches that are timed afterwards.
    os.environ.setdefault("TEARDOWN_CUPTI", "1")
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        launch()
        torch.cuda.synchronize()
    return names_of(trace.events())


def names_of(events: Iterable[Any]) -> tuple[str, ...]:
    """Return the names of the events that ran on the GPU, by their start, with runs of one name counted."""
    on_gpu = [event for event in events if "CUDA" in str(event.device_type)]
    names: list[tuple[str, int]] = []
    for event in sorted(on_gpu, key=lambda event: event.time_range.start):
        if names and names[-1][0] == event.name:
            names[-1] = (event.name, names[-1][1] + 1)
        elif not event.name.startswith(("Activity Buffer", "Context Sync", "Stream ", "Event Sync")):
            names.append((event.name, 1))
    return tuple(name if times == 1 else f"{name} x {times}" for name, times in names)
