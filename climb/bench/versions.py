"""Compare the installed packages with the locks: a record must use the locked versions or say what differs.

``requirements.txt`` and ``requirements-gpu.txt`` are the locks. A different compiler changes machine code; a different
library changes a peer. If this package is installed outside a checkout, it has no locks to compare with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from climb import paths
from climb.bench.records import Point

LOCKS = ("requirements.txt", "requirements-gpu.txt")
#: The compiler of the book's kernels, by the name of its package in the lock.
COMPILER = "nvidia-cuda-nvrtc-cu12"
#: The other packages that a record's numbers depend on, by name.
MEASURED_WITH = (
    "cuda-bench",
    "cuda-cccl",
    "cupy-cuda12x",
    "cutensor-cu13",
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-frontend",
    "nvidia-cufft",
    "nvidia-cutlass",
    "nvidia-npp",
    "nvmath-python",
    "torch",
    "triton",
)
#: The packages of libraries, by the names that peers give them.
_PACKAGES = {
    "CUTLASS": "nvidia-cutlass",
    "CuPy": "cupy-cuda12x",
    "NPP": "nvidia-npp",
    "PyTorch": "torch",
    "Triton": "triton",
    "cuBLAS": "nvidia-cublas",
    "cuDNN": "nvidia-cudnn-cu13",
    "cuFFT": "nvidia-cufft",
    "cuSPARSE": "nvidia-cusparse",
    "cuSPARSELt": "nvidia-cusparselt-cu13",
    "cuTENSOR": "cutensor-cu13",
}
#: What a library reports if it is not the version of its package: the header of cutensor-cu13 2.8.1 says 2.8.0.
_REPORTS = {("cutensor-cu13", "2.8.1"): "2.8.0"}


def locked(root: Path = paths.ROOT) -> dict[str, str]:
    """Return the locked version of each package; if there is a version for each Python, the last."""
    found: dict[str, str] = {}
    for name in LOCKS:
        lock = root / name
        if lock.is_file():
            found |= dict(re.findall(r"^([a-z][\w.-]*)==(\S+)", lock.read_text(encoding="utf-8"), re.MULTILINE))
    return found


def compiler() -> tuple[int, int]:
    """Return the major and minor version of the NVRTC that CuPy has loaded."""
    import cupy

    return cupy.cuda.nvrtc.getVersion()


def differences(nvrtc: tuple[int, int], root: Path = paths.ROOT) -> dict[str, str]:
    """Describe the differences from the locks, in words by package; ``nvrtc`` is the version of the NVRTC loaded by
    CuPy.

    A package that is not installed is not a difference: its peers are skipped by name.
    """
    pins = locked(root)
    found = {}
    wanted = pins.get(COMPILER)
    if wanted is not None and tuple(map(int, wanted.split(".")[:2])) != tuple(nvrtc):
        found["nvrtc"] = _said(".".join(map(str, nvrtc)), wanted)
    for package in MEASURED_WITH:
        version = _installed(package)
        if version is not None and package in pins and version.partition("+")[0] != pins[package]:
            found[package] = _said(version, pins[package])
    return found


def of_record(device: Mapping[str, Any], root: Path = paths.ROOT) -> dict[str, str]:
    """Describe how a record's versions differ from today's locks, in words by package.

    Since 2026-11-22 a record lists these differences itself; an older one has only the version of its compiler.
    """
    said = dict(device.get("differs", {}))
    wanted, had = locked(root).get(COMPILER), device.get("nvrtc")
    if wanted and had and had.split(".")[:2] != wanted.split(".")[:2]:
        said.setdefault("nvrtc", _said(had, wanted))
    return said


def of_libraries(points: Iterable[Point], root: Path = paths.ROOT) -> dict[str, str]:
    """Describe how the versions that the libraries of a record reported differ from today's locks, by package.

    A library may report fewer numbers than its package has: those that it reports are compared.
    """
    pins, said = locked(root), {}
    for library in (point.library for point in points if point.library):
        package, version = _PACKAGES.get(library["name"]), library.get("version") or ""
        if package is None or package not in pins:
            continue
        if not _agree(version.partition("+")[0], _REPORTS.get((package, pins[package]), pins[package])):
            said[package] = _said(version, pins[package])
    return said


def _agree(version: str, wanted: str) -> bool:
    return all(one == other for one, other in zip(version.split("."), wanted.split("."), strict=False))


def compiler_differs(found: dict[str, str]) -> str | None:
    """Explain why these differences make a record of the book's kernels misleading; None if they do not."""
    if "nvrtc" not in found:
        return None
    return (
        f"the NVRTC that would compile the kernels is {found['nvrtc']}: the record would be of other machine code than "
        "the book shows and the emulator runs. `make gpu` installs the locked one"
    )


def _said(version: str, wanted: str) -> str:
    return f"{version} (locked: {wanted})"


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
