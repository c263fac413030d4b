"""The backend that runs kernels, chosen once, when this module is imported.

``cp`` is CuPy if CuPy imports and an NVIDIA GPU answers, otherwise :mod:`climb.fake_cupy`, which runs the same CUDA C++
on the emulator. ``WORKLOG_BACKEND=emulator`` or ``cupy`` decides instead. ``WORKLOG_TIMINGS=record`` takes timings from
the record even if there is a GPU.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

from climb.toolchain.includes import before_cupy

__all__ = [
    "Backend",
    "BackendError",
    "backend",
    "can_measure",
    "cp",
    "fallback",
    "missing_gpu",
    "missing_nvbench",
    "replaying",
]

Backend = Literal["cupy", "emulator"]


class BackendError(RuntimeError):
    """The backend that an environment variable selects is not available; the message says why and what to do."""


@dataclass(frozen=True)
class _Choice:
    backend: Backend
    module: ModuleType
    note: str = ""


def missing_gpu() -> str:
    """Return why no GPU can be used, as half a sentence; "" if one can. It asks only the driver, so it is quick."""
    library = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(library)
    except OSError:
        return f"there is no NVIDIA driver here ({library} does not load)"
    status = driver.cuInit(0)
    if status != 0:
        return f"the NVIDIA driver finds no usable GPU (cuInit gives {status})"
    count = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "the NVIDIA driver finds no GPU"
    return ""


def _choose() -> _Choice:
    wanted = os.environ.get("WORKLOG_BACKEND", "")
    if wanted not in ("", "cupy", "emulator"):
        raise BackendError(f"WORKLOG_BACKEND is {wanted!r}; expected 'cupy', 'emulator', or nothing")
    if wanted == "emulator":
        return _Choice("emulator", _fake_cupy())
    reason = missing_gpu()
    if not reason:
        try:
            before_cupy()  # Make CuPy use the emulator's compiler and headers.
            cupy = importlib.import_module("cupy")
            cupy.cuda.runtime.getDeviceCount()
            return _Choice("cupy", cupy)
        except Exception as error:  # a CuPy that is missing, broken, or made for another CUDA fails in many ways
            reason = f"there is a GPU, but CuPy does not work here ({type(error).__name__}: {error})"
    if wanted == "cupy":
        raise BackendError(
            f"WORKLOG_BACKEND=cupy asks for a GPU, but {reason}; without the variable the kernels run on the emulator"
        )
    return _Choice("emulator", _fake_cupy(), reason if reason.startswith("there is a GPU") else "")


def _fake_cupy() -> ModuleType:
    return importlib.import_module("climb.fake_cupy")


def _timings() -> Literal["record", "live", ""]:
    value = os.environ.get("WORKLOG_TIMINGS", "")
    if value not in ("record", "live", ""):
        raise BackendError(f"WORKLOG_TIMINGS is {value!r}; expected 'record' or 'live'")
    return value  # type: ignore[return-value]


_timings()  # reports a wrong value now, not in the middle of a chapter
_choice = _choose()
#: CuPy, or ``climb.fake_cupy``.
cp: Any = _choice.module
#: Which of the two ``cp`` is.
backend: Backend = _choice.backend


def replaying() -> bool:
    """Return whether timings come from the record: always on the emulator, else when ``WORKLOG_TIMINGS=record``.

    Raises BackendError if the variable is neither "record" nor "live", and for "live" on the emulator.
    """
    timings = _timings()
    if backend == "emulator" and timings == "live":
        raise BackendError("WORKLOG_TIMINGS=live asks for live timings, which need an NVIDIA GPU; there is none in use")
    return backend == "emulator" or timings == "record"


def can_measure() -> bool:
    """Return whether this machine's GPU can be timed: not while replaying, nor without NVBench.

    ``WORKLOG_TIMINGS=live`` forces live timings: anything missing then raises an error at its first use.
    """
    return not replaying() and (_timings() == "live" or _has_nvbench())


def _has_nvbench() -> bool:
    return importlib.util.find_spec("cuda.bench") is not None


def missing_nvbench() -> str:
    """Return why nothing can be timed, and what to do; "" if NVBench is installed."""
    return "" if _has_nvbench() else "NVBench's package cuda-bench is not installed; `make gpu` installs it"


def fallback() -> str:
    """Return why kernels run on the emulator although there is a GPU; "" if they do not, or if there is none."""
    return _choice.note
