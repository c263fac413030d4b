"""Launch kernels through the driver, one after the other: the program that compute-sanitizer checks.

It runs as a script and needs only the standard library, so that it starts quickly. It prints each launch. After an
error that may have destroyed the context, the program ends.
"""

from __future__ import annotations

import ctypes
import pickle
import sys
from pathlib import Path
from typing import Any

#: Errors of a launch that the driver refused, which leave the context intact.
HARMLESS = ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "CUDA_ERROR_INVALID_CONFIGURATION")


class DriverError(RuntimeError):
    """A failed call of the driver; the message is the name of the error."""


class Driver:
    """The driver, with the primary context of device 0."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *args: Any) -> None:
        """Call a function of the driver. Raises DriverError."""
        status = getattr(self.cuda, name)(*args)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise DriverError((text.value or b"").decode() or f"error {status}")

    def spoilt(self) -> bool:
        """Return whether the context is destroyed, so that no kernel can be launched."""
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
        # The driver also reads arguments that a faulty launch omits: it finds zeros there.
        spare = ctypes.create_string_buffer(64)
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (*held, spare, spare)]
        parameters = (ctypes.c_void_p * len(pointers))(*pointers)
        sizes = [ctypes.c_uint(each) for each in (*what["grid"], *what["block"], what["shared"])]
        self.call("cuLaunchKernel", function, *sizes, None, parameters, None)
        self.call("cuCtxSynchronize")


def main(launches: list[dict[str, Any]]) -> None:
    """Launch all kernels, up to the first error that destroys the context."""
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
