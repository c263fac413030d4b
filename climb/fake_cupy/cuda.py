"""``cp.cuda``: as much of it as makes sense for an emulated GPU, on which every launch has ended when it returns."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NoReturn

from climb.fake_cupy import texture as texture
from climb.fake_cupy.memory import Memory as Memory
from climb.fake_cupy.memory import MemoryPointer as MemoryPointer

#: The compute capability that kernels are compiled for, that of an H100 or H200.
COMPUTE_CAPABILITY = "90"


class CUDADriverError(RuntimeError):
    """What the CUDA driver would refuse. The message begins with the driver's name for it."""


class Device:
    """The one emulated device."""

    id = 0
    compute_capability = COMPUTE_CAPABILITY

    def __init__(self, device: int | None = None) -> None:
        if device not in (None, 0):
            raise CUDADriverError(f"CUDA_ERROR_INVALID_DEVICE: there is one emulated device, number 0, not {device}")

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def use(self) -> Device:
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
    """The one stream; what is put on it has been done."""

    null: Stream
    ptr = 0

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing is left to wait for."""

    def use(self) -> Stream:
        return self

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        pass

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no Stream.{name}; it needs a GPU")


Stream.null = Stream(null=True)


def get_current_stream() -> Stream:
    return Stream.null


class _Namespace:
    """``cp.cuda.runtime`` or ``cp.cuda.driver``: a few names, and a clear word about the others."""

    def __init__(self, name: str, **members: Any) -> None:
        self.__dict__.update(members)
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no cp.cuda.{self._name}.{name}; it needs a GPU")


runtime = _Namespace(
    "runtime",
    deviceSynchronize=lambda: None,
    getDevice=lambda: 0,
    getDeviceCount=lambda: 1,
    **texture.CONSTANTS,
)
driver = _Namespace("driver", CUDADriverError=CUDADriverError)

_INSTEAD = {
    "Event": "a time on the emulator would say nothing about a GPU; climb has the times of the record",
}


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    instead = _INSTEAD.get(name, "it needs a GPU")
    raise AttributeError(f"the emulator's stand-in for CuPy has no cp.cuda.{name}; {instead}")
