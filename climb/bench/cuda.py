"""Where the kernels run: one decision, made once, when this module is imported.

``cp`` is CuPy where CuPy imports and an NVIDIA GPU answers, else the stand-in of :mod:`climb.fake_cupy`, which
runs the same CUDA C++ on the emulator. ``WORKLOG_BACKEND=emulator`` or ``cupy`` decides instead;
``WORKLOG_TIMINGS=record`` makes timings come from the record even where there is a GPU.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

__all__ = ["Backend", "BackendError", "announce", "backend", "cp", "describe", "replaying"]

Backend = Literal["cupy", "emulator"]


class BackendError(RuntimeError):
    """The backend that an environment variable asks for cannot be had; the message says why and what can be done."""


class RecordLike(Protocol):
    """What `describe` needs of a record: :class:`climb.bench.records.Record` has it."""

    date: str

    @property
    def gpu(self) -> str: ...


@dataclass(frozen=True)
class _Choice:
    backend: Backend
    module: ModuleType
    note: str = ""


def missing_gpu() -> str:
    """Why no GPU can be used, as half a sentence; "" if one can. Asks the driver alone, so it is quick."""
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


_timings()  # a wrong value is said now, not in the middle of a chapter
_choice = _choose()
#: CuPy, or its stand-in.
cp: Any = _choice.module
#: Which of the two ``cp`` is.
backend: Backend = _choice.backend


def replaying() -> bool:
    """Whether timings come from the record: always on the emulator, else when ``WORKLOG_TIMINGS=record``.

    Raises BackendError for another value of the variable than "record" or "live", and for "live" on the emulator.
    """
    timings = _timings()
    if backend == "emulator" and timings == "live":
        raise BackendError("WORKLOG_TIMINGS=live asks for live timings, which need an NVIDIA GPU; there is none in use")
    return backend == "emulator" or timings == "record"


def describe(record: RecordLike | None = None) -> str:
    """Where kernels run and where timings come from, in one sentence without its full stop.

    ``record`` is the one that timings are replayed from; if None, the newest of the reference GPU is named.
    """
    if backend == "cupy":
        properties = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
        said = f"running on {properties['name'].decode()} through CuPy {_short(cp.__version__)}"
    else:
        said = "running on the emulator"
        if _choice.note:
            said += f" ({_choice.note})"
    return f"{said}; {_replayed(record)}" if replaying() else said


def announce(record: RecordLike | None = None) -> None:
    """Print :func:`describe`: the first line that a chapter prints."""
    print(describe(record))


def _replayed(record: RecordLike | None) -> str:
    gpu, date = (record.gpu, record.date) if record is not None else _newest_record()
    if not gpu:
        return "there is no record yet to replay timings from"
    return f"timings replayed from the record of {_article(gpu)} {gpu}, {date[:10]}"


def _newest_record() -> tuple[str, str]:
    """Name of the reference GPU and date of its newest record; ("", "") if there is none."""
    from climb.bench import records  # its ladders import this module

    found = [
        json.loads(path.read_text(encoding="utf-8")) for path in (records.RECORDS / records.DEFAULT_GPU).glob("*.json")
    ]
    newest = max((r for r in found if "device" in r), key=lambda r: r["date"], default=None)
    return (newest["device"]["name"], newest["date"]) if newest else ("", "")


def _article(noun: str) -> str:
    """Which article goes before a GPU's name; NVIDIA is spoken with a vowel first."""
    return "an" if noun[:1] in "AEIO" or noun.startswith("NVIDIA") else "a"


def _short(version: str) -> str:
    return version.removesuffix(".0")
