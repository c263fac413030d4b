"""CuPy as it is where requirements.txt alone is installed: without the libraries that its products and transforms load.

``a @ b`` of CuPy loads cuBLAS, which a reader who follows the README does not have. :func:`refuse_libraries` makes
CuPy, or the stand-in, which has no libraries to load, fail in the same way.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

#: What CuPy looks for with cuda.pathfinder and requirements.txt does not bring.
LIBRARIES = frozenset(
    {"cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse", "cusparseLt", "cutensor", "nccl", "nvJitLink"}
)
#: The functions of the stand-in for which CuPy loads a library: every product of matrices, of integers too.
NEEDS = {"dot": "cuBLAS", "matmul": "cuBLAS"}


def refuse_libraries(cp: ModuleType) -> None:
    """Make CuPy or the stand-in raise ImportError where a function needs one of `LIBRARIES`, installed or not."""
    if cp.__name__ == "cupy":
        _refuse_to_load()
    else:
        _refuse_to_compute(cp)


def _refuse_to_load() -> None:
    """CuPy imports each binding when it is first needed, after pathfinder has loaded the library."""
    pathfinder = importlib.import_module("cuda.pathfinder")
    load = pathfinder.load_nvidia_dynamic_lib

    def load_nvidia_dynamic_lib(name: str, *args: Any) -> Any:
        if name in LIBRARIES:
            raise pathfinder.DynamicLibNotFoundError(f"{name} is not in requirements.txt")
        return load(name, *args)

    pathfinder.load_nvidia_dynamic_lib = load_nvidia_dynamic_lib


def _refuse_to_compute(cp: ModuleType) -> None:
    functions = sys.modules[f"{cp.__name__}.registry"].FUNCTIONS
    for name, library in NEEDS.items():
        functions[name] = _refusal(name, library)
        setattr(cp, name, functions[name])
    compute = cp.ndarray.__array_ufunc__

    def __array_ufunc__(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc.__name__ in NEEDS:  # `a @ b` comes here too
            functions[ufunc.__name__]()
        return compute(self, ufunc, method, *inputs, **options)

    cp.ndarray.__array_ufunc__ = __array_ufunc__


def _refusal(name: str, library: str) -> Any:
    def refuse(*_: Any, **__: Any) -> Any:
        raise ImportError(
            f"CuPy's {name} needs {library}, which requirements.txt does not bring; use numpy.{name} on cp.asnumpy(...)"
        )

    return refuse
