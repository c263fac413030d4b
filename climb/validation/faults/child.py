"""Launch kernels through the driver, one after the other: the program that compute-sanitizer looks at.

It is run as a script and needs the standard library only, so that it starts quickly. Each launch is announced; where
the driver says more than that a launch is wrong its context may be spoilt, and the program ends.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any

#: What the driver says of a launch that it never began.
HARMLESS = ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_INVALID_CONFIGURATION")


class DriverError(RuntimeError):
    """A call of the driver that failed: its message is the name of the error."""


class Driver:
    """The driver, with a context."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: Any) -> None:
        """Raises DriverError."""
        status = getattr(self.cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError((text.value or b"").decode() or f"error {status}")

    def spoilt(self) -> bool:
        """Whether nothing can be launched any more."""
        return bool(self.cuda.cuCtxSynchronize())

    def launch(self, what: dict[str, Any]) -> None:
        """Launch the kernel `what["kernel"]` of `what["cubin"]` and wait. Arguments are ("array", bytes), ("fresh",
        size), ("freed", size), ("null", 0) or ("number", bytes). Raises DriverError."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), what["cubin"])
        self.call("cuModuleGetFunction", ctypes.byref(function), module, what["kernel"].encode())
        held = []
        for kind, value in what["args"]:
            if kind == "number":
                held.append(ctypes.create_string_buffer(value, max(len(value), 8)))
                continue
            address = ctypes.c_uint64(0)
            if kind != "null":
                size = len(value) if kind == "array" else value
                self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
                if kind == "array":
                    self.call("cuMemcpyHtoD_v2", address, value, ctypes.c_size_t(size))
                if kind == "freed":
                    self.call("cuMemFree_v2", address)
            held.append(address)
        # An argument that was forgotten is read all the same: there it finds zeros.
        spare = ctypes.create_string_buffer(64)
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (*held, spare, spare)]
        parameters = (ctypes.c_void_p * len(pointers))(*pointers)
        sizes = [ctypes.c_uint(each) for each in (*what["grid"], *what["block"], what["shared"])]
        self.call("cuLaunchKernel", function, *sizes, None, parameters, None)
        self.call("cuCtxSynchronize")


def main(launches: list[dict[str, Any]]) -> None:
    """Launch them all, as far as possible."""
    driver = Driver()
    for what in launches:
        print(f"\nlaunch {what['kernel']}", flush=True)
        try:
            driver.launch(what)
        except DriverError as error:
            print(f"\ndriver {what['kernel']} {error}", flush=True)
            if str(error) not in HARMLESS and driver.spoilt():
                return


if __name__ == "__main__":
    main(pickle.loads(Path(sys.argv[1]).read_bytes()))
