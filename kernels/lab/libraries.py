"""What a record says of the vendor's libraries. Everything here needs a GPU and imports its library when called."""

from __future__ import annotations

from collections.abc import Callable


def cublas(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for cuBLAS, with the version that is loaded."""

    def describe() -> dict[str, str]:
        import cupy
        from cupy_backends.cuda.libs import cublas as library

        version = library.getVersion(cupy.cuda.device.get_cublas_handle())
        return _library("cuBLAS", f"{version // 10000}.{version // 100 % 100}.{version % 100}", algorithm, precision)

    return describe


def torch(algorithm: str, precision: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for PyTorch's own kernels."""

    def describe() -> dict[str, str]:
        import torch as library

        return _library("PyTorch", library.__version__, algorithm, precision)

    return describe


def driver(algorithm: str) -> Callable[[], dict[str, str]]:
    """A peer's ``describe`` for work that the CUDA driver does by itself."""

    def describe() -> dict[str, str]:
        import cupy

        version = cupy.cuda.runtime.driverGetVersion()
        return _library("CUDA driver", f"{version // 1000}.{version % 1000 // 10}", algorithm, "bytes")

    return describe


def _library(name: str, version: str, algorithm: str, precision: str) -> dict[str, str]:
    return {"name": name, "version": version, "algorithm": algorithm, "precision": precision}
