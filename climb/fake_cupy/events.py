"""``cp.cuda.Event`` and ``cp.cuda.get_elapsed_time``: events are recorded and waited for, but no time passes."""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, NoReturn

from climb.fake_cupy.errors import invalid_handle

_NO_TIME = (
    "cp.cuda.get_elapsed_time returns NaN here: the kernel ran on the emulator, and how long that took says nothing "
    "about a GPU. To see a time, run this on a machine with an NVIDIA GPU and CuPy; the book shows recorded times."
)


class Event:
    """A CUDA event. Everything before it on its stream has already run, so a recorded event is done at once."""

    ptr = 0

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self._timed, self._recorded = not disable_timing, False

    @property
    def done(self) -> bool:
        """Return whether all work before the event has ended: always True, because every launch ends before it
        returns."""
        return True

    def record(self, stream: Any = None) -> None:
        """Record the event on `stream`, by default the current one."""
        self._recorded = True

    def synchronize(self) -> None:
        """Do nothing: all work before the event has ended."""

    def check_timed(self) -> None:
        """Raise CUDARuntimeError unless the event was recorded and holds a time."""
        if not self._timed:
            raise invalid_handle("the event was made with disable_timing=True")
        if not self._recorded:
            raise invalid_handle("the event was never recorded")

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no Event.{name}; it needs a GPU")


def get_elapsed_time(start_event: Event, end_event: Event) -> float:
    """Return the milliseconds between two recorded events: NaN on the emulator, with a warning that says why, once.

    Raises CUDARuntimeError for an event that was not recorded, or that was made without timing.
    """
    for event in (start_event, end_event):
        if not isinstance(event, Event):
            raise TypeError(f"expected a cp.cuda.Event, got {type(event).__name__}")
        event.check_timed()
    _explain()
    return math.nan


@functools.cache
def _explain() -> None:
    warnings.warn(_NO_TIME, stacklevel=3)
