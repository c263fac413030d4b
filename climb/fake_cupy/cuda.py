"""``cp.cuda``: the parts of it that make sense on an emulated GPU."""

from __future__ import annotations

from typing import Any, NoReturn

from climb.fake_cupy import current, ipc
from climb.fake_cupy import nccl as nccl
from climb.fake_cupy import texture as texture
from climb.fake_cupy.device import Device as Device
from climb.fake_cupy.device import Stream as Stream
from climb.fake_cupy.device import get_current_stream as get_current_stream
from climb.fake_cupy.errors import CUDADriverError, CUDARuntimeError
from climb.fake_cupy.events import Event as Event
from climb.fake_cupy.events import get_elapsed_time as get_elapsed_time
from climb.fake_cupy.limits import LIMITS, get_limit, set_limit
from climb.fake_cupy.memory import Memory as Memory
from climb.fake_cupy.memory import MemoryPointer as MemoryPointer
from climb.fake_cupy.memory import UnownedMemory as UnownedMemory


class _Namespace:
    """``cp.cuda.runtime`` or ``cp.cuda.driver``: a few names, and an error that explains why others are missing."""

    def __init__(self, name: str, **members: Any) -> None:
        self.__dict__.update(members)
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the emulator's stand-in for CuPy has no cp.cuda.{self._name}.{name}; it needs a GPU")


runtime = _Namespace(
    "runtime",
    deviceSynchronize=lambda: None,
    getDevice=current.current,
    setDevice=current.use,
    getDeviceCount=current.count,
    deviceCanAccessPeer=lambda device, peer: int(current.check(device) != current.check(peer)),
    deviceEnablePeerAccess=current.enable_peer_access,
    ipcGetMemHandle=ipc.get_handle,
    ipcOpenMemHandle=ipc.open_handle,
    ipcCloseMemHandle=ipc.close_handle,
    deviceSetLimit=set_limit,
    deviceGetLimit=get_limit,
    **LIMITS,
    CUDARuntimeError=CUDARuntimeError,
    **texture.CONSTANTS,
)
driver = _Namespace("driver", CUDADriverError=CUDADriverError)


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"the emulator's stand-in for CuPy has no cp.cuda.{name}; it needs a GPU")
