"""NVIDIA's packages on PyPI: their folders, their versions, and the command that installs a missing one."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from pathlib import Path

#: The name on PyPI of each part of CUDA that is needed, for CUDA 12 and from CUDA 13 on. "crt" are the compiler's own
#: headers, such as crt/mma.h.
_PYPI = {
    "bindings": ("cuda-bindings", "cuda-bindings"),
    "nvrtc": ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"),
    "runtime": ("nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"),
    "cccl": ("nvidia-cuda-cccl-cu12", "nvidia-cuda-cccl"),
    "crt": ("nvidia-cuda-nvcc-cu12", "nvidia-cuda-crt"),
    "curand": ("nvidia-curand-cu12", "nvidia-curand"),
}


def pip_install(part: str, major: int) -> str:
    """Return the command that installs `part` ("bindings", "nvrtc", "runtime", "cccl", "crt" or "curand") for CUDA
    `major`."""
    name = _PYPI[part][major > 12]
    # Without a version of CUDA in the name, pip would install the newest; cuRAND has its own versions.
    return f"`pip install {name}`" if name.endswith(("-cu12", "-curand")) else f'`pip install "{name}=={major}.*"`'


def bindings_major() -> int:
    """Return the major version of the installed cuda-bindings, which NVRTC must have too; 12 if unknown."""
    from importlib import metadata  # imported here because it is slow: it loads the package email

    try:
        return int(metadata.version("cuda-bindings").split(".")[0])
    except (metadata.PackageNotFoundError, ValueError):
        return 12


@functools.cache
def compiler_versions() -> list[str]:
    """Return name and version of each installed package that NVRTC and CUDA's headers may come from."""
    from importlib import metadata

    found = []
    for part in ("nvrtc", "runtime", "cccl", "nvcc", "crt"):
        for package in (f"nvidia-cuda-{part}-cu12", f"nvidia-cuda-{part}"):
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.append(f"{package} {metadata.version(package)}")
    return found


def preload(part: str) -> Path | None:
    """Load a library of the CUDA version of cuda-bindings from its package, so that every later search finds that one.

    ``part`` is "nvrtc", "nvjitlink" or "cuda_runtime". If packages of two CUDA versions are installed, e.g. PyTorch's
    beside the book's, cuda.pathfinder takes a library that is loaded already, and otherwise the newest. Returns the
    file, or None if no package holds one, for instance if the toolkit is installed without pip.
    """
    major = bindings_major()
    stem = {"nvrtc": "nvrtc", "nvjitlink": "nvJitLink", "cuda_runtime": "cudart"}[part]
    places = ((part if part.startswith("cuda") or part == "nvjitlink" else f"cuda_{part}"), f"cu{major}")
    for root in site_packages():
        for place in places:
            found = root / "nvidia" / place / "lib" / f"lib{stem}.so.{major}"
            if found.is_file():
                ctypes.CDLL(str(found))
                return found
    return None


def site_packages() -> list[Path]:
    """Return the folders of Python's search path in which pip has put packages of NVIDIA (the folder `nvidia`)."""
    return [Path(entry) for entry in dict.fromkeys(sys.path) if entry and Path(entry, "nvidia").is_dir()]
