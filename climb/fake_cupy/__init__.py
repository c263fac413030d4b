"""A stand-in for CuPy that needs no GPU: arrays in emulated device memory, and CUDA C++ that runs on the emulator.

It has the calls of CuPy that the book uses, with CuPy's signatures, and raises an error where CuPy does, so code that
runs here also runs on CuPy. It also refuses mistakes that CuPy silently accepts, such as an argument whose size differs
from the kernel's parameter.
"""

from __future__ import annotations

from typing import NoReturn

import numpy as _np

from climb.fake_cupy import cuda as cuda
from climb.fake_cupy import functions as functions
from climb.fake_cupy.arrays import ndarray as ndarray
from climb.fake_cupy.raw_module import RawKernel as RawKernel
from climb.fake_cupy.raw_module import RawModule as RawModule
from climb.fake_cupy.registry import FUNCTIONS as _FUNCTIONS

# fmt: off
_SCALARS = (
    "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intc", "uintc", "intp",
    "float16", "float32", "float64", "complex64", "complex128", "dtype", "newaxis", "nan", "inf", "pi", "e",
)
# fmt: on

globals().update(_FUNCTIONS)
globals().update({_name: getattr(_np, _name) for _name in _SCALARS})

# The missing names that are requested most, and what to do instead.
_INSTEAD = {
    "random": "make random numbers with numpy.random.default_rng(seed) and copy them with cp.asarray",
    "fft": "it needs a GPU, or use numpy.fft on cp.asnumpy(...)",
    "linalg": "it needs a GPU, or use numpy.linalg on cp.asnumpy(...)",
    "ElementwiseKernel": "it needs a GPU; write the kernel as a RawKernel to run it here",
    "ReductionKernel": "it needs a GPU; write the kernel as a RawKernel to run it here",
    "testing": "compare with numpy.testing on cp.asnumpy(...)",
}


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    instead = _INSTEAD.get(name, f"it needs a GPU, or use numpy.{name} on cp.asnumpy(...)")
    if not hasattr(_np, name) and name not in _INSTEAD:
        instead = "it needs a GPU"
    raise AttributeError(f"the emulator's stand-in for CuPy has no cp.{name}; {instead}")


def __dir__() -> list[str]:
    return sorted(name for name in globals() if not name.startswith("_"))
