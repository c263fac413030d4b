"""NVIDIA's compiler library NVRTC: loading it, its version, and its calls with their status checked."""

from __future__ import annotations

import functools
from types import ModuleType

from climb.toolchain.errors import ToolchainError
from climb.toolchain.packages import bindings_major, pip_install, preload


@functools.cache
def library() -> ModuleType:
    """Return the module `cuda.bindings.nvrtc`, with the library behind it loaded.

    Raises ToolchainError, naming the package to install, if either is missing.
    """
    preload("nvrtc")
    try:
        from cuda.bindings import nvrtc
    except ImportError as error:
        raise ToolchainError(
            f"compiling CUDA needs the package cuda-bindings, which cannot be imported ({error}); "
            f"install it with {pip_install('bindings', 12)}"
        ) from None
    try:
        nvrtc.nvrtcVersion()
    except Exception as error:  # the bindings raise various types for a library that is missing
        first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ToolchainError(
            f"compiling CUDA needs NVIDIA's compiler library NVRTC, which cannot be loaded ({first_line}); "
            f"install it with {pip_install('nvrtc', bindings_major())}"
        ) from None
    return nvrtc


@functools.cache
def nvrtc_version() -> tuple[int, int]:
    """Return major and minor version of the NVRTC in use. Raises ToolchainError if there is none."""
    status, major, minor = library().nvrtcVersion()
    check(status, "nvrtcVersion")
    return major, minor


def check(status: object, call: str) -> None:
    """Raise ToolchainError unless `status`, which NVRTC returned from `call`, means success."""
    if int(status) != 0:  # type: ignore[call-overload]
        raise ToolchainError(f"NVRTC: {call} failed with {getattr(status, 'name', status)}")


def fetch(size_of: object, read: object, program: object) -> bytes:
    """Fetch a result of `program`, by the two calls that NVRTC has for each: its size in bytes, then its content."""
    status, size = size_of(program)  # type: ignore[operator]
    check(status, "asking for a size")
    if not size:
        return b""  # a virtual architecture has no machine code
    # The bindings write into the buffer, and Python shares every bytes object of length one: pass a bytearray.
    buffer = bytearray(max(size, 2))
    check(read(program, buffer)[0], "reading a result")  # type: ignore[operator]
    return bytes(buffer[:size])
