"""``cp.cuda.Device`` and ``cp.cuda.Stream`` of the emulated GPUs, on which every launch ends before it returns."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn

from climb.fake_cupy import current
from climb.fake_cupy.events import Event

#: The compute capability that kernels are compiled for: that of an H100 or H200.
COMPUTE_CAPABILITY = "90"


class Device:
    """An emulated device, by default the current one. Raises CUDADriverError for a number without a device."""

    compute_capability = COMPUTE_CAPABILITY

    def __init__(self, device: int | None = None) -> None:
        self.id = current.current() if device is None else current.check(int(device))
        self._before: list[int] = []

    def synchronize(self) -> None:
        """Do nothing: all launches have ended."""

    def use(self) -> Device:
        """Make this the current device of the calling thread, and return it."""
        current.use(self.id)
        return self

    def __enter__(self) -> Device:
        self._before.append(current.current())
        return self.use()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        current.use(self._before.pop())

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

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
        """Return the stream itself."""
        return self

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no Stream.{name}; it needs a GPU")


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    """Return the default stream."""
    return Stream.null
