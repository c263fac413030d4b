"""Launch one kernel through the driver and print its error: the program that compute-sanitizer looks at.

It is run as a script and needs the standard library only, so that it starts quickly some hundred times.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any


class DriverError(RuntimeError):
    """A call of the driver that failed: its message is the name of the error."""


def launch(what: dict[str, Any]) -> None:
    """Launch kernel `k` of `what["cubin"]` and wait. Arguments are ("array", bytes), ("fresh", size), ("freed", size),
    ("null", 0) or ("number", bytes). Raises DriverError."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *args: Any) -> None:
        status = getattr(cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError((text.value or b"").decode() or f"error {status}")

    device, context, module, function = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), what["cubin"])
    call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
    held = []
    for kind, value in what["args"]:
        if kind == "number":
            held.append(ctypes.create_string_buffer(value, max(len(value), 8)))
            continue
        address = ctypes.c_uint64(0)
        if kind != "null":
            size = len(value) if kind == "array" else value
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
            if kind == "array":
                call("cuMemcpyHtoD_v2", address, value, ctypes.c_size_t(size))
            if kind == "freed":
                call("cuMemFree_v2", address)
        held.append(address)
    # An argument that was forgotten is read all the same: there it finds zeros.
    spare = ctypes.create_string_buffer(64)
    pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (*held, spare, spare)]
    parameters = (ctypes.c_void_p * len(pointers))(*pointers)
    sizes = [ctypes.c_uint(each) for each in (*what["grid"], *what["block"], what["shared"])]
    call("cuLaunchKernel", function, *sizes, None, parameters, None)
    call("cuCtxSynchronize")


if __name__ == "__main__":
    try:
        launch(pickle.loads(Path(sys.argv[1]).read_bytes()))
    except DriverError as error:
        print(f"\ndriver: {error}", flush=True)
