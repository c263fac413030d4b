"""PyTorch's and CuPy's own kernels, and the CUDA driver, as peers: descriptions with the versions that are loaded."""

from __future__ import annotations

from collections.abc import Callable

from climb.bench.libraries.description import Description, describe, dotted
from climb.bench.problem import PeerUnavailable


def pytorch(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for PyTorch's own kernels."""

    def found() -> Description:
        import torch

        return describe("PyTorch", torch.__version__, algorithm, precision)

    return found


def cupy(algorithm: str, precision: str) -> Callable[[], Description]:
    """A peer's ``describe`` for CuPy's own kernels."""

    def found() -> Description:
        import cupy as library

        return describe("CuPy", library.__version__, algorithm, precision)

    return found


def load_cublas_of_cupy() -> None:
    """Load the cuBLAS that CuPy asks for before any product, of integers too. Raises :class:`PeerUnavailable`.

    Neither lock brings it: CuPy's binding is of CUDA 12, and PyTorch's cuBLAS of CUDA 13.
    """
    try:
        from cupy_backends.cuda.libs import cublas  # noqa: F401 - the import loads the library
    except ImportError as error:
        raise PeerUnavailable(
            "CuPy loads libcublas.so.12 for every product, and here it does not load; cupy-cuda12x[ctk] brings it, "
            f"where no cuBLAS of CUDA 13 is installed ({error})"
        ) from error


def driver(algorithm: str) -> Callable[[], Description]:
    """A peer's ``describe`` for work that the CUDA driver does itself."""

    def found() -> Description:
        import cupy as library

        return describe("CUDA driver", dotted(library.cuda.runtime.driverGetVersion(), 1000, 10), algorithm, "bytes")

    return found
