"""``cp.cuda.Device`` and ``cp.cuda.Stream`` of the one emulated GPU, on which every launch ends before it returns."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn

from climb.fake_cupy.errors import CUDADriverError
from climb.fake_cupy.events import Event

#: The compute capability that kernels are compiled for: that of an H100 or H200.
COMPUTE_CAPABILITY = "90"


class Device:
    """The one emulated device, number 0. Raises CUDADriverError for any other number."""

    id = 0
    compute_capability = COMPUTE_CAPABILITY

    def __init__(self, device: int | None = None) -> None:
        if device not in (None, 0):
            raise CUDADriverError(f"CUDA_ERROR_INVALID_DEVICE: there is one emulated device, number 0, not {device}")

    def synchronize(self) -> None:
        """Do nothing: all launches have ended."""

    def use(self) -> Device:
        """The device itself, which is always the current one."""
        return self

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def __int__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "<CUDA Device 0>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no Device.{name}; it needs a GPU")


class Stream:
    """A stream. All streams are alike, because everything on them has already run."""

    null: Stream
    ptr = 0

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        pass

    def synchronize(self) -> None:
        """Do nothing: all launches have ended."""

    def record(self, event: Event | None = None) -> Event:
        """Record `event`, or a new one, on this stream, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Do nothing: all work before the event has ended."""

    def use(self) -> Stream:
        """The stream itself."""
        return self

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no Stream.{name}; it needs a GPU")


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    """The default stream."""
    return Stream.null
