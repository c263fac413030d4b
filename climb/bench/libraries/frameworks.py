"""PyTorch's and CuPy's own kernels, and the CUDA driver, as peers: descriptions with the versions that are loaded."""

from __future__ import annotations

from collections.abc import Callable

from climb.bench.libraries.description import Description, describe, dotted


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


def driver(algorithm: str) -> Callable[[], Description]:
    """A peer's ``describe`` for work that the CUDA driver does itself."""

    def found() -> Description:
        import cupy as library

        return describe("CUDA driver", dotted(library.cuda.runtime.driverGetVersion(), 1000, 10), algorithm, "bytes")

    return found
